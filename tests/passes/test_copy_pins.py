"""Copies where a value becomes a buffer that must not be copied, and where a buffer goes on in the next iteration."""

from collections import Counter

from layoutsim.ir import Module, Opcode
from layoutsim.passes.copy_insertion import CopyInsertion
from layoutsim.passes.sharing_rules import SharingRules
from layoutsim.text import parse_module

_STATE = "(f32[16], b(f32[16]))"
_IN_PLACE = "output_to_operand_aliasing={{}: (0, {})}"


def _inserted(body: str) -> Module:
    """A loop over an array ``x`` and a buffer ``held``; ``body`` makes ``z`` and ``again`` of them."""
    module = parse_module(f"""HloModule pins
cond {{
  c = {_STATE} parameter(0)
  ROOT yes = pred[] constant(true)
}}
body {{
  s = {_STATE} parameter(0)
  x = f32[16] get-tuple-element(s), index=0
  held = b(f32[16]) get-tuple-element(s), index=1
  {body}
  ROOT t = {_STATE} tuple(z, again)
}}
ENTRY e {{
  p = f32[16] parameter(0)
  n = f32[16] negate(p)
  m = f32[16] exponential(p)
  first = b(f32[16]) custom-call(n), custom_call_target="Pin", {_IN_PLACE}
  init = {_STATE} tuple(m, first)
  w = {_STATE} while(init), condition=cond, body=body
  left = b(f32[16]) get-tuple-element(w), index=1
  last = f32[16] custom-call(left), custom_call_target="Unpin", {_IN_PLACE}
  v = f32[16] get-tuple-element(w), index=0
  r = f32[16] add(last, v)
  ROOT q = f32[16] add(r, n)
}}
""")
    CopyInsertion(rules=SharingRules.DEFAULT).run(module)
    return module


def _copies(module: Module) -> dict[str, int]:
    return dict(Counter(c.name for c in module.computations for i in c.instructions if i.opcode is Opcode.COPY))


def test_a_buffer_that_goes_through_a_body_is_not_copied_in_it() -> None:
    module = _inserted(f"""z = f32[16] add(x, x)
  again = b(f32[16]) custom-call(held), custom_call_target="fill", {_IN_PLACE}""")

    # Before the loop n becomes a buffer and is read again behind it.
    assert _copies(module) == {"e": 1}
    assert module.find("e", "first").operand(0).opcode is Opcode.COPY


_ROTATED = f"""out = f32[16] custom-call(held), custom_call_target="Unpin", {_IN_PLACE}
  y = f32[16] add(x, out)
  again = b(f32[16]) custom-call(y), custom_call_target="Pin", {_IN_PLACE}
  z = f32[16] negate(out)"""


def test_what_a_chain_ends_with_is_copied_before_the_next_one_fills_its_buffer() -> None:
    module = _inserted(_ROTATED)
    call, end = module.find("body", "again"), module.find("body", "out")
    (copied,) = end.users

    # Whatever reads the end reads its copy, and the call that fills the buffer again waits for both.
    assert copied.opcode is Opcode.COPY
    assert {end, copied} <= set(call.control_predecessors)


def test_an_operand_that_lives_on_keeps_its_copy_behind_the_end_of_the_chain_before() -> None:
    module = _inserted(_ROTATED.replace("negate(out)", "multiply(y, y)").replace("add(x, out)", "add(x, x)"))
    call = module.find("body", "again")

    assert call.operand(0).opcode is Opcode.COPY
    assert module.find("body", "out") in call.operand(0).control_predecessors

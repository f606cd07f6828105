"""The reducer keeps the failure and little else."""

from layoutsim.ir import Module, Opcode
from layoutsim.testing import Limits, random_module, reduce_module
from layoutsim.text import parse_module
from layoutsim.verify import verify


def has(opcode: Opcode, module: Module) -> bool:
    return any(i.opcode is opcode for c in module.computations for i in c.instructions)


def test_an_instruction_of_a_nested_computation_ends_up_alone_in_the_entry() -> None:
    module = parse_module("""
        HloModule m
        body { s = (s32[], f32[4,4]) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          x = f32[4,4] get-tuple-element(s), index=1
          y = f32[4,4] add(x, x)
          d = f32[4,4] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ROOT t = (s32[], f32[4,4]) tuple(i, d) }
        condition { s = (s32[], f32[4,4]) parameter(0)
          ROOT c = pred[] constant(false) }
        ENTRY e { i = s32[] constant(0)
          x = f32[4,4] parameter(0)
          n = f32[4,4] negate(x)
          s = (s32[], f32[4,4]) tuple(i, n)
          ROOT w = (s32[], f32[4,4]) while(s), condition=condition, body=body }
    """)

    reduced = reduce_module(module, lambda m: has(Opcode.DOT, m))

    assert [i.opcode for i in reduced.entry.instructions if i.opcode is not Opcode.PARAMETER] == [Opcode.DOT]
    assert [c.name for c in reduced.computations] == ["body"]


def test_what_does_not_fail_stays_as_it_is() -> None:
    module = random_module(3)

    assert reduce_module(module, lambda m: False).to_text() == module.to_text()


def test_the_given_module_is_not_touched() -> None:
    module = random_module(7, Limits(devices=4))
    text = module.to_text()

    reduce_module(module, lambda m: m.instruction_count > 3)

    assert module.to_text() == text


def test_random_modules_become_tiny() -> None:
    for seed in range(12):
        module = random_module(seed, Limits(devices=4))
        if not has(Opcode.TRANSPOSE, module):
            continue
        reduced = reduce_module(module, lambda m: has(Opcode.TRANSPOSE, m) and not verify(m))

        assert has(Opcode.TRANSPOSE, reduced)
        assert reduced.instruction_count <= 12, reduced.to_text()


def test_a_failure_that_needs_dead_code_keeps_it() -> None:
    module = parse_module("""
        HloModule m
        ENTRY e { x = f32[4,4] parameter(0)
          dead = f32[4,4] negate(x)
          other = f32[4,4] abs(dead)
          ROOT y = f32[4,4] add(x, x) }
    """)

    reduced = reduce_module(module, lambda m: has(Opcode.NEGATE, m) and m.entry.root.opcode is Opcode.ADD)

    assert sorted(i.opcode for i in reduced.entry.instructions) == [Opcode.ADD, Opcode.NEGATE, Opcode.PARAMETER]

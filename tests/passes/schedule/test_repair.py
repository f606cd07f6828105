"""Schedules that follow an edited module."""

from layoutsim.ir import Module, Opcode
from layoutsim.passes.schedule import repair_schedule
from layoutsim.text import parse_module

SCHEDULED = """
HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  a = f32[8] abs(p)
  b = f32[8] negate(q)
  ROOT s = f32[8] add(a, b)
}
"""


def _repaired(module: Module) -> list[str]:
    assert module.schedule is not None
    return [i.name for i in repair_schedule(module, module.schedule).sequences[module.entry]]


def test_unchanged_schedule_stays() -> None:
    assert _repaired(parse_module(SCHEDULED)) == ["p", "q", "a", "b", "s"]


def test_new_instruction_comes_right_behind_its_last_operand() -> None:
    module = parse_module(SCHEDULED)
    q, root = module.entry.find("q"), module.entry.root
    copy = module.entry.add(Opcode.COPY, q.shape, [q])
    second = module.entry.add(Opcode.COPY, q.shape, [copy])
    root.replace_operand(1, second)

    assert _repaired(module) == ["p", "q", "copy", "copy.1", "a", "b", "s"]


def test_new_instruction_without_operands_comes_first() -> None:
    module = parse_module(SCHEDULED)
    module.entry.add(Opcode.PARTITION_ID, module.entry.root.shape, [])

    assert _repaired(module) == ["partition-id", "p", "q", "a", "b", "s"]


def test_removed_instruction_leaves() -> None:
    module = parse_module(SCHEDULED)
    b = module.entry.find("b")
    b.replace_all_uses_with(module.entry.find("q"))
    module.entry.erase(b)

    assert _repaired(module) == ["p", "q", "a", "s"]


def test_contradicting_control_edge_moves_both_ends() -> None:
    module = parse_module(SCHEDULED)
    module.entry.find("a").add_control_predecessor(module.entry.find("b"))

    # Both are taken out and come back behind what they wait for; s stays where it was, which is behind them.
    assert _repaired(module) == ["p", "q", "b", "a", "s"]

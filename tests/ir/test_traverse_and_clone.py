"""Orders of instructions and computations, and clones that keep them."""

from layoutsim.ir import Computation, ElementType, Module, Opcode, array_shape
from layoutsim.ir.clone import clone_module
from layoutsim.ir.payloads import ParameterPayload
from layoutsim.ir.traverse import computations_post_order, post_order, visitor_order

S = array_shape(ElementType.F32, (2,))


def _diamond() -> Module:
    """``dead = neg(b); a; b; root = add(b, a)`` with a control edge from ``late`` to ``root``."""
    module = Module("m")
    c = module.add_computation(Computation("c"), is_entry=True)
    a = c.add(Opcode.PARAMETER, S, payload=ParameterPayload(0), name="a")
    b = c.add(Opcode.PARAMETER, S, payload=ParameterPayload(1), name="b")
    root = c.add(Opcode.ADD, S, [b, a], name="root")
    c.add(Opcode.NEGATE, S, [a], name="dead")
    late = c.add(Opcode.NEGATE, S, [a], name="late")
    root.add_control_predecessor(late)
    c.root = root
    return module


def test_post_order_takes_control_predecessors_first_and_seeds_in_list_order() -> None:
    assert [i.name for i in post_order(_diamond().entry)] == ["a", "late", "b", "root", "dead"]


def test_the_visitor_starts_from_unreachable_roots_and_visits_operands_before_control_predecessors() -> None:
    assert [i.name for i in visitor_order(_diamond().entry)] == ["a", "dead", "b", "late", "root"]


def test_post_order_of_a_long_chain_does_not_recurse() -> None:
    c = Computation("c")
    last = c.add(Opcode.PARAMETER, S, payload=ParameterPayload(0))
    for _ in range(5000):
        last = c.add(Opcode.NEGATE, S, [last])

    assert len(post_order(c)) == 5001


def test_callees_come_before_callers() -> None:
    module = Module("m")
    inner = module.add_computation(Computation("inner"))
    inner.root = inner.add(Opcode.PARAMETER, S, payload=ParameterPayload(0))
    entry = module.add_computation(Computation("entry"), is_entry=True)
    p = entry.add(Opcode.PARAMETER, S, payload=ParameterPayload(0))
    entry.root = entry.add(Opcode.CALL, S, [p], called_computations=(inner,))

    assert [c.name for c in computations_post_order(module)] == ["inner", "entry"]


def test_a_clone_has_equal_orders_and_shares_no_node() -> None:
    module = _diamond()
    first = module.entry.instructions[0]
    copy = clone_module(module)
    twin = copy.entry.instructions[0]

    assert [i.name for i in post_order(copy.entry)] == [i.name for i in post_order(module.entry)]
    assert [u.name for u in twin.users] == [u.name for u in first.users]
    assert set(copy.entry.instructions).isdisjoint(module.entry.instructions)

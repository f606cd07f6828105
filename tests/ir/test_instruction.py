"""Use edges, and the order of users that XLA keeps."""

from layoutsim.ir import Computation, ElementType, Instruction, Module, Opcode, array_shape
from layoutsim.ir.payloads import ParameterPayload

SHAPE = array_shape(ElementType.F32, (2, 3))


def _fan_out(users: int) -> tuple[Computation, Instruction, list[Instruction]]:
    """A parameter with ``users`` negates."""
    computation = Computation("c")
    parameter = computation.add(Opcode.PARAMETER, SHAPE, payload=ParameterPayload(0), name="p")
    return computation, parameter, [computation.add(Opcode.NEGATE, SHAPE, [parameter], name=f"n{i}") for i in range(users)]


def test_an_instruction_that_uses_a_value_twice_is_one_user_with_two_uses() -> None:
    computation, p, _ = _fan_out(0)
    add = computation.add(Opcode.ADD, SHAPE, [p, p])

    assert p.users == (add,)
    assert list(p.uses) == [(add, 0), (add, 1)]


def test_the_last_user_takes_the_place_of_a_removed_one() -> None:
    computation, p, (a, b, c, d) = _fan_out(4)
    other = computation.add(Opcode.CONSTANT, SHAPE)
    b.replace_operand(0, other)

    assert p.users == (a, d, c)


def test_removal_from_many_users_gives_the_order_of_removal_from_few() -> None:
    computation, p, users = _fan_out(100)
    other = computation.add(Opcode.CONSTANT, SHAPE)
    expected = list(users)
    for victim in (users[3], users[97], users[50], users[99]):
        victim.replace_operand(0, other)
        position = expected.index(victim)
        last = expected.pop()
        if last is not victim:
            expected[position] = last

    assert p.users == tuple(expected)


def test_a_user_stays_while_one_of_its_slots_still_reads_the_value() -> None:
    computation, p, _ = _fan_out(0)
    add = computation.add(Opcode.ADD, SHAPE, [p, p])
    other = computation.add(Opcode.CONSTANT, SHAPE)
    add.replace_operand(0, other)

    assert p.users == (add,)
    assert add.operands == (other, p)


def test_replacing_all_uses_moves_the_root_too() -> None:
    computation, _p, (n,) = _fan_out(1)
    computation.root = n
    copy = computation.add(Opcode.COPY, SHAPE, [n])
    n.replace_all_uses_with(copy)

    assert computation.root is copy
    assert n.users == (copy,)


def test_erasing_detaches_operands_and_control_edges() -> None:
    computation, p, (a, b) = _fan_out(2)
    computation.root = b
    b.add_control_predecessor(a)
    computation.erase(a)

    assert p.users == (b,)
    assert b.control_predecessors == ()
    assert computation.instructions == (p, b)


def test_a_wished_name_is_given_bare_first_and_then_numbered() -> None:
    module = Module("m")
    computation = module.add_computation(Computation("c"), is_entry=True)
    names = [computation.add(Opcode.COPY, SHAPE, name=n).name for n in ("copy", "copy", "copy.7", "copy.7", "copy")]

    assert names == ["copy", "copy.1", "copy.7", "copy.2", "copy.3"]

"""Arrays that are widened as a whole before a loop that reads them slice by slice: advice to widen the slices.

Imitated by carrying the narrow array and converting what the loop reads of it::

    wide = f32[8,4] convert(w)                                     init = (s32[], bf16[8,4]) tuple(zero, w)
    init = (s32[], f32[8,4]) tuple(zero, wide)               =>    ...
    ...                                                            slice = bf16[1,4] dynamic-slice(w', i, zero)
    slice = f32[1,4] dynamic-slice(wide', i, zero)                 slice' = f32[1,4] convert(slice)

The cast is the user's if it stands where it was traced. If it has no ``op_name``, or one that says that it was inside of a loop
that it stands before, XLA made it or moved it out (the CPU backend does, for products in bf16), and that is for XLA to change.

Loops inside that are handed the whole array on carry it narrow too. Where a loop reads the array in another way than by slices,
the array is left as it is.
"""

from __future__ import annotations

from attrs import evolve, frozen

from layoutsim.build import array_of
from layoutsim.experiments.advice.change import ProgramChange, find_again, where
from layoutsim.experiments.advice.loop_elements import carry_instead, is_invariant, plain_loops, readers_of
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import byte_size, shape_text
from layoutsim.ir.traverse import computations_post_order
from layoutsim.memory.movement import movement_of
from layoutsim.passes.replace import remove_with_unused_operands


@frozen(eq=False)
class _Carried:
    """A loop that carries a widened array as an element."""

    loop: Instruction
    element: int


def find_up_casts(module: Module) -> list[ProgramChange]:
    """A change for each widened array that loops read by slices only."""
    loops = {loop.operand(0): loop for loop in plain_loops(module)}
    depths = _loop_depths(module)
    converts = [i for c in module.computations for i in c.instructions if i.opcode is Opcode.CONVERT]
    changes: list[ProgramChange] = []
    for convert in converts:
        movement = movement_of(convert)
        if movement is None or not movement.widens:
            continue
        carried = _carried(convert, loops)
        if carried and all(_is_sliced(place, loops) for place in carried):
            assert convert.parent is not None, convert
            scope = convert.metadata.op_name
            is_users = bool(scope) and scope.count("while/body") <= depths.get(convert.parent, 0)
            changes.append(_change(convert, carried[0], is_users))
    return changes


def _loop_depths(module: Module) -> dict[Computation, int]:
    """In how many loops each computation is."""
    depths = {module.entry: 0}
    for computation in reversed(computations_post_order(module)):
        for instruction in computation.instructions:
            for callee in instruction.called_computations:
                depths[callee] = depths.get(computation, 0) + (instruction.opcode is Opcode.WHILE)
    return depths


def _carried(array: Instruction, loops: dict[Instruction, Instruction]) -> list[_Carried]:
    """The loops that start with ``array`` as an element."""
    tuples = [user for user in array.users if user in loops]
    return [_Carried(loops[t], number) for t in tuples for number, o in enumerate(t.operands) if o is array]


def _is_sliced(place: _Carried, loops: dict[Instruction, Instruction]) -> bool:
    """Whether the loop, and those inside that it hands the array to, only cut slices out of it."""
    body = place.loop.body
    if not is_invariant(place.loop, place.element) or readers_of(place.loop.condition.parameters[0], place.element):
        return False
    for reader in readers_of(body.parameters[0], place.element):
        inner = _carried(reader, loops)
        others = [user for user in reader.users if user is not body.root and user not in {p.loop.operand(0) for p in inner}]
        if not all(user.opcode is Opcode.DYNAMIC_SLICE and user.operand(0) is reader for user in others):
            return False
        if not all(_is_sliced(p, loops) and not _is_read_after(p) for p in inner):
            return False
    return True


def _is_read_after(place: _Carried) -> bool:
    return any(reader.user_count for reader in readers_of(place.loop, place.element))


def _change(convert: Instruction, first: _Carried, is_users: bool) -> ProgramChange:
    source = convert.operand(0)
    types = f"{array_of(source).element_type} to {array_of(convert).element_type}"

    def apply(module: Module) -> None:
        again = find_again(module, convert)
        loops = {loop.operand(0): loop for loop in plain_loops(module)}
        for place in _carried(again, loops):
            for reader in readers_of(place.loop, place.element):
                reader.replace_all_uses_with(again)
            _carry_narrow(place, again.operand(0), convert)
        if not again.user_count:
            remove_with_unused_operands(again)

    code = [
        f"# {where(convert)}: without the cast there; the scan is {where(first.loop)}",
        "def body(carry, x):",
        f"    x = x.astype(jnp.{_jax_type(convert)})",
    ]
    moved = f"# {convert.metadata.op_name or convert.name}: made by XLA, or moved there by while-loop-invariant-code-motion"
    arrays = f"slices of {shape_text(source.shape, layouts=False)} from {types} inside the loop, not all of it before"
    return ProgramChange(
        title=f"cast {arrays}",
        code="\n".join(code) if is_users else moved,
        size_bytes=byte_size(convert.shape),
        apply=apply,
        audience="jax" if is_users else "xla",
    )


def _jax_type(convert: Instruction) -> str:
    name = array_of(convert).element_type.value
    kinds = {"f": "float", "s": "int", "u": "uint", "c": "complex"}
    return "bfloat16" if name == "bf16" else f"{kinds.get(name[0], name[0])}{name[1:]}"


def _carry_narrow(place: _Carried, narrow: Instruction, convert: Instruction) -> None:
    loops = {i.operand(0): i for i in place.loop.body.instructions if i.opcode is Opcode.WHILE}
    carry_instead(place.loop, place.element, narrow)
    for reader in readers_of(place.loop.body.parameters[0], place.element):
        for inner in _carried(reader, loops):
            _carry_narrow(inner, reader, convert)
        for user in [u for u in reader.users if u.opcode is Opcode.DYNAMIC_SLICE]:
            _widen_slice(user, convert)


def _widen_slice(slice_: Instruction, convert: Instruction) -> None:
    assert slice_.parent is not None, slice_
    wide = array_of(slice_)
    slice_.shape = evolve(wide, element_type=array_of(slice_.operand(0)).element_type)
    new = slice_.parent.add(Opcode.CONVERT, wide, [slice_], attributes=convert.attributes)
    slice_.replace_all_uses_with(new)

"""The judge of layout assignment: does the module keep what every reader of an array may rely on?

It shares no code with the pass: it knows the demands, not how they are met. What it checks, on the module as it came out and,
where stated, as it went in:

1. Every array outside fusions has a layout.
2. Nothing that was there is gone or renamed; what is new is a ``copy``, or a ``get-tuple-element`` or ``tuple`` around copies
   (computations that are new are clones).
3. A layout that the entry was given is the one it has: parameters leaf by leaf, the result if it was given whole.
4. Loops, calls and branches: operand, parameter, root and result of what passes through have one order.
5. Infeeds, outfeeds, layout-constrained collectives and custom calls have the layouts they came with; but where a kernel
   demands another layout of the collective (6), XLA meets that.
6. What the backend's kernels need (layout spec, section 6), apart from dimensions of size 1, whose place means nothing:
   the dimension of an all-gather, reduce-scatter, all-to-all or ragged-all-to-all of one array is most major (of several
   arrays XLA asks the same, but loses it where an operand is constrained too: the real compiler was seen to do so); operands
   and result of fft and ragged-dot, the results of top-k, transfers to and from the host are row-major; a triangular-solve's
   matrices are column-major; the operands of a sort agree; a dot's operands and result are batches of matrices; what both
   narrow sides of a dot contract is most minor; convolution calls are all NCHW or all NHWC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutsim.ir import (
    ArrayShape,
    Computation,
    ElementType,
    Instruction,
    Module,
    Opcode,
    Shape,
    TupleShape,
    array_leaves,
    index_text,
    subshape,
)
from layoutsim.ir.payloads import (
    CollectivePayload,
    CustomCallPayload,
    DotPayload,
    OutfeedPayload,
)
from layoutsim.ir.traverse import fusion_bodies

Order = tuple[int, ...]


def layout_faults(
    before: Module,
    after: Module,
    backend: str = "generic",
    *,
    exempt: frozenset[Opcode] = frozenset(),
    allow_bitcasts: bool = False,
    may_go: frozenset[Opcode] = frozenset(),
) -> list[str]:
    """Everything wrong with the layouts of ``after``, which was ``before`` until the pass; empty if all is well.

    Args:
        backend: ``gpu``, ``cpu``, or ``generic``, which demands nothing (6).
        exempt: opcodes that the backend does not demand anything of, in the release that is imitated.
        allow_bitcasts: a layout may be changed by a bitcast too, where that moves nothing (``copies=modulo-degenerate``).
        may_go: opcodes that may be gone, where what replaced them left them unused.
    """
    bodies = fusion_bodies(after)
    computations = [c for c in after.computations if c not in bodies]
    missing = [fault for c in computations for fault in _missing(c)]
    if missing:
        return missing  # everything else compares layouts
    old = _by_place(before)
    return [
        *_lost(before, after, (*_ADDED, Opcode.BITCAST) if allow_bitcasts else _ADDED, may_go),
        *(fault for c in computations for i in c.instructions if i.opcode is Opcode.BITCAST for fault in _moves(i)),
        *_entry(before, after),
        *(fault for c in computations for i in c.instructions for fault in _passing(i)),
        *(fault for c in computations for i in c.instructions for fault in _given(i, old.get((c.name, i.name)), backend)),
        *(fault for c in computations for i in c.instructions if i.opcode not in exempt for fault in _demanded(i, backend)),
    ]


def _missing(computation: Computation) -> Iterator[str]:
    for instruction in computation.instructions:
        for index, leaf in array_leaves(instruction.shape):
            if leaf.layout is None:
                yield f"{_name(instruction, index)} has no layout"


def _name(instruction: Instruction, index: Sequence[int] = ()) -> str:
    where = f"{instruction.parent.name}/" if instruction.parent is not None else ""
    return f"{where}{instruction.name}{index_text(tuple(index)) if index else ''}"


# -- (2) and (3) ---------------------------------------------------------------------------------------------------------


def _by_place(module: Module) -> dict[tuple[str, str], Instruction]:
    return {(c.name, i.name): i for c in module.computations for i in c.instructions}


_ADDED = (Opcode.COPY, Opcode.GET_TUPLE_ELEMENT, Opcode.TUPLE)


def _moves(bitcast: Instruction) -> Iterator[str]:
    """A bitcast between layouts of one shape may only move dimensions of size 1."""
    source, result = bitcast.operand(0).shape, bitcast.shape
    assert isinstance(source, ArrayShape) and isinstance(result, ArrayShape), bitcast
    same_shape = (source.element_type, source.dimensions) == (result.element_type, result.dimensions)
    if not same_shape or (source.element_count and _essential(source) != _essential(result)):
        yield f"{_name(bitcast)}: {source} and {result} are not the same in memory"


def _lost(before: Module, after: Module, allowed: tuple[Opcode, ...], may_go: frozenset[Opcode]) -> Iterator[str]:
    old, new = _by_place(before), _by_place(after)
    known = {c.name for c in before.computations}
    for place, instruction in old.items():
        if place not in new:
            if instruction.opcode not in may_go:
                yield f"{_name(instruction)} is gone"
        elif new[place].opcode is not instruction.opcode:
            yield f"{_name(instruction)} became {new[place].opcode}, expected {instruction.opcode}"
    for place, instruction in new.items():
        if place not in old and place[0] in known and instruction.opcode not in allowed:
            yield f"{_name(instruction)} is new, expected only copies, and tuples around them"


def _entry(before: Module, after: Module) -> Iterator[str]:
    given = before.entry_layout
    if given is None:
        return
    for parameter in after.entry.parameters:
        wished = given.parameters[parameter.parameter_number]
        yield from _differences(parameter.shape, wished, f"parameter {parameter.name}", "the entry layout")
    if all(leaf.layout is not None for _, leaf in array_leaves(given.result)):
        yield from _differences(after.entry.root.shape, given.result, f"result {after.entry.root.name}", "the entry layout")
    published = after.entry_layout
    if published is not None:
        for parameter in after.entry.parameters:
            shape = published.parameters[parameter.parameter_number]
            yield from _differences(parameter.shape, shape, f"parameter {parameter.name}", "the entry layout afterwards")
        yield from _differences(after.entry.root.shape, published.result, "result", "the entry layout afterwards")


def _differences(shape: Shape, wished: Shape, what: str, by: str) -> Iterator[str]:
    """Leaves of ``shape`` whose order is not that of ``wished``, where that has one."""
    for index, leaf in array_leaves(wished):
        found = subshape(shape, index)
        if leaf.layout is not None and isinstance(found, ArrayShape) and found.minor_to_major != leaf.minor_to_major:
            part = f" {index_text(index)}" if index else ""
            yield f"{what}{part} has order {_text(found.minor_to_major)}, expected {_text(leaf.minor_to_major)} of {by}"


def _text(order: Order) -> str:
    return "{" + ",".join(map(str, order)) + "}"


# -- (4) -----------------------------------------------------------------------------------------------------------------


def _passing(instruction: Instruction) -> Iterator[str]:
    me = _name(instruction)
    match instruction.opcode:
        case Opcode.WHILE:
            sides = {
                "the initial value": instruction.operand(0).shape,
                "the body's parameter": instruction.body.parameters[0].shape,
                "the body's result": instruction.body.root.shape,
                "the condition's parameter": instruction.condition.parameters[0].shape,
            }
            for what, shape in sides.items():
                yield from _differences(shape, instruction.shape, f"{me}: {what}", "the loop")
        case Opcode.CALL | Opcode.FUSION:
            for operand, parameter in zip(instruction.operands, instruction.to_apply.parameters, strict=True):
                yield from _differences(parameter.shape, operand.shape, f"{me}: parameter {parameter.name}", "its operand")
            yield from _differences(instruction.to_apply.root.shape, instruction.shape, f"{me}: the callee's root", "the call")
        case Opcode.CONDITIONAL:
            for operand, branch in zip(instruction.operands[1:], instruction.called_computations, strict=True):
                yield from _differences(branch.parameters[0].shape, operand.shape, f"{me}: {branch.name}", "its operand")
                yield from _differences(branch.root.shape, instruction.shape, f"{me}: root of {branch.name}", "the conditional")
        case Opcode.TUPLE:
            assert isinstance(instruction.shape, TupleShape)
            for operand, shape in zip(instruction.operands, instruction.shape.elements, strict=True):
                yield from _differences(operand.shape, shape, f"{me}: {operand.name}", "the tuple")
        case Opcode.GET_TUPLE_ELEMENT:
            part = subshape(instruction.operand(0).shape, (instruction.tuple_index,))
            yield from _differences(part, instruction.shape, f"{me}: the operand's element", "the element")
        case Opcode.OPT_BARRIER | Opcode.DOMAIN:
            yield from _differences(instruction.operand(0).shape, instruction.shape, f"{me}: the operand", "the result")
        case _:
            pass


# -- (5) -----------------------------------------------------------------------------------------------------------------


def _given(instruction: Instruction, old: Instruction | None, backend: str) -> Iterator[str]:
    me = _name(instruction)
    payload = instruction.payload
    came_as = old.shape if old is not None else instruction.shape
    if instruction.opcode is Opcode.INFEED:
        yield from _differences(instruction.shape, came_as, me, "what is fed in")
    elif isinstance(payload, OutfeedPayload):
        yield from _differences(instruction.operand(0).shape, payload.outfeed_shape, f"{me}: operand 0", "what is fed out")
    elif (
        isinstance(payload, CollectivePayload)
        and payload.constrain_layout
        and instruction.opcode not in _MAJOR.get(backend, ())
    ):
        yield from _differences(instruction.shape, came_as, me, "constrain_layout")
    elif isinstance(payload, CustomCallPayload) and payload.operand_layout_constraints is not None:
        yield from _differences(instruction.shape, came_as, me, "the custom call's own layout")
        if payload.custom_call_target == "LayoutConstraint":  # what it states is its own shape
            yield from _differences(instruction.operand(0).shape, instruction.shape, f"{me}: operand 0", "the constraint")
            return
        for number, shape in enumerate(payload.operand_layout_constraints):
            operand = instruction.operand(number).shape
            yield from _differences(operand, shape, f"{me}: operand {number}", "operand_layout_constraints")


# -- (6) -----------------------------------------------------------------------------------------------------------------

_MAJOR = {
    "gpu": (Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL, Opcode.RAGGED_ALL_TO_ALL),
    "cpu": (Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER),
}
_PACKED_ROWS = (ElementType.F8E4M3FN, ElementType.F8E5M2FNUZ)


def _demanded(instruction: Instruction, backend: str) -> Iterator[str]:
    if instruction.opcode in _MAJOR.get(backend, ()):
        yield from _gathered_is_major(instruction)
    if backend != "gpu":
        return
    match instruction.opcode:
        case Opcode.FFT | Opcode.RAGGED_DOT:
            yield from _row_major(instruction, [*(o.shape for o in instruction.operands), instruction.shape])
        case Opcode.TRIANGULAR_SOLVE:
            yield from _column_major(instruction)
        case Opcode.SORT:
            yield from _sort_agrees(instruction)
        case Opcode.DOT:
            yield from _is_matrix_product(instruction)
        case Opcode.CUSTOM_CALL:
            yield from _custom_call(instruction)
        case _:
            pass


def _essential(shape: ArrayShape) -> Order:
    """The order of the dimensions that are not of size 1, most minor first."""
    return tuple(d for d in shape.minor_to_major if shape.dimensions[d] != 1)


def _gathered_is_major(collective: Instruction) -> Iterator[str]:
    payload = collective.payload
    if not isinstance(payload, CollectivePayload) or isinstance(collective.shape, TupleShape):
        return
    is_ragged = collective.opcode is Opcode.RAGGED_ALL_TO_ALL
    dimension = 0 if is_ragged else payload.dimension
    if dimension is None:
        return
    operands = collective.operands[:2] if is_ragged else collective.operands  # the others say which rows go where
    for shape in [collective.shape, *(operand.shape for operand in operands)]:
        for _, leaf in array_leaves(shape):
            order = leaf.minor_to_major
            above = [d for d in order[order.index(dimension) + 1 :] if leaf.dimensions[d] != 1]
            if above and leaf.element_count:
                message = f"dimension {dimension} of {leaf} must be most major, but {above} are more major"
                yield f"{_name(collective)}: {message}"


def _row_major(instruction: Instruction, shapes: Sequence[Shape]) -> Iterator[str]:
    for shape in shapes:
        for _, leaf in array_leaves(shape):
            if list(_essential(leaf)) != sorted(_essential(leaf), reverse=True):
                yield f"{_name(instruction)}: {leaf} must be row-major"


def _column_major(solve: Instruction) -> Iterator[str]:
    for shape in [*(o.shape for o in solve.operands), solve.shape]:
        assert isinstance(shape, ArrayShape), solve
        rank = shape.rank
        wanted = (rank - 2, rank - 1, *range(rank - 3, -1, -1))
        if _essential(shape) != tuple(d for d in wanted if shape.dimensions[d] != 1):
            yield f"{_name(solve)}: {shape} must have column-major matrices"


def _sort_agrees(sort: Instruction) -> Iterator[str]:
    shapes = [leaf for s in [*(o.shape for o in sort.operands), sort.shape] for _, leaf in array_leaves(s)]
    if len({_essential(leaf) for leaf in shapes}) > 1:
        yield f"{_name(sort)}: operands and results must have one order, got {', '.join(map(str, shapes))}"


def _custom_call(call: Instruction) -> Iterator[str]:
    target = call.payload_as(CustomCallPayload).custom_call_target
    if target == "__gpu$TopK":
        yield from _row_major(call, [call.shape])
    elif target in ("MoveToHost", "MoveToDevice"):
        yield from _row_major(call, [call.operand(0).shape, call.shape])
    elif target == "__cudnn$convForward":
        yield from _convolution(call)


def _convolution(call: Instruction) -> Iterator[str]:
    """Data, kernel and result are all channels-first or all channels-last."""
    numbers = call.payload_as(CustomCallPayload).dimension_numbers
    assert numbers is not None, call
    roles = [
        (call.operand(0).shape, numbers.input_batch, numbers.input_feature),
        (call.operand(1).shape, numbers.kernel_output_feature, numbers.kernel_input_feature),
        (subshape(call.shape, (0,)), numbers.output_batch, numbers.output_feature),
    ]
    places: list[int] = []
    for shape, batch, feature in roles:
        assert isinstance(shape, ArrayShape), call
        order = shape.minor_to_major[::-1]
        places.append(order.index(feature))
        if order.index(batch) != 0 or order.index(feature) not in (1, shape.rank - 1):
            yield f"{_name(call)}: {shape} is neither NCHW nor NHWC"
    if len(set(places)) > 1:
        yield f"{_name(call)}: data, kernel and result are not all NCHW or all NHWC"


# -- products ------------------------------------------------------------------------------------------------------------


def _is_matrix_product(dot: Instruction) -> Iterator[str]:
    payload = dot.payload_as(DotPayload)
    sides = [
        (dot.operand(0).shape, payload.lhs_batch_dims, payload.lhs_contracting_dims),
        (dot.operand(1).shape, payload.rhs_batch_dims, payload.rhs_contracting_dims),
    ]
    types = [shape.element_type for shape, _, _ in sides if isinstance(shape, ArrayShape)]
    assert isinstance(dot.shape, ArrayShape), dot
    rows_are_minor = all(t in _PACKED_ROWS for t in types) or (
        dot.shape.element_type is ElementType.S32 and all(t is ElementType.S8 for t in types)
    )
    free: list[int] = []
    for shape, batch, contracting in sides:
        assert isinstance(shape, ArrayShape), dot
        rest = tuple(d for d in range(shape.rank) if d not in batch and d not in contracting)
        free.append(len(rest))
        yield from _is_matrix(dot, shape, (batch, contracting, rest))
        minor = shape.minor_to_major[: len(contracting)]
        if rows_are_minor and set(minor) != set(contracting):
            yield f"{_name(dot)}: the contracting dimensions {list(contracting)} of {shape} must be most minor"
    batches = len(payload.lhs_batch_dims)
    groups = (range(batches), range(batches, batches + free[0]), range(batches + free[0], dot.shape.rank))
    yield from _is_matrix(dot, dot.shape, tuple(map(tuple, groups)))


def _is_matrix(dot: Instruction, shape: ArrayShape, groups: tuple[Sequence[int], ...]) -> Iterator[str]:
    """Batch, rows and columns each lie together in row-major order, and something is more minor than the batch."""
    order = shape.minor_to_major[::-1]
    batch = list(groups[0])
    for group in groups:
        start = order.index(group[0]) if group else 0
        if list(order[start : start + len(group)]) != list(group):
            yield f"{_name(dot)}: dimensions {list(group)} of {shape} must lie together, in this order"
    if batch and shape.rank > len(batch) and order[-1] in batch:
        yield f"{_name(dot)}: the batch dimensions {batch} of {shape} must not be most minor"


__all__ = ["layout_faults"]

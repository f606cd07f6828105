"""Layouts (invariants L1 to L9; list in ``layoutsim.verify``).

Layout assignment may give most instructions any layout they like; what it may not do is change the layout of data that
merely passes: through tuples, loops, calls, transfers and updates in place.
"""

from __future__ import annotations

import math

from layoutsim.errors import ShapeError
from layoutsim.infer import infer_site
from layoutsim.ir import (
    HOST_MEMORY_SPACE,
    ArrayShape,
    Computation,
    Instruction,
    Opcode,
    Shape,
    compatible,
    has_layout,
)
from layoutsim.ir.payloads import DimensionsPayload, ScanPayload
from layoutsim.verify.equality import Ignoring, equal, equal_layouts
from layoutsim.verify.findings import Findings
from layoutsim.verify.shapes import PASSES_DATA_UNCHANGED, site_of

_ONLY_ORDER = frozenset({Opcode.CONSTANT, Opcode.COPY_START, Opcode.INFEED, Opcode.RECV, Opcode.SEND})
"""Opcodes that pass data unchanged, but perhaps into other tiles or another memory space (L2)."""

_TAKES_ARGUMENTS = frozenset({Opcode.CALL, Opcode.FUSION, Opcode.ASYNC_START})

MAY_CHANGE_LAYOUT = frozenset(
    {
        *(PASSES_DATA_UNCHANGED - {Opcode.DYNAMIC_UPDATE_SLICE, Opcode.OPT_BARRIER, Opcode.WHILE}),
        Opcode.AFTER_ALL,
        Opcode.BATCH_NORM_GRAD,
        Opcode.BATCH_NORM_INFERENCE,
        Opcode.BATCH_NORM_TRAINING,
        Opcode.BITCAST,
        Opcode.BROADCAST,
        Opcode.COLLECTIVE_PERMUTE_DONE,
        Opcode.COLLECTIVE_PERMUTE_START,
        Opcode.CONVOLUTION,
        Opcode.COPY,
        Opcode.CUSTOM_CALL,
        Opcode.DOMAIN,
        Opcode.DOT,
        Opcode.DYNAMIC_RESHAPE,
        Opcode.GATHER,
        Opcode.GET_DIMENSION_SIZE,
        Opcode.IOTA,
        Opcode.PARAMETER,
        Opcode.PARTITION_ID,
        Opcode.RAGGED_DOT,
        Opcode.REDUCE,
        Opcode.REPLICA_ID,
        Opcode.RESHAPE,
        Opcode.RNG,
        Opcode.RNG_BIT_GENERATOR,
        Opcode.RNG_GET_AND_UPDATE_STATE,
        Opcode.SCALED_DOT,
        Opcode.TRANSPOSE,
    }
)
"""Opcodes whose result may have another layout than their operands (L3)."""

_ELEMENT_SIZE_CHANGES = frozenset({Opcode.CONVERT, Opcode.COMPARE, Opcode.IS_FINITE, Opcode.SCATTER})


def verify_layouts(findings: Findings) -> None:
    """L1 to L9, as far as the options ask for them."""
    options = findings.options
    _check_entry_layout(findings)
    for computation in findings.module.computations:
        for instruction in computation.instructions:
            if instruction.opcode.spec.arity not in (None, instruction.operand_count):
                continue  # T1 says so
            if options.layout_sensitive:
                _check_sensitive(findings, computation, instruction)
            if options.layouts_are_preserved and instruction.opcode not in MAY_CHANGE_LAYOUT:
                _check_preserved(findings, instruction)
            if options.broadcast_dimensions_ascend and instruction.opcode is Opcode.BROADCAST:
                _check_broadcast(findings, instruction)
            if options.reshape_is_bitcast and instruction.opcode is Opcode.RESHAPE:
                _check_reshape(findings, computation, instruction)


def _check_sensitive(findings: Findings, computation: Computation, instruction: Instruction) -> None:
    opcode = instruction.opcode
    if not has_layout(instruction.shape):
        findings.add(instruction, "L1", f"has shape {instruction.shape}, expected a layout on every array")
    if opcode in PASSES_DATA_UNCHANGED:
        _check_passed(findings, computation, instruction)
    if opcode in _TAKES_ARGUMENTS or opcode in (Opcode.WHILE, Opcode.CONDITIONAL):
        _check_arguments(findings, instruction)
    if opcode is Opcode.BITCAST:
        _check_bitcast(findings, instruction)
    elif opcode is Opcode.COPY:
        _check_copy(findings, instruction)
    elif opcode is Opcode.SCAN and instruction.payload_as(ScanPayload).is_associative is not True:
        findings.add(instruction, "L7", "is not associative, expected it to be expanded into a loop before layout assignment")


# -- data that passes ----------------------------------------------------------------------------------------------------


def _check_passed(findings: Findings, computation: Computation, instruction: Instruction) -> None:
    """L2: the result has the layout of what it passes on."""
    try:
        inferred = infer_site(site_of(findings, instruction))
    except ShapeError:
        return  # T1 says so
    if not has_layout(inferred):
        return  # L1 says so, where the layout is missing: XLA's own passes leave such roots in fusions
    ignoring = _ignored(findings)
    if instruction.opcode in _ONLY_ORDER:
        ignoring = Ignoring.ALL_BUT_ORDER
    elif instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE and computation in findings.fusion_bodies:
        ignoring |= Ignoring.TILES | Ignoring.MEMORY_SPACE
    stated = instruction.shape
    if compatible(stated, inferred) and not equal(stated, inferred, ignoring):
        findings.add(instruction, "L2", f"has shape {stated}, expected {inferred}, since {instruction.opcode} moves no data")


def _ignored(findings: Findings) -> Ignoring:
    return Ignoring.NOTHING if findings.options.element_sizes_agree else Ignoring.ELEMENT_SIZE


def _check_arguments(findings: Findings, instruction: Instruction) -> None:
    """L2: parameters of callees have their operands' layouts, and roots the result's."""
    for number, callee in enumerate(instruction.called_computations):
        program = findings.program(callee)
        operands = [operand.shape for operand in instruction.operands]
        if instruction.opcode is Opcode.CONDITIONAL:
            operands = operands[number + 1 : number + 2]
        for i, (operand, parameter) in enumerate(zip(operands, program.parameters, strict=False)):
            if compatible(operand, parameter) and not equal(operand, parameter, _ignored(findings)):
                findings.add(instruction, "L2", f"parameter {i} of {callee.name} has shape {parameter}, expected {operand}")
        # The rule of a conditional is branch 0's root, of a loop its operand.
        returns = number == 0 if instruction.opcode is Opcode.WHILE else number > 0
        ignoring = _ignored(findings)
        if instruction.opcode is Opcode.CONDITIONAL:
            ignoring |= Ignoring.DYNAMIC
        if returns and compatible(program.result, instruction.shape) and not equal(program.result, instruction.shape, ignoring):
            message = f"the root of {callee.name} has shape {program.result}, expected {instruction.shape}"
            findings.add(instruction, "L2", message)


def _check_bitcast(findings: Findings, bitcast: Instruction) -> None:
    """L4: as many bytes, in the same memory."""
    operand, size = bitcast.operand(0), findings.options.shape_size_bytes
    if size(bitcast.shape) != size(operand.shape) and not (
        findings.options.allow_bitcast_of_other_size and _data_bits(bitcast.shape) == _data_bits(operand.shape)
    ):
        found, expected = size(bitcast.shape), size(operand.shape)
        findings.add(bitcast, "L4", f"has {found} bytes, expected {expected} of operand 0, {operand.shape}")
    spaces = [_memory_space(shape) for shape in (bitcast.shape, operand.shape)]
    on_host = {space == HOST_MEMORY_SPACE for space in spaces}
    if len(on_host) > 1 and not _is_constant(operand):
        findings.add(bitcast, "L4", f"is in memory space {spaces[0]}, expected {spaces[1]} of operand 0")


def _data_bits(shape: Shape) -> int:
    return shape.element_count * shape.element_type.bits if isinstance(shape, ArrayShape) else -1


def _memory_space(shape: Shape) -> int:
    return shape.layout.memory_space if isinstance(shape, ArrayShape) and shape.layout is not None else 0


def _is_constant(instruction: Instruction) -> bool:
    while instruction.opcode is Opcode.COPY:
        instruction = instruction.operand(0)
    return instruction.opcode is Opcode.CONSTANT


def _check_copy(findings: Findings, copy: Instruction) -> None:
    """L5: what comes from the host, or goes there, is not transposed on the way."""
    ours, theirs = copy.shape, copy.operand(0).shape
    spaces = _memory_space(ours), _memory_space(theirs)
    if spaces[0] == spaces[1] or HOST_MEMORY_SPACE not in spaces:
        return
    # A copy whose result is on the host may yet turn out to be from host to host, which may transpose.
    if spaces[0] != HOST_MEMORY_SPACE and not equal(ours, theirs, Ignoring.MEMORY_SPACE):
        findings.add(copy, "L5", f"has shape {ours}, expected {theirs} of the host but for the memory space")


# -- layouts that are preserved ------------------------------------------------------------------------------------------


def _check_preserved(findings: Findings, instruction: Instruction) -> None:
    """L3: operands of the result's rank have the result's layout."""
    result = instruction.shape
    if not isinstance(result, ArrayShape) or result.layout is None:
        return
    for number, operand in enumerate(instruction.operands):
        shape = operand.shape
        if not isinstance(shape, ArrayShape) or shape.rank != result.rank or shape.layout is None:
            continue
        ignoring = _ignored(findings) | Ignoring.TILES | Ignoring.MEMORY_SPACE
        selects = instruction.opcode is Opcode.SELECT and shape.element_type.is_pred
        if instruction.opcode in _ELEMENT_SIZE_CHANGES or selects:
            ignoring |= Ignoring.ELEMENT_SIZE
        if not equal_layouts(result.layout, shape.layout, ignoring):
            findings.add(instruction, "L3", f"has layout {result.layout}, expected {shape.layout} of operand {number}")


def _check_broadcast(findings: Findings, broadcast: Instruction) -> None:
    """L8."""
    dimensions = broadcast.payload_as(DimensionsPayload).dimensions
    if list(dimensions) != sorted(dimensions):
        findings.add(broadcast, "L8", f"has dimensions {dimensions}, expected ascending ones")


def _check_reshape(findings: Findings, computation: Computation, reshape: Instruction) -> None:
    """L9."""
    operand, result = reshape.operand(0).shape, reshape.shape
    if not isinstance(operand, ArrayShape) or not isinstance(result, ArrayShape) or computation in findings.fusion_bodies:
        return
    if not reshape_is_bitcast(operand, result):
        findings.add(reshape, "L9", f"reshapes {operand} to {result}, expected layouts between which no data moves")


def reshape_is_bitcast(source: ArrayShape, target: ArrayShape) -> bool:
    """Whether elements keep their places in memory, tiles aside.

    Both shapes fall into groups of neighbouring dimensions of equal size. The elements stay where each group is contiguous and
    row-major on both sides, and the groups lie in memory in the same order. Dimensions of size 1 do not matter.
    """
    if source.element_count != target.element_count or source.layout is None or target.layout is None:
        return False
    if source.element_count == 0:
        return True
    orders = [
        _group_order(shape, groups) for shape, groups in zip((source, target), _factor_groups(source, target), strict=True)
    ]
    return orders[0] is not None and orders[0] == orders[1]


def _factor_groups(source: ArrayShape, target: ArrayShape) -> tuple[list[list[int]], list[list[int]]]:
    """Smallest groups of dimensions, not of size 1, with pairwise equal numbers of elements."""
    left = [d for d in range(source.rank) if source.dimensions[d] != 1]
    right = [d for d in range(target.rank) if target.dimensions[d] != 1]
    groups: tuple[list[list[int]], list[list[int]]] = ([], [])
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        while (x := math.prod(source.dimensions[d] for d in a)) != (y := math.prod(target.dimensions[d] for d in b)):
            (a if x < y else b).append((left if x < y else right).pop(0))
        groups[0].append(a)
        groups[1].append(b)
    return groups


def _group_order(shape: ArrayShape, groups: list[list[int]]) -> list[int] | None:
    """Numbers of the groups from major to minor in memory; ``None`` where one is not contiguous and row-major."""
    assert shape.layout is not None, shape
    in_memory = [d for d in shape.layout.major_to_minor if shape.dimensions[d] != 1]
    starts = {group[0]: number for number, group in enumerate(groups)}
    order: list[int] = []
    while in_memory:
        number = starts.get(in_memory[0])
        if number is None or in_memory[: len(groups[number])] != groups[number]:
            return None
        del in_memory[: len(groups[number])]
        order.append(number)
    return order


# -- the entry's signature -----------------------------------------------------------------------------------------------


def _check_entry_layout(findings: Findings) -> None:
    """L6: what the caller was told is what the entry takes and returns."""
    module, layout = findings.module, findings.module.entry_layout
    if layout is None:
        return
    parameters = module.entry.parameters
    if len(parameters) != len(layout.parameters):
        count, expected = len(layout.parameters), len(parameters)
        findings.add(module, "L6", f"entry_computation_layout has {count} parameters, expected {expected}")
    for parameter, stated in zip(parameters, layout.parameters, strict=False):
        if not _fits_entry(findings, parameter.shape, stated):
            findings.add(parameter, "L6", f"has shape {parameter.shape}, expected {stated} of entry_computation_layout")
    root = module.entry.root
    if not _fits_entry(findings, root.shape, layout.result):
        findings.add(root, "L6", f"has shape {root.shape}, expected {layout.result} of entry_computation_layout")


def _fits_entry(findings: Findings, shape: Shape, stated: Shape) -> bool:
    """Tiles, padding and memory space may be missing in the entry layout."""
    if not findings.options.layout_sensitive or not compatible(shape, stated):
        return compatible(shape, stated)
    return equal(shape, stated, Ignoring.TILES | Ignoring.TAIL_PADDING | Ignoring.MEMORY_SPACE)

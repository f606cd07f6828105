"""How XLA:GPU emits a fusion, as far as sharing memory depends on it (``xla/service/gpu/hlo_fusion_analysis.cc``).

1. The *roots* are the outputs; the *hero* of a root is the operation behind it that decides how it is emitted: a tiled
   transpose, a concatenation or a reduction found behind elementwise operations, else the root itself.
2. A fusion is emitted by Triton, cuDNN or as a custom fusion if its backend config says so; as a *reduction* if a hero is a
   real reduction and the other outputs have the shape of its input or are reductions of the same dimensions; as a *transpose*
   if the tiled transposes among the heroes agree; else as a loop, a scatter, a sort or a concatenation.
3. A loop's heroes are its roots.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from enum import Enum
from itertools import pairwise

from attrs import frozen

from layoutsim.analysis.elementwise import is_elementwise
from layoutsim.analysis.gpu_reduction import is_real_reduction_hero, reduction_dimensions
from layoutsim.analysis.gpu_transpose import tiled_transpose
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.ir.shape import ArrayShape, Shape, TupleShape, leaves, order_or_default

_MAX_CONCATENATED = 4


class EmitterKind(Enum):
    """What emits a fusion; rule (2)."""

    CUSTOM = "custom"
    TRITON = "triton"
    CUDNN = "cudnn"
    REDUCTION = "reduction"
    TRANSPOSE = "transpose"
    SCATTER = "scatter"
    SORT = "sort"
    CONCATENATE = "concatenate"
    LOOP = "loop"


_BY_CONFIG = {
    "__custom_fusion": EmitterKind.CUSTOM,
    "__triton": EmitterKind.TRITON,
    "__triton_gemm": EmitterKind.TRITON,
    "__triton_nested_gemm_fusion": EmitterKind.TRITON,
    "__triton_collective": EmitterKind.TRITON,
    "__cudnn$fusion": EmitterKind.CUDNN,
}


@frozen(eq=False)
class GpuFusion:
    """Roots and heroes, output by output, and what emits them."""

    kind: EmitterKind
    roots: tuple[Instruction, ...]
    heroes: tuple[Instruction, ...]

    @property
    def reduction_hero(self) -> Instruction | None:
        """The reduction that the reduction emitter does first; ``None`` for other emitters."""
        if self.kind is not EmitterKind.REDUCTION:
            return None
        pairs = zip(self.roots, self.heroes, strict=True)
        return next(hero for root, hero in pairs if is_real_reduction_hero(root, hero))


def analyze_fusion(fusion: Instruction) -> GpuFusion:
    """How ``fusion`` is emitted."""
    roots = tuple(_roots(fusion.to_apply.root))
    heroes = tuple(map(hero_of, roots))
    kind = _emitter(fusion, roots, heroes)
    return GpuFusion(kind, roots, roots if kind is EmitterKind.LOOP else heroes)


def _roots(instruction: Instruction) -> list[Instruction]:
    if instruction.opcode is not Opcode.TUPLE:
        return [instruction]
    return [root for operand in instruction.operands for root in _roots(operand)]


def _emitter(fusion: Instruction, roots: tuple[Instruction, ...], heroes: tuple[Instruction, ...]) -> EmitterKind:
    said = _BY_CONFIG.get(_config_kind(fusion))
    if said is not None:
        return said
    if _is_reduction(roots, heroes):
        return EmitterKind.REDUCTION
    if _has_consistent_transpose(roots, heroes):
        return EmitterKind.TRANSPOSE
    if len(roots) > 1:
        return EmitterKind.LOOP
    ((root, hero),) = zip(roots, heroes, strict=True)
    if root.opcode is Opcode.SCATTER:
        return EmitterKind.SCATTER
    if root.opcode is Opcode.SORT:
        return EmitterKind.SORT
    is_concatenation = hero.opcode is Opcode.CONCATENATE and hero.operand_count <= _MAX_CONCATENATED
    return EmitterKind.CONCATENATE if is_concatenation else EmitterKind.LOOP


_KIND = re.compile(r'"fusion_backend_config":\{"kind":"([^"]*)"')


def _config_kind(fusion: Instruction) -> str:
    text = fusion.attributes.backend_config
    if "fusion_backend_config" not in text:
        return ""
    quick = _KIND.search(text)
    if quick is not None:
        return quick.group(1)
    try:
        config: object = json.loads(text)
    except json.JSONDecodeError:
        return ""
    match config:
        case {"fusion_backend_config": {"kind": str() as kind}}:
            return kind
        case _:
            return ""


def _is_reduction(roots: tuple[Instruction, ...], heroes: tuple[Instruction, ...]) -> bool:
    pairs = list(zip(roots, heroes, strict=True))
    first = next((hero for root, hero in pairs if is_real_reduction_hero(root, hero)), None)
    if first is None:
        return False
    for root, hero in pairs:
        if root is first:
            continue
        if is_real_reduction_hero(root, hero):
            if reduction_dimensions(hero) != reduction_dimensions(first):
                return False
        elif _element_count(root.shape) != _element_count(first.operand(0).shape):
            return False
    return True


def _has_consistent_transpose(roots: tuple[Instruction, ...], heroes: tuple[Instruction, ...]) -> bool:
    tiled = [(hero, tiled_transpose(hero)) for hero in heroes]
    found = [(hero, transpose) for hero, transpose in tiled if transpose is not None]
    if not found or any(transpose != found[0][1] for _, transpose in found):
        return False
    source = found[0][0].operand(0).shape
    others = [root for root, (_, transpose) in zip(roots, tiled, strict=True) if transpose is None]
    return all(is_bitcast(other.shape, source) for other in others)


# -- heroes ------------------------------------------------------------------------------------------------------------


def hero_of(root: Instruction) -> Instruction:
    """The operation behind ``root`` that decides how it is emitted; rule (1)."""
    hero = root
    while _is_intermediate(hero, 1) and hero.operand(0).opcode is not Opcode.PARAMETER:
        hero = hero.operand(0)
    transpose = _only_behind(hero, lambda node: tiled_transpose(node) is not None)
    if transpose is not None:
        return transpose
    concatenation = _only_behind(hero, lambda node: node.opcode is Opcode.CONCATENATE)
    if concatenation is not None:
        return concatenation
    return hero if hero.opcode is Opcode.REDUCE else root


def _only_behind(root: Instruction, is_wanted: Callable[[Instruction], bool]) -> Instruction | None:
    """The only wanted operation reached from ``root`` over intermediate ones, if only such stand between it and all outputs."""
    found: Instruction | None = None
    seen = {root}
    pending = deque([root])
    while pending:
        node = pending.popleft()
        if is_wanted(node):
            if found is not None:
                return None
            found = node
        elif _is_intermediate(node, 3):
            for operand in node.operands:
                if operand not in seen and operand.opcode is not Opcode.PARAMETER:
                    seen.add(operand)
                    pending.append(operand)
    return found if found is not None and _leads_only_through_intermediates(found) else None


def _leads_only_through_intermediates(start: Instruction) -> bool:
    seen = set[Instruction]()
    pending = deque(start.users)
    while pending:
        node = pending.popleft()
        if node in seen or (node.opcode is Opcode.TUPLE and node.is_root):
            continue
        seen.add(node)
        if node.opcode is not Opcode.TUPLE and not _is_intermediate(node, 3):
            return False
        pending += node.users
    return True


def _is_intermediate(instruction: Instruction, most_operands: int) -> bool:
    if not 0 < instruction.operand_count <= most_operands:
        return False
    if is_elementwise(instruction):
        return instruction.opcode is not Opcode.COPY or instruction.shape == instruction.operand(0).shape
    match instruction.opcode:
        case Opcode.BITCAST:
            return True
        case Opcode.RESHAPE:
            return is_bitcast(instruction.operand(0).shape, instruction.shape)
        case Opcode.TRANSPOSE:
            return _transpose_is_bitcast(instruction)
        case _:
            return False


def _transpose_is_bitcast(transpose: Instruction) -> bool:
    source, result = transpose.operand(0).shape, transpose.shape
    assert isinstance(source, ArrayShape) and isinstance(result, ArrayShape), transpose
    moved = transpose.payload_as(DimensionsPayload).dimensions
    return tuple(moved[d] for d in order_or_default(result)) == order_or_default(source)


def is_bitcast(a: Shape, b: Shape) -> bool:
    """Whether the bytes of ``a``, read as ``b``, are the same elements in the same logical order; types are ignored."""
    if not isinstance(a, ArrayShape) or not isinstance(b, ArrayShape) or a.element_count != b.element_count:
        return False
    return _blocks(a, _borders(a) & _borders(b)) == _blocks(b, _borders(a) & _borders(b))


def _borders(shape: ArrayShape) -> set[int]:
    """Products of the leading dimensions: where a row-major order may be cut."""
    product = 1
    borders = {1}
    for size in shape.dimensions:
        product *= size
        borders.add(product)
    return borders


def _blocks(shape: ArrayShape, cuts: set[int]) -> list[int] | None:
    """For each run of dimensions between ``cuts``, in memory order, its rank; ``None`` if a run is not row-major itself."""
    block_of: dict[int, int] = {}
    product, block = 1, 0
    for dimension, size in enumerate(shape.dimensions):
        if size == 1:
            continue
        block_of[dimension] = block
        product *= size
        block += product in cuts
    memory = [d for d in reversed(order_or_default(shape)) if d in block_of]
    for before, after in pairwise(memory):
        if block_of[before] == block_of[after] and before > after:
            return None
    order = [block_of[d] for i, d in enumerate(memory) if i == 0 or block_of[memory[i - 1]] != block_of[d]]
    return order if len(order) == len(set(order)) else None


def _element_count(shape: Shape) -> int:
    part = leaves(shape)[0][1] if isinstance(shape, TupleShape) else shape
    return part.element_count if isinstance(part, ArrayShape) else 0

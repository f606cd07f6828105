"""Which inputs and outputs of an instruction must be in the same memory (memory spec, sections 3.1 and 3.2).

1. ``dynamic-update-slice`` writes into operand 0; ``scatter`` and ``all-reduce-start`` into operand *i* for output *i*;
   ``set-dimension-size`` and ``ragged-all-to-all`` into operands 0 and 1; in-place collective permutes into operand 1.
2. Custom calls and ``async-start`` have what their ``output_to_operand_aliasing`` says.
3. A fusion has what is found in its body, then what it says. For each leaf of its shape: go from the root back through
   tuples, tuple elements and no-op wrappers to the source; if the source writes in place into something that comes from a
   parameter in the same way, parameter and output are a pair. What a *nested* fusion says counts only on the way to the
   parameter, not as a source.
4. No-op wrappers are bitcasts; on GPUs also reshapes.

Source: ``AliasInfo::GetInPlaceInputOutputPairs`` in ``xla/hlo/analysis/alias_info.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from layoutsim.analysis.definitions import is_in_place_permute
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import Aliasing, AsyncPayload, CustomCallPayload, FusionPayload
from layoutsim.ir.shape import ShapeIndex, TupleShape, leaves

_Source = tuple[Instruction, ShapeIndex]


@frozen
class InPlacePair:
    """Operand ``operand_number`` at ``operand_index`` and the output at ``output_index`` are one buffer."""

    operand_number: int
    operand_index: ShapeIndex
    output_index: ShapeIndex


@frozen
class InPlaceRules:
    """Rules (1) to (4).

    Attributes:
        no_ops: opcodes of one operand that keep a buffer as it is; rule (4).
    """

    no_ops: frozenset[Opcode] = frozenset({Opcode.BITCAST})

    @staticmethod
    def may_pair(instruction: Instruction) -> bool:
        """Whether the opcode is one that can have pairs."""
        return instruction.opcode in _RULES or instruction.opcode is Opcode.FUSION

    def pairs(self, instruction: Instruction) -> Sequence[InPlacePair]:
        """All pairs of an instruction, in XLA's order."""
        rule = _RULES.get(instruction.opcode)
        if rule is not None:
            return rule(instruction)
        if instruction.opcode is Opcode.FUSION:
            said = instruction.payload_as(FusionPayload).output_to_operand_aliasing
            return [*self._found_in_body(instruction), *_said(said)]
        return ()

    def _found_in_body(self, fusion: Instruction) -> list[InPlacePair]:
        """Rule (3)."""
        root = fusion.to_apply.root
        found: list[InPlacePair] = []
        for index, _ in leaves(fusion.shape):
            source = self._parameter_behind(root, index)
            if source is not None:
                found.append(InPlacePair(source[0].parameter_number, source[1], index))
        return found

    def _parameter_behind(self, root: Instruction, index: ShapeIndex) -> _Source | None:
        """The fused parameter that the output at ``index`` is written into."""
        writer, writer_index = self._walk_back(root, index)
        pairs = self._found_in_body(writer) if writer.opcode is Opcode.FUSION else self.pairs(writer)
        for pair in pairs:
            if pair.output_index == writer_index:
                source = self._walk_back(writer.operand(pair.operand_number), pair.operand_index)
                if source[0].opcode is Opcode.FUSION:
                    source = self._through_nested(*source)
                return source if source[0].opcode is Opcode.PARAMETER else None
        return None

    def _through_nested(self, fusion: Instruction, index: ShapeIndex) -> _Source:
        for pair in self.pairs(fusion):
            if pair.output_index == index:
                return self._walk_back(fusion.operand(pair.operand_number), pair.operand_index)
        return fusion, index

    def _walk_back(self, instruction: Instruction, index: ShapeIndex) -> _Source:
        """All tuples first, then tuple elements, then no-ops."""
        while instruction.opcode is Opcode.TUPLE and index:
            instruction, index = instruction.operand(index[0]), index[1:]
        while instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            instruction, index = instruction.operand(0), (instruction.tuple_index, *index)
        while not index and instruction.opcode in self.no_ops:
            instruction = instruction.operand(0)
        return instruction, index


def _said(aliasing: Sequence[Aliasing]) -> list[InPlacePair]:
    return [InPlacePair(a.operand_number, a.operand_index, a.output_index) for a in aliasing]


def _first_operands(count: int) -> list[InPlacePair]:
    if count == 1:
        return [InPlacePair(0, (), ())]
    return [InPlacePair(i, (), (i,)) for i in range(count)]


def _scatter(instruction: Instruction) -> list[InPlacePair]:
    return _first_operands(instruction.operand_count // 2)  # n inputs, indices, n updates


def _collective_permute(instruction: Instruction) -> list[InPlacePair]:
    if not is_in_place_permute(instruction):
        return []
    output: ShapeIndex = (1,) if instruction.opcode is Opcode.COLLECTIVE_PERMUTE_START else ()
    target = instruction.operand(1).shape
    elements = len(target.elements) if isinstance(target, TupleShape) else 0
    return [InPlacePair(1, (), output), *(InPlacePair(1, (i,), (*output, i)) for i in range(elements))]


_RULES: dict[Opcode, Callable[[Instruction], list[InPlacePair]]] = {
    Opcode.ALL_REDUCE_START: lambda i: _first_operands(i.operand_count),
    Opcode.ASYNC_START: lambda i: _said(i.payload_as(AsyncPayload).output_to_operand_aliasing),
    Opcode.COLLECTIVE_PERMUTE: _collective_permute,
    Opcode.COLLECTIVE_PERMUTE_START: _collective_permute,
    Opcode.CUSTOM_CALL: lambda i: _said(i.payload_as(CustomCallPayload).output_to_operand_aliasing),
    Opcode.DYNAMIC_UPDATE_SLICE: lambda _i: _first_operands(1),
    Opcode.RAGGED_ALL_TO_ALL: lambda _i: [InPlacePair(1, (), ())],
    Opcode.SCATTER: _scatter,
    Opcode.SET_DIMENSION_SIZE: lambda _i: _first_operands(1),
}

"""Passes and heaps with a planted fault each: what the properties must catch."""

from collections.abc import Callable
from typing import ClassVar

from attrs import evolve, field, frozen

from layoutsim.ir import ArrayShape, Instruction, Module, Opcode, Schedule, map_arrays, without_layout
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.memory.heaps import xla_heap
from layoutsim.memory.problem import Chunk, Heap, Placement, Problem
from layoutsim.passes import Pass, PassResult
from layoutsim.passes.layout_assignment import LayoutAssignmentResult, assign_layouts, gpu_backend


def _instructions(module: Module, opcode: Opcode) -> list[Instruction]:
    return [i for c in module.computations for i in c.instructions if i.opcode is opcode]


@frozen
class WrongShape(Pass):
    """Gives a transpose the shape of its operand (invalid IR)."""

    name: ClassVar[str] = "wrong-shape"

    def run(self, module: Module) -> PassResult:
        found = _instructions(module, Opcode.TRANSPOSE)
        for transpose in found:
            transpose.shape = transpose.operand(0).shape
        return PassResult(changed=bool(found))


@frozen
class Liar(Pass):
    """Lays a negation out anew and says that nothing changed."""

    name: ClassVar[str] = "liar"

    def run(self, module: Module) -> PassResult:
        for instruction in module.entry.instructions:
            if isinstance(instruction.shape, ArrayShape) and instruction.shape.rank > 1:
                instruction.shape = instruction.shape.with_order(instruction.shape.minor_to_major[::-1])
        return PassResult(changed=False)


@frozen
class Forgetful(Pass):
    """Names instructions by a count that it keeps between runs."""

    name: ClassVar[str] = "forgetful"
    runs: ClassVar[list[int]] = []

    def run(self, module: Module) -> PassResult:
        self.runs.append(0)
        module.entry.root.name = f"root.run{len(self.runs)}"
        return PassResult(changed=True)


@frozen
class Unreadable(Pass):
    """Gives the root a name that no reader takes."""

    name: ClassVar[str] = "unreadable"

    def run(self, module: Module) -> PassResult:
        module.entry.root.name = "the root"
        return PassResult(changed=True)


@frozen
class MergeTransposes(Pass):
    """Merges two transposes in a row, composing the permutations the wrong way round."""

    name: ClassVar[str] = "merge-transposes"

    def run(self, module: Module) -> PassResult:
        changed = False
        for outer in _instructions(module, Opcode.TRANSPOSE):
            inner = outer.operand(0)
            if inner.opcode is Opcode.TRANSPOSE:
                p, q = (t.payload_as(DimensionsPayload).dimensions for t in (inner, outer))
                outer.payload = DimensionsPayload(tuple(q[d] for d in p))
                outer.replace_operand(0, inner.operand(0))
                if not inner.user_count and not inner.is_root:
                    inner.parent.erase(inner)
                changed = True
        return PassResult(changed)


@frozen
class SwapOperands(Pass):
    """Swaps the operands of subtractions."""

    name: ClassVar[str] = "swap-operands"

    def run(self, module: Module) -> PassResult:
        found = [i for i in _instructions(module, Opcode.SUBTRACT) if i.operand(0) is not i.operand(1)]
        for subtract in found:
            left, right = subtract.operands
            subtract.replace_operand(0, right)
            subtract.replace_operand(1, left)
        return PassResult(changed=bool(found))


@frozen
class NextDevice(Pass):
    """Sends every collective-permute the other way."""

    name: ClassVar[str] = "next-device"

    def run(self, module: Module) -> PassResult:
        found = _instructions(module, Opcode.COLLECTIVE_PERMUTE)
        for permute in found:
            pairs = permute.payload.source_target_pairs
            permute.payload = evolve(permute.payload, source_target_pairs=tuple((t, s) for s, t in pairs))
        return PassResult(changed=bool(found))


@frozen
class Crash(Pass):
    """Asserts that every module is small."""

    name: ClassVar[str] = "crash"

    def run(self, module: Module) -> PassResult:
        assert module.instruction_count < 10, "too many instructions"
        return PassResult(changed=False)


@frozen
class HashOrder(Pass):
    """Numbers instructions in the order of a set of their names."""

    name: ClassVar[str] = "hash-order"

    def run(self, module: Module) -> PassResult:
        by_name = {i.name: i for i in module.entry.instructions}
        for number, name in enumerate({*by_name}):
            by_name[name].name = f"n.{number}"
        return PassResult(changed=True)


# -- layouts -------------------------------------------------------------------------------------------------------------


@frozen
class FreeGathers(Pass):
    """Layout assignment in which all-gathers take any layout."""

    name: ClassVar[str] = "free-gathers"
    backend: ClassVar[str] = "gpu"

    def run(self, module: Module) -> LayoutAssignmentResult:
        rules = gpu_backend()
        demands = {opcode: rule for opcode, rule in rules.demands.items() if opcode is not Opcode.ALL_GATHER}
        return assign_layouts(module, evolve(rules, demands=demands))


@frozen(eq=False)
class SpoiledLayouts(Pass):
    """XLA's layout assignment, after which ``spoil`` does something to the module."""

    spoil: Callable[[Module], None] = field(kw_only=True)
    name: ClassVar[str] = "spoiled-layouts"
    backend: ClassVar[str] = "gpu"

    def run(self, module: Module) -> LayoutAssignmentResult:
        result = assign_layouts(module, gpu_backend())
        self.spoil(module)
        return result


def turn_loop_bodies(module: Module) -> None:
    """The body's parameter and the elements taken from it get the reverse layouts."""
    for loop in _instructions(module, Opcode.WHILE):
        (parameter,) = loop.body.parameters
        parameter.shape = map_arrays(parameter.shape, lambda leaf: leaf.with_order(leaf.minor_to_major[::-1]))


def turn_parameters(module: Module) -> None:
    """Entry parameters get the reverse layout, whatever was asked for."""
    for parameter in module.entry.parameters:
        if isinstance(parameter.shape, ArrayShape):
            parameter.shape = parameter.shape.with_order(parameter.shape.minor_to_major[::-1])


def unset_one(module: Module) -> None:
    """The root's layout is forgotten."""
    module.entry.root.shape = without_layout(module.entry.root.shape)


def drop_an_instruction(module: Module) -> None:
    """A negation is taken out."""
    for negate in _instructions(module, Opcode.NEGATE):
        if not negate.is_root:
            negate.replace_all_uses_with(negate.operand(0))
            negate.parent.erase(negate)


# -- schedules and memory --------------------------------------------------------------------------------------------------


@frozen
class BackwardSchedule(Pass):
    """A schedule from the last instruction to the first."""

    name: ClassVar[str] = "backward-schedule"

    def run(self, module: Module) -> PassResult:
        module.schedule = Schedule({module.entry: list(reversed(module.entry.instructions))})
        return PassResult(changed=True)


@frozen
class DropCopies(Pass):
    """Takes out every copy that changes no layout, needed or not."""

    name: ClassVar[str] = "drop-copies"

    def run(self, module: Module) -> PassResult:
        found = [i for i in _instructions(module, Opcode.COPY) if i.shape == i.operand(0).shape]
        for copy in found:
            copy.replace_all_uses_with(copy.operand(0))
            copy.parent.erase(copy)
        return PassResult(changed=bool(found))


@frozen
class AllAtZero:
    """A heap that places every value at offset 0."""

    name: str = "all-at-zero"

    def pack(self, problem: Problem) -> Placement:
        chunks = {member.id: Chunk(0, group.size) for group in problem.groups for member in group.members}
        return Placement((Heap(chunks, max((group.size for group in problem.groups), default=0)),))


@frozen
class Unaligned:
    """XLA's heap, moved by a byte."""

    name: str = "unaligned"

    def pack(self, problem: Problem) -> Placement:
        heap = xla_heap().pack(problem).heaps[0]
        return Placement((Heap({n: evolve(c, offset=c.offset + 1) for n, c in heap.chunks.items()}, heap.size + 1),))


@frozen
class Loser:
    """XLA's heap without the last value."""

    name: str = "loser"

    def pack(self, problem: Problem) -> Placement:
        heap = xla_heap().pack(problem).heaps[0]
        return Placement((Heap(dict(list(heap.chunks.items())[:-1]), heap.size),))


@frozen
class Understated:
    """XLA's heap, whose size is said to be smaller than it is."""

    name: str = "understated"

    def pack(self, problem: Problem) -> Placement:
        heap = xla_heap().pack(problem).heaps[0]
        return Placement((Heap(heap.chunks, heap.size // 2),))

"""What the checks share: the options of a run, and the list that findings are collected in."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field, frozen

from layoutsim.errors import Diagnostic
from layoutsim.infer import ProgramShape, program_shape
from layoutsim.ir import Computation, Instruction, Module, Shape, byte_size


@frozen(kw_only=True)
class VerifyOptions:
    """How strict a run is. The defaults suit a module before layout assignment.

    Attributes:
        layout_sensitive: layouts must agree wherever data passes unchanged (L1 to L7); for modules after layout assignment.
        allow_mixed_precision: floating operands of one instruction may differ in width (T3, T4).
        allow_unbounded_dimensions: sizes ``?`` are accepted (T5).
        check_replica_groups: groups must name every device once (C1 to C4).
        check_threads: callees run on their caller's thread (S10).
        unique_names: no two instructions of the module share a name, as in XLA, whose parser renames the second (S6).
        broadcast_dimensions_ascend: a ``broadcast`` does not transpose (L8).
        reshape_is_bitcast: a ``reshape`` moves nothing in memory (L9).
        allow_bitcast_of_other_size: a ``bitcast`` may change padding, if the data is of equal size (L4).
        element_sizes_agree: layouts that must agree do so in the bits of an element too; XLA sets these after layout assignment
            (L2, L3).
        layouts_are_preserved: opcodes outside ``MAY_CHANGE_LAYOUT`` have operands of their result's layout (L3).
        shape_size_bytes: size of a value's own buffer, as the backend counts it.
    """

    layout_sensitive: bool = False
    allow_mixed_precision: bool = True
    allow_unbounded_dimensions: bool = True
    check_replica_groups: bool = True
    check_threads: bool = True
    unique_names: bool = False
    broadcast_dimensions_ascend: bool = False
    reshape_is_bitcast: bool = False
    allow_bitcast_of_other_size: bool = False
    element_sizes_agree: bool = True
    layouts_are_preserved: bool = False
    shape_size_bytes: Callable[[Shape], int] = byte_size


@define
class Findings:
    """Collects diagnostics of one run, and remembers what several checks ask for.

    Attributes:
        module: being verified.
        options: of the run.
        fusion_bodies: computations that fusions call.
        async_bodies: computations that ``async-start`` instructions call.
    """

    module: Module
    options: VerifyOptions
    diagnostics: list[Diagnostic] = field(factory=list[Diagnostic])
    fusion_bodies: frozenset[Computation] = frozenset()
    async_bodies: frozenset[Computation] = frozenset()
    _programs: dict[Computation, ProgramShape] = field(factory=dict[Computation, ProgramShape])

    def add(self, where: Instruction | Computation | Module, invariant: str, message: str) -> None:
        """Record that an invariant does not hold somewhere."""
        self.diagnostics.append(Diagnostic(_place(where), invariant, message))

    def program(self, computation: Computation) -> ProgramShape:
        """Signature of a computation, looked up once."""
        found = self._programs.get(computation)
        if found is None:
            found = self._programs[computation] = program_shape(computation)
        return found


def _place(where: Instruction | Computation | Module) -> str:
    if isinstance(where, Instruction) and where.parent is not None:
        return f"{where.parent.name}/{where.name}"
    return where.name

"""A module: computations, the entry's signature, aliasing and a schedule (``xla/hlo/ir/hlo_module.h``; text spec, 1.5)."""

from __future__ import annotations

from attrs import define, field, frozen

from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.schedule import Schedule
from layoutsim.ir.shape import Shape, ShapeIndex


@frozen
class ComputationLayout:
    """Layouts of a computation's parameters and result; an array without layout is *automatic* (unset)."""

    parameters: tuple[Shape, ...]
    result: Shape


@frozen
class InputOutputAlias:
    """The output at ``output_index`` lives in the buffer of a parameter (a donated argument that is used)."""

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex = ()
    must_alias: bool = False


@frozen(order=True)
class BufferDonor:
    """A donated argument that the compiler may alias with any output."""

    parameter_number: int
    parameter_index: ShapeIndex = ()


@frozen
class ModuleConfig:
    """What stands in the module header besides the entry layout and aliasing.

    Attributes:
        allow_spmd_sharding_propagation_to_parameters: as text, ``""`` where absent (the same for output,
            frontend attributes, and the origin recovery table).
        stack_frames: text of the stack frame index (file names, functions, locations, frames), kept verbatim.
    """

    replica_count: int = 1
    num_partitions: int = 1
    alias_passthrough_params: bool = False
    allow_spmd_sharding_propagation_to_parameters: str = ""
    allow_spmd_sharding_propagation_to_output: str = ""
    frontend_attributes: str = ""
    origin_recovery_table: str = ""
    stack_frames: str = ""

    @property
    def uses_spmd_partitioning(self) -> bool:
        return self.num_partitions != 1


@define(eq=False, repr=False)
class Module:
    """A whole HLO program.

    Attributes:
        entry_layout: layouts the caller passes and expects; automatic where unset.
        schedule: ``None`` while the module is not scheduled.
    """

    name: str
    config: ModuleConfig = field(factory=ModuleConfig)
    entry_layout: ComputationLayout | None = None
    input_output_aliases: tuple[InputOutputAlias, ...] = ()
    buffer_donors: tuple[BufferDonor, ...] = ()
    schedule: Schedule | None = None
    _computations: dict[Computation, None] = field(factory=dict[Computation, None], init=False)
    _entry: Computation | None = field(default=None, init=False)
    _used_suffixes: dict[str, set[int]] | None = field(default=None, init=False)
    _next_suffix: dict[str, int] = field(factory=dict[str, int], init=False)

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def computations(self) -> tuple[Computation, ...]:
        """All computations in stored order, callees before callers."""
        return tuple(self._computations)

    @property
    def entry(self) -> Computation:
        assert self._entry is not None, f"module {self.name} has no entry"
        return self._entry

    @property
    def instruction_count(self) -> int:
        return sum(c.instruction_count for c in self._computations)

    def find_computation(self, name: str) -> Computation:
        """The computation called ``name``.

        Raises:
            KeyError: there is none.
        """
        for computation in self._computations:
            if computation.name == name:
                return computation
        raise KeyError(f"module {self.name} has no computation {name}")

    def find(self, computation: str, instruction: str) -> Instruction:
        """Shorthand for ``find_computation(...).find(...)``."""
        return self.find_computation(computation).find(instruction)

    def to_text(self) -> str:
        """HLO text that reads back as an equal module, and that XLA's own parser accepts."""
        from layoutsim.text.printer import print_module

        return print_module(self)

    # -- writing ---------------------------------------------------------------------------------------------------

    def add_computation(
        self, computation: Computation, *, is_entry: bool = False, before: Computation | None = None
    ) -> Computation:
        """Add a computation, behind all others or in front of ``before``."""
        assert computation.parent is None, f"{computation!r} belongs to a module already"
        computation.parent = self
        self._computations[computation] = None
        if before is not None:
            order = [c for c in self._computations if c is not computation]
            order.insert(order.index(before), computation)
            self._computations = dict.fromkeys(order)
        if is_entry:
            self._entry = computation
        if self._used_suffixes is not None:
            self._register_all(computation)
        return computation

    def remove_computation(self, computation: Computation) -> None:
        assert computation is not self._entry, "the entry cannot be removed"
        del self._computations[computation]
        if self.schedule is not None:
            self.schedule.sequences.pop(computation, None)
        computation.parent = None

    # -- names -----------------------------------------------------------------------------------------------------

    def unique_name(self, wished: str) -> str:
        """A name no instruction or computation of this module has: the wish, or its stem with the next free number.

        XLA's rule (``xla/service/name_uniquer.h``): a trailing ``.N`` is a number of the stem; the first request for a stem
        gets it bare, later clashes the smallest unused number.
        """
        stem, number = split_name(wished)
        used = self._suffixes().setdefault(stem, set())
        if number in used:
            number = self._next_suffix.get(stem, 0)
            while number in used:
                number += 1
            self._next_suffix[stem] = number + 1
        used.add(number)
        if number == 0:
            return f"{stem}.0" if split_name(wished)[0] != wished else stem
        return f"{stem}.{number}"

    def register_name(self, name: str) -> None:
        """Make ``name`` count as taken."""
        if self._used_suffixes is not None:
            stem, number = split_name(name)
            self._used_suffixes.setdefault(stem, set()).add(number)

    def _suffixes(self) -> dict[str, set[int]]:
        if self._used_suffixes is None:
            self._used_suffixes = {}
            for computation in self._computations:
                self._register_all(computation)
        return self._used_suffixes

    def _register_all(self, computation: Computation) -> None:
        self.register_name(computation.name)
        for instruction in computation.instructions:
            self.register_name(instruction.name)

    def __repr__(self) -> str:
        return f"<module {self.name}, {len(self._computations)} computations, {self.instruction_count} instructions>"


def split_name(name: str) -> tuple[str, int]:
    """``("add", 12)`` of ``add.12``; names without a number have number 0."""
    stem, dot, digits = name.rpartition(".")
    return (stem, int(digits)) if dot and stem and digits.isascii() and digits.isdigit() else (name, 0)

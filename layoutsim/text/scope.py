"""Names while a text is read: the instructions of one computation, and the computations of the module."""

from __future__ import annotations

from attrs import define, field

from layoutsim.ir import Computation, Instruction
from layoutsim.text.lexer import PRIMITIVES, RESERVED


@define(eq=False)
class Scope:
    """The computation being read.

    Attributes:
        names: instructions by the text of an operand: ``%x`` for all, and ``x`` where a bare ``x`` lexes as a name.
        parameters: parameter instructions by number.
        root: the instruction marked ROOT.
        generated: instructions whose names the text does not show; they make way for names it does show.
        makes_parameters: unknown operands become parameters (single-instruction texts).
    """

    computation: Computation
    names: dict[str, Instruction] = field(factory=dict[str, Instruction])
    parameters: dict[int, Instruction] = field(factory=dict[int, Instruction])
    root: Instruction | None = None
    generated: set[str] = field(factory=set[str])
    makes_parameters: bool = False

    def find(self, name: str) -> Instruction | None:
        return self.names.get(f"%{name}")

    def add(self, instruction: Instruction) -> None:
        """Put an instruction whose name is free at the end of the computation."""
        name = instruction.name
        self.names[f"%{name}"] = instruction
        if name not in RESERVED:
            self.names[name] = instruction
        self.computation.adopt(instruction)

    def free_name(self, stem: str) -> str:
        """``stem``, ``stem.1``, ...: the first that no instruction has yet."""
        name, number = stem, 0
        while f"%{name}" in self.names:
            number += 1
            name = f"{stem}.{number}"
        return name

    def make_way_for(self, name: str) -> None:
        """Rename a generated instruction that has the name which the text now gives to another."""
        if name in self.generated:
            instruction = self.names.pop(f"%{name}")
            self.names.pop(name, None)
            self.generated.discard(name)
            self.names[f"%{name}"] = instruction  # taken while the next free name is looked for
            instruction.name = self.free_name(name)
            del self.names[f"%{name}"]
            self.generated.add(instruction.name)
            self.names[f"%{instruction.name}"] = self.names[instruction.name] = instruction


@define(eq=False)
class ComputationTable:
    """Computations by name (``%x`` and ``x``), in order, and those whose names the text does not show."""

    names: dict[str, Computation] = field(factory=dict[str, Computation])
    order: list[Computation] = field(factory=list[Computation])
    generated: list[Computation] = field(factory=list[Computation])
    async_bodies: set[Computation] = field(factory=set[Computation])

    def find(self, name: str) -> Computation | None:
        return self.names.get(f"%{name}")

    def add(self, computation: Computation) -> None:
        self.order.append(computation)
        self.names[f"%{computation.name}"] = computation
        if computation.name not in RESERVED:
            self.names[computation.name] = computation

    def add_generated(self, computation: Computation) -> None:
        """Add a computation that no text can refer to; :meth:`name_generated` gives it a free name."""
        self.order.append(computation)
        self.generated.append(computation)

    def name_generated(self) -> None:
        """``_``, ``_.1``, ...: free names in order, once all names of the text are known."""
        taken = {computation.name for computation in self.names.values()}
        next_number: dict[str, int] = {}
        for computation in self.generated:
            stem = computation.name
            name, number = stem, next_number.get(stem, 0)
            while number or name in taken:
                number = max(number, 1)
                name = f"{stem}.{number}"
                if name not in taken:
                    break
                number += 1
            next_number[stem] = number + 1
            taken.add(name)
            computation.name = name


def sanitized(name: str) -> str:
    """XLA's form of a name made of legal characters; a name that differs from its form is refused."""
    if name in PRIMITIVES:
        return f"{name}_"
    if name.startswith("__") and not name.startswith("__xla_"):
        return f"a{name[1:]}"
    return name

"""A computation: instructions in insertion order, parameters and a root (``xla/hlo/ir/hlo_computation.h``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import define, field

from layoutsim.ir.attributes import NO_ATTRIBUTES, Attributes
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import Payload
from layoutsim.ir.shape import Shape

if TYPE_CHECKING:
    from layoutsim.ir.module import Module

MAIN_THREAD = "main"


@define(eq=False, repr=False)
class Computation:
    """A function of HLO. The list of instructions keeps insertion order; erased ones leave no gap.

    Attributes:
        name: unique in the module, without ``%``.
        execution_thread: ``main`` unless stated.
        parent: the module that owns it.
    """

    name: str
    execution_thread: str = MAIN_THREAD
    parent: Module | None = field(default=None, init=False)
    _instructions: dict[Instruction, None] = field(factory=dict["Instruction", None], init=False)
    _root: Instruction | None = field(default=None, init=False)

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """A snapshot in insertion order: safe to iterate while editing."""
        return tuple(self._instructions)

    @property
    def instruction_count(self) -> int:
        return len(self._instructions)

    @property
    def root(self) -> Instruction:
        assert self._root is not None, f"computation {self.name} has no root"
        return self._root

    @root.setter
    def root(self, new: Instruction) -> None:
        assert new.parent is self, f"{new!r} is not in computation {self.name}"
        self._root = new

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """Parameter instructions by number."""
        found = [i for i in self._instructions if i.opcode is Opcode.PARAMETER]
        return tuple(sorted(found, key=lambda i: i.parameter_number))

    @property
    def is_entry(self) -> bool:
        return self.parent is not None and self.parent.entry is self

    def find(self, name: str) -> Instruction:
        """The instruction called ``name`` (a scan; build a dict when asking often).

        Raises:
            KeyError: there is none.
        """
        for instruction in self._instructions:
            if instruction.name == name:
                return instruction
        raise KeyError(f"computation {self.name} has no instruction {name}")

    def __contains__(self, instruction: object) -> bool:
        return instruction in self._instructions

    # -- writing ---------------------------------------------------------------------------------------------------

    def adopt(self, instruction: Instruction) -> Instruction:
        """Put an instruction that is in no computation at the end of the list, under the name it has."""
        assert instruction.parent is None, f"{instruction!r} is in computation {instruction.parent} already"
        instruction.parent = self
        self._instructions[instruction] = None
        if self.parent is not None:
            self.parent.register_name(instruction.name)
        return instruction

    def add(
        self,
        opcode: Opcode,
        shape: Shape,
        operands: Iterable[Instruction] = (),
        *,
        payload: Payload | None = None,
        name: str | None = None,
        called_computations: tuple[Computation, ...] = (),
        attributes: Attributes = NO_ATTRIBUTES,
    ) -> Instruction:
        """Create an instruction at the end of the list; its name is made unique in the module as XLA does.

        Args:
            name: wished for; the opcode's text when absent.
        """
        wished = name or opcode.value
        chosen = self.parent.unique_name(wished) if self.parent is not None else wished
        new = Instruction(chosen, opcode, shape, payload, list(operands), called_computations, attributes)
        new.parent = self
        self._instructions[new] = None
        return new

    def add_like(
        self,
        model: Instruction,
        operands: Iterable[Instruction],
        *,
        shape: Shape | None = None,
        payload: Payload | None = None,
    ) -> Instruction:
        """Create an instruction as ``model`` is, on other operands; ``shape`` and ``payload`` are the model's unless given."""
        return self.add(
            model.opcode,
            model.shape if shape is None else shape,
            operands,
            payload=model.payload if payload is None else payload,
            name=model.name,
            called_computations=model.called_computations,
            attributes=model.attributes,
        )

    def erase(self, instruction: Instruction) -> None:
        """Remove an instruction that nobody uses and that is not the root."""
        assert instruction.parent is self and instruction is not self._root, instruction
        assert not instruction.user_count, f"{instruction!r} still has users {instruction.users}"
        instruction.detach()
        del self._instructions[instruction]
        instruction.parent = None

    def reorder(self, order: Iterable[Instruction]) -> None:
        """Store the same instructions in another order."""
        new = dict.fromkeys(order)
        assert new.keys() == self._instructions.keys(), f"not a reordering of {self.name}"
        self._instructions = new

    def __repr__(self) -> str:
        return f"<computation %{self.name}, {len(self._instructions)} instructions>"

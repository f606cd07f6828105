"""Passes behind layout assignment that move its copies, and what they tell, so that reports follow them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from attrs import field, frozen

from layoutsim.ir import Instruction, Module
from layoutsim.passes.base import Pass, PassResult


@frozen(eq=False)
class MovedCopies(PassResult):
    """Result of a pass that moves copies.

    Attributes:
        moved: for each copy that is not where it was, what is in its place: none if nothing moves bytes any more.
    """

    moved: Mapping[Instruction, tuple[Instruction, ...]] = field(factory=dict[Instruction, tuple[Instruction, ...]], repr=False)


class MovesCopies(Pass):
    """A pass that moves copies; right behind layout assignment its copies are reported where they are afterwards."""

    @abstractmethod
    def run(self, module: Module) -> MovedCopies: ...

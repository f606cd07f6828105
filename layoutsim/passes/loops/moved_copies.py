"""What a pass behind layout assignment tells that moves copies, so that reports follow them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from layoutsim.ir import Instruction
from layoutsim.passes.base import PassResult


@frozen(eq=False)
class MovedCopies(PassResult):
    """Result of a pass that moves copies.

    Attributes:
        moved: for each copy that is not where it was, what is in its place: none if nothing moves bytes any more.
    """

    moved: Mapping[Instruction, tuple[Instruction, ...]] = field(factory=dict[Instruction, tuple[Instruction, ...]], repr=False)

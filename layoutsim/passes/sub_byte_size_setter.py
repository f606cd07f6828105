"""Elements smaller than a byte are packed (``xla/hlo/transforms/simplifiers/sub_byte_normalization.h``).

Layout assignment makes layouts that say nothing of how wide an element is. XLA runs this pass right behind it:

1. An array of a type narrower than a byte (``pred`` aside) gets a layout that states the type's width: ``s4[8]{0:E(4)}``.
2. Any other array gets one that states none.
3. Inside fusions too, and in the entry's signature. What holds a buffer stays as it is.

``sub-byte-size-setter``::

    - p = s4[8] parameter(0)
    - ROOT n = s4[8] negate(p)
    + p = s4[8]{0:E(4)} parameter(0)
    + ROOT n = s4[8]{0:E(4)} negate(p)
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from attrs import evolve, frozen

from layoutsim.ir import ArrayShape, ComputationLayout, Module, Shape, TupleShape, tuple_shape
from layoutsim.passes.base import Pass, PassResult, Remark


@frozen
class SubByteSizeSetter(Pass):
    """State the width of packed elements in their layouts."""

    name: ClassVar[str] = "sub-byte-size-setter"

    def run(self, module: Module) -> PassResult:
        remarks: list[Remark] = []
        for computation in module.computations:
            for instruction in computation.instructions:
                if (shape := with_element_sizes(instruction.shape)) is not instruction.shape:
                    instruction.shape = shape
                    remarks.append(Remark(instruction.name, f"is {shape}"))
        changed = _set_in_signature(module)
        return PassResult(bool(remarks) or changed, tuple(remarks))


@cache
def with_element_sizes(shape: Shape) -> Shape:
    """``shape`` with rules (1) and (2) applied to every array; the same object where nothing changes."""
    if isinstance(shape, TupleShape):
        elements = tuple(map(with_element_sizes, shape.elements))
        return tuple_shape(elements) if elements != shape.elements else shape
    if not isinstance(shape, ArrayShape) or shape.layout is None:
        return shape
    element_type = shape.element_type
    bits = element_type.bits if element_type.bits < 8 and not element_type.is_pred else 0
    return shape if shape.layout.element_size_bits == bits else shape.with_layout(evolve(shape.layout, element_size_bits=bits))


def _set_in_signature(module: Module) -> bool:
    layout = module.entry_layout
    if layout is None:
        return False
    module.entry_layout = ComputationLayout(
        tuple(map(with_element_sizes, layout.parameters)), with_element_sizes(layout.result)
    )
    return module.entry_layout != layout

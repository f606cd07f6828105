"""Builder: computations from Python, with inferred shapes.

Text is the better way to write a module down; the builder is for code that makes modules (generators, passes, examples):

    module, scalar = Module("sum_of_squares"), array_shape(ElementType.F32, ())
    add = Builder("add", module)
    total = add.build(add.add(add.parameter(scalar), add.parameter(scalar)))
    main = Builder("main", module)
    x = main.parameter(array_shape(ElementType.F32, (4, 8)), name="x")
    zero = main.constant(np.float32(0))
    main.build(main.reduce(main.multiply(x, x), zero, [1], total), is_entry=True)

Every method returns an :class:`~layoutsim.ir.Instruction` of the inferred shape. Opcodes without a method of their own go
through :meth:`Builder.apply`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import define, field

from layoutsim.errors import ShapeError
from layoutsim.infer import infer_shape
from layoutsim.ir import (
    NO_ATTRIBUTES,
    ArrayShape,
    Attributes,
    Computation,
    ComputationLayout,
    ElementType,
    Instruction,
    Literal,
    Module,
    Opcode,
    Shape,
    array_shape,
)
from layoutsim.ir.payloads import (
    CallPayload,
    ComparePayload,
    ConstantPayload,
    DimensionsPayload,
    DotPayload,
    DynamicSlicePayload,
    IotaPayload,
    PadPayload,
    ParameterPayload,
    Payload,
    ReshapePayload,
    SlicePayload,
    TupleIndexPayload,
)


@define(eq=False)
class Builder:
    """Adds instructions to one computation.

    Attributes:
        name: of the computation.
        module: owns the computation once :meth:`build` is called, and keeps names unique; ``None`` for a loose computation.
        computation: what has been built so far.
    """

    name: str
    module: Module | None = None
    computation: Computation = field(init=False)
    _parameter_count: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.computation = Computation(self.name)

    @staticmethod
    def into(computation: Computation) -> Builder:
        """A builder that appends to an existing computation."""
        builder = Builder(computation.name, computation.parent)
        builder.computation = computation
        builder._parameter_count = len(computation.parameters)
        return builder

    # -- any opcode ------------------------------------------------------------------------------------------------

    def apply(
        self,
        opcode: Opcode,
        *operands: Instruction,
        payload: Payload | None = None,
        calls: Iterable[Computation] = (),
        shape: Shape | None = None,
        name: str | None = None,
        attributes: Attributes = NO_ATTRIBUTES,
    ) -> Instruction:
        """Add an instruction.

        Args:
            opcode: any opcode.
            operands: instructions of this computation.
            payload: the opcode's attributes.
            calls: called computations in XLA's order.
            shape: the result shape; inferred if unset, and needed by opcodes that leave it open. A given shape is used as it
                is, layout included, once it has been found compatible.
            name: wished for; made unique in the module.
            attributes: metadata, sharding and the like.

        Raises:
            ShapeError: XLA refuses the application; the message says who, what was expected and found.
        """
        callees = tuple(calls)
        inferred = infer_shape(opcode, [operand.shape for operand in operands], payload, callees, stated=shape)
        return self.computation.add(
            opcode,
            inferred if shape is None else shape,
            operands,
            payload=payload,
            name=self._unique(name or opcode.value),
            called_computations=callees,
            attributes=attributes,
        )

    def _unique(self, wished: str) -> str:
        """A free name, also while the computation is not in the module yet."""
        if self.module is None or self.computation.parent is not None:
            return wished
        return self.module.unique_name(wished)

    def build(self, root: Instruction, *, is_entry: bool = False) -> Computation:
        """Set the root and put the computation into the module; an entry's signature becomes the module's."""
        self.computation.root = root
        if self.module is not None and self.computation.parent is None:
            self.module.add_computation(self.computation, is_entry=is_entry)
        if self.module is not None and self.module._entry is self.computation:
            parameters = tuple(p.shape for p in self.computation.parameters)
            self.module.entry_layout = ComputationLayout(parameters, root.shape)
        return self.computation

    # -- sources ---------------------------------------------------------------------------------------------------

    def parameter(self, shape: Shape, *, name: str | None = None) -> Instruction:
        """The next parameter."""
        number = self._parameter_count
        self._parameter_count += 1
        return self.apply(Opcode.PARAMETER, payload=ParameterPayload(number), shape=shape, name=name or f"p{number}")

    def constant(self, values: np.generic | np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Instruction:
        """A constant of numpy values; the element type is the one of the same name."""
        array = np.asarray(values)
        shape = array_shape(element_type_of(array.dtype), array.shape)
        return self.apply(Opcode.CONSTANT, payload=ConstantPayload(Literal.of(array, shape)), shape=shape)

    def iota(self, shape: ArrayShape, dimension: int = 0) -> Instruction:
        return self.apply(Opcode.IOTA, payload=IotaPayload(dimension), shape=shape)

    # -- elementwise -----------------------------------------------------------------------------------------------

    def add(self, left: Instruction, right: Instruction) -> Instruction:
        return self.apply(Opcode.ADD, left, right)

    def subtract(self, left: Instruction, right: Instruction) -> Instruction:
        return self.apply(Opcode.SUBTRACT, left, right)

    def multiply(self, left: Instruction, right: Instruction) -> Instruction:
        return self.apply(Opcode.MULTIPLY, left, right)

    def divide(self, left: Instruction, right: Instruction) -> Instruction:
        return self.apply(Opcode.DIVIDE, left, right)

    def maximum(self, left: Instruction, right: Instruction) -> Instruction:
        return self.apply(Opcode.MAXIMUM, left, right)

    def compare(self, left: Instruction, right: Instruction, direction: str) -> Instruction:
        return self.apply(Opcode.COMPARE, left, right, payload=ComparePayload(direction))

    def select(self, condition: Instruction, on_true: Instruction, on_false: Instruction) -> Instruction:
        return self.apply(Opcode.SELECT, condition, on_true, on_false)

    def convert(self, operand: Instruction, element_type: ElementType) -> Instruction:
        """``operand`` over another element type, in the same layout."""
        shape = array_of(operand)
        new = array_shape(element_type, shape.dimensions, None, shape.dynamic).with_layout(shape.layout)
        return self.apply(Opcode.CONVERT, operand, shape=new)

    # -- data movement ---------------------------------------------------------------------------------------------

    def copy(self, operand: Instruction, minor_to_major: Sequence[int] | None = None) -> Instruction:
        """A copy, in another order of dimensions if one is given."""
        if minor_to_major is None:
            return self.apply(Opcode.COPY, operand)
        return self.apply(Opcode.COPY, operand, shape=array_of(operand).with_order(tuple(minor_to_major)))

    def broadcast(self, operand: Instruction, sizes: Sequence[int], dimensions: Sequence[int] = ()) -> Instruction:
        """Dimension ``i`` of the operand becomes dimension ``dimensions[i]`` of the result."""
        shape = array_shape(array_of(operand).element_type, tuple(sizes))
        return self.apply(Opcode.BROADCAST, operand, payload=DimensionsPayload(tuple(dimensions)), shape=shape)

    def reshape(self, operand: Instruction, sizes: Sequence[int]) -> Instruction:
        shape = array_shape(array_of(operand).element_type, tuple(sizes))
        return self.apply(Opcode.RESHAPE, operand, payload=ReshapePayload(), shape=shape)

    def transpose(self, operand: Instruction, dimensions: Sequence[int]) -> Instruction:
        """Dimension ``i`` of the result is dimension ``dimensions[i]`` of the operand; nothing moves in memory."""
        return self.apply(Opcode.TRANSPOSE, operand, payload=DimensionsPayload(tuple(dimensions)))

    def concatenate(self, operands: Sequence[Instruction], dimension: int) -> Instruction:
        return self.apply(Opcode.CONCATENATE, *operands, payload=DimensionsPayload((dimension,)))

    def slice(
        self, operand: Instruction, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> Instruction:
        """Elements ``starts[d]`` up to but not including ``limits[d]`` of every dimension."""
        steps = tuple(strides) if strides is not None else (1,) * len(starts)
        return self.apply(Opcode.SLICE, operand, payload=SlicePayload(tuple(starts), tuple(limits), steps))

    def dynamic_slice(self, operand: Instruction, starts: Sequence[Instruction], sizes: Sequence[int]) -> Instruction:
        return self.apply(Opcode.DYNAMIC_SLICE, operand, *starts, payload=DynamicSlicePayload(tuple(sizes)))

    def dynamic_update_slice(self, operand: Instruction, update: Instruction, starts: Sequence[Instruction]) -> Instruction:
        """``operand`` with ``update`` written at ``starts``."""
        return self.apply(Opcode.DYNAMIC_UPDATE_SLICE, operand, update, *starts)

    def pad(self, operand: Instruction, value: Instruction, low: Sequence[int], high: Sequence[int]) -> Instruction:
        return self.apply(Opcode.PAD, operand, value, payload=PadPayload(tuple(low), tuple(high), interior=(0,) * len(low)))

    # -- contraction and reduction ---------------------------------------------------------------------------------

    def dot(
        self,
        left: Instruction,
        right: Instruction,
        contracting: tuple[Sequence[int], Sequence[int]],
        batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> Instruction:
        """``contracting`` and ``batch`` name dimensions of the left and of the right operand, paired in order."""
        payload = DotPayload(tuple(contracting[0]), tuple(contracting[1]), tuple(batch[0]), tuple(batch[1]))
        return self.apply(Opcode.DOT, left, right, payload=payload)

    def reduce(
        self, operand: Instruction, initial: Instruction, dimensions: Sequence[int], reducer: Computation
    ) -> Instruction:
        return self.apply(Opcode.REDUCE, operand, initial, payload=DimensionsPayload(tuple(dimensions)), calls=[reducer])

    # -- tuples and control flow -----------------------------------------------------------------------------------

    def tuple(self, *elements: Instruction) -> Instruction:
        return self.apply(Opcode.TUPLE, *elements)

    def element(self, operand: Instruction, index: int) -> Instruction:
        """``get-tuple-element``."""
        return self.apply(Opcode.GET_TUPLE_ELEMENT, operand, payload=TupleIndexPayload(index))

    def call(self, callee: Computation, *operands: Instruction) -> Instruction:
        return self.apply(Opcode.CALL, *operands, payload=CallPayload(), calls=[callee])

    def while_loop(self, condition: Computation, body: Computation, initial: Instruction) -> Instruction:
        return self.apply(Opcode.WHILE, initial, calls=[body, condition])


def array_of(instruction: Instruction) -> ArrayShape:
    """Shape of an instruction that is known to be an array."""
    assert isinstance(instruction.shape, ArrayShape), instruction
    return instruction.shape


_NUMPY_NAMES = {
    "bool": ElementType.PRED,
    "bfloat16": ElementType.BF16,
    "complex64": ElementType.C64,
    "complex128": ElementType.C128,
}
_ELEMENT_TYPES = {element_type.value: element_type for element_type in ElementType}


def element_type_of(dtype: np.dtype[np.generic]) -> ElementType:
    """``f32`` of ``float32``, ``s8`` of ``int8``, ``f8e5m2`` of ``float8_e5m2``, ...

    Raises:
        ShapeError: HLO has no such type.
    """
    if dtype.name in _NUMPY_NAMES:
        return _NUMPY_NAMES[dtype.name]
    for numpy_prefix, prefix in (("float", "f"), ("uint", "u"), ("int", "s")):
        if dtype.name.startswith(numpy_prefix):
            text = prefix + dtype.name.removeprefix(numpy_prefix).replace("_", "")
            if text in _ELEMENT_TYPES:
                return _ELEMENT_TYPES[text]
    raise ShapeError(f"numpy type {dtype.name} has no HLO element type")

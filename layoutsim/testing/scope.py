"""The state of a growing computation: the values made so far, and how a step gets at an operand that fits.

A *step* is a function that adds an instruction (or a few) to a :class:`Scope`. It never fails: where it needs a value of some
shape it asks for one and gets an existing value, a new parameter, or a broadcast constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import define, field, frozen

from layoutsim.build import Builder
from layoutsim.ir import (
    ArrayShape,
    Computation,
    ElementType,
    Instruction,
    Module,
    Opcode,
    TupleShape,
    array_shape,
)
from layoutsim.ir.payloads import ConstantPayload
from layoutsim.testing.chooser import Chooser, chance, permutation

F32, BF16, F16, S32, S8, PRED = (
    ElementType.F32,
    ElementType.BF16,
    ElementType.F16,
    ElementType.S32,
    ElementType.S8,
    ElementType.PRED,
)
COMMON_SIZES = (1, 2, 3, 4, 1, 5, 8)
MAX_ELEMENTS = 4096


@frozen
class Limits:
    """How large modules grow.

    Attributes:
        steps: at most so many steps in the entry; nested computations get fewer with depth.
        depth: of nested control flow.
        devices: collectives span so many; without any for 1.
        backend: leaves out what that backend's compiler does not take.
        release: of the compiler; older ones do not end on conditionals with a shared branch, and name some calls differently.
        executable: only what the interpreter runs and every pass keeps valid: no transfers to the host, no dynamic sizes, no
            scans, no asynchronous collectives and calls, which XLA makes after layout assignment.
        shuffled: half of the modules are stored in another order than the one in which XLA prints them, which a compiler that
            is given text or a proto keeps, and some of its choices follow.
        only: names of the steps to grow by (``all_gather``, ``reshape``, ``loop``, ...); all if empty.
    """

    steps: int = 10
    depth: int = 2
    devices: int = 1
    backend: str = "gpu"
    release: str = "0.10.2"
    executable: bool = False
    shuffled: bool = False
    only: frozenset[str] = frozenset()

    @property
    def is_old(self) -> bool:
        """Whether the compiler is one of 0.6."""
        return self.release.startswith("0.6.")


DEFAULT_LIMITS = Limits()


@define(eq=False)
class World:
    """What all computations of one module share.

    Attributes:
        shared: reducers and comparators by name.
        callees: computations that may be called again.
        constrains_all_reduces: XLA takes either all with layouts of their own, or none.
    """

    module: Module
    chooser: Chooser
    limits: Limits
    constrains_all_reduces: bool = False
    shared: dict[str, Computation] = field(factory=dict[str, Computation])
    callees: list[Computation] = field(factory=list[Computation])
    channel_count: int = 0

    def next_channel(self) -> int:
        self.channel_count += 1
        return self.channel_count


def scalar_constant(builder: Builder, value: float, element_type: ElementType) -> Instruction:
    """A scalar constant, converted where numpy lacks the type."""
    if element_type in _NUMPY:
        return builder.constant(np.array(value, _NUMPY[element_type]))
    return builder.convert(builder.constant(np.float32(value)), element_type)


@define(eq=False)
class Scope:
    """One computation under construction.

    Attributes:
        values: every value that later steps may use, in order of creation.
        depth: 0 for the entry.
    """

    world: World
    builder: Builder
    depth: int
    values: list[Instruction] = field(factory=list[Instruction])

    @property
    def chooser(self) -> Chooser:
        return self.world.chooser

    @property
    def is_entry(self) -> bool:
        return self.depth == 0

    def keep(self, value: Instruction) -> Instruction:
        """Offer ``value`` to later steps; results of one in eight instructions get an unusual layout."""
        if isinstance(value.shape, ArrayShape) and value.shape.rank > 1 and chance(self.chooser, 12):
            value.shape = value.shape.with_order(permutation(self.chooser, value.shape.rank))
            if isinstance(value.payload, ConstantPayload):
                value.payload = ConstantPayload(value.payload.literal.with_shape(value.shape))
        return self.keep_as_is(value)

    def keep_as_is(self, value: Instruction) -> Instruction:
        """Offer ``value``, whose layout means something, to later steps."""
        self.values.append(value)
        return value

    # -- operands --------------------------------------------------------------------------------------------------

    def arrays(self, fits: Callable[[ArrayShape], bool] = lambda _: True) -> list[Instruction]:
        """Existing array values that fit, the latest first, as those make deep graphs."""
        return [v for v in reversed(self.values) if isinstance(v.shape, ArrayShape) and fits(v.shape)]

    def tuples(self) -> list[Instruction]:
        return [v for v in reversed(self.values) if isinstance(v.shape, TupleShape) and v.shape.elements]

    def any_array(
        self, fits: Callable[[ArrayShape], bool] = lambda _: True, otherwise: ArrayShape | None = None
    ) -> Instruction:
        """An existing array that fits, or a new one: ``otherwise`` if given, else of random dimensions."""
        found = self.arrays(fits)
        if found and not chance(self.chooser, 10):
            return self._near_the_front(found)
        if otherwise is None:
            otherwise = next((s for s in (self.random_shape() for _ in range(8)) if fits(s)), None)
        if otherwise is None or not fits(otherwise):
            return self._near_the_front(found) if found else self.new_array(array_shape(F32, (2, 3)))
        return self.new_array(otherwise)

    def array_of(self, element_type: ElementType, dimensions: Sequence[int]) -> Instruction:
        """An existing array of exactly this type and these dimensions, or a new one."""
        wanted = tuple(dimensions)
        found = self.arrays(lambda s: s.element_type is element_type and s.dimensions == wanted)
        if found and not chance(self.chooser, 25):
            return self._near_the_front(found)
        return self.new_array(array_shape(element_type, wanted))

    def like(self, value: Instruction) -> Instruction:
        """An array of the same type and dimensions, possibly the same one."""
        assert isinstance(value.shape, ArrayShape)
        return self.array_of(value.shape.element_type, value.shape.dimensions)

    def index(self) -> Instruction:
        """A scalar s32."""
        return self.array_of(S32, ())

    def _near_the_front(self, options: list[Instruction]) -> Instruction:
        last = min(len(options), 4) if chance(self.chooser, 70) else len(options)
        return options[self.chooser.integer(0, last - 1)]

    # -- new values ------------------------------------------------------------------------------------------------

    def new_array(self, shape: ArrayShape) -> Instruction:
        """A parameter in the entry, a constant or a broadcast one elsewhere."""
        if self.is_entry and chance(self.chooser, 80):
            return self.keep(self.builder.parameter(shape))
        if shape.element_count <= 8 and shape.element_type in _NUMPY and chance(self.chooser, 50):
            numbers = (np.arange(shape.element_count) * 3 + 1).reshape(shape.dimensions) % 4  # 1, 0, 3, 2, ...
            return self.keep(self.builder.constant(numbers.astype(_NUMPY[shape.element_type])))
        return self.filled(shape)

    def filled(self, shape: ArrayShape) -> Instruction:
        """A broadcast scalar, which is 0 to 2."""
        scalar = scalar_constant(self.builder, sum(shape.dimensions) % 3, shape.element_type)
        return self.keep(self.builder.broadcast(scalar, shape.dimensions)) if shape.rank else scalar

    def zero(self, element_type: ElementType) -> Instruction:
        """A scalar constant, converted where numpy lacks the type."""
        return scalar_constant(self.builder, 0, element_type)

    def identity(self, reducer: Opcode, element_type: ElementType) -> Instruction:
        """What a reduction of floats starts from; what it means from elsewhere XLA leaves open."""
        return scalar_constant(self.builder, -np.inf if reducer is Opcode.MAXIMUM else 0, element_type)

    def random_shape(self, max_rank: int = 4, element_type: ElementType | None = None) -> ArrayShape:
        """Mostly two to four small dimensions of f32; sometimes size 0, and sizes around the reduction threshold of 32."""
        chooser = self.chooser
        rank = min(max_rank, chooser.pick((2, 3, 2, 3, 4, 1, 0)))
        sizes = [chooser.pick(COMMON_SIZES) for _ in range(rank)]
        if rank and chance(chooser, 15):
            sizes[chooser.integer(0, rank - 1)] = chooser.pick((16, 32, 40))
        if rank and chance(chooser, 2):
            sizes[chooser.integer(0, rank - 1)] = 0
        kind = element_type or chooser.pick((F32, F32, F32, BF16, S32, F16))
        return array_shape(kind, tuple(sizes))

    # -- nested computations ---------------------------------------------------------------------------------------

    def nested(self, name: str) -> Scope:
        """A scope for a computation that this one calls."""
        return Scope(self.world, Builder(self.world.module.unique_name(name), self.world.module), self.depth + 1)


_NUMPY = {
    ElementType.PRED: "bool",
    ElementType.S8: "int8",
    ElementType.S16: "int16",
    ElementType.S32: "int32",
    ElementType.S64: "int64",
    ElementType.U8: "uint8",
    ElementType.U16: "uint16",
    ElementType.U32: "uint32",
    ElementType.U64: "uint64",
    ElementType.F16: "float16",
    ElementType.F32: "float32",
    ElementType.F64: "float64",
    ElementType.C64: "complex64",
    ElementType.C128: "complex128",
}


def shared_computation(scope: Scope, name: str, grow: Callable[[Builder], Instruction]) -> Computation:
    """The computation of this name, grown at the first request; all users in the module share it."""
    made = scope.world.shared
    if name not in made:
        builder = Builder(scope.world.module.unique_name(name), scope.world.module)
        made[name] = builder.build(grow(builder))
    return made[name]


def scalar_function(scope: Scope, opcode: Opcode, element_type: ElementType, operands: int = 1) -> Computation:
    """A reducer ``(accumulators..., values...) -> accumulators op values``."""

    def grow(builder: Builder) -> Instruction:
        parameters = [builder.parameter(array_shape(element_type, ())) for _ in range(2 * operands)]
        results = [builder.apply(opcode, parameters[i], parameters[operands + i]) for i in range(operands)]
        return results[0] if operands == 1 else builder.tuple(*results)

    return shared_computation(scope, f"{opcode.value}_{element_type}_{operands}", grow)


Step = Callable[[Scope], None]

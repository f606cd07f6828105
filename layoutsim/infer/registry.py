"""Where the shape rules are registered, and the one function that asks them.

A *rule* computes an instruction's result shape from its operands' shapes, its payload and the signatures of the computations
it calls, and refuses what XLA's shape inference refuses (``xla/service/shape_inference.cc``; text spec, section 3). A rule
knows no instruction: the parser asks before there is one, the verifier afterwards, the builder in between.

Some opcodes leave part of the result open (the sizes of a ``reshape``, the new type of a ``convert``): their rules read the
*stated* shape, check it, and complete it. :data:`CAN_INFER` lists the opcodes whose shape HLO text may leave out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NoReturn, TypeVar

from attrs import field, frozen

from layoutsim.errors import ShapeError
from layoutsim.ir import TOKEN, ArrayShape, Computation, Opcode, Shape, TupleShape
from layoutsim.ir.opcode import ELEMENTWISE
from layoutsim.ir.payloads import Payload

P = TypeVar("P")

_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}")


@frozen(cache_hash=True)
class ProgramShape:
    """Signature of a computation: the shapes of its parameters, by number, and of its root."""

    parameters: tuple[Shape, ...]
    result: Shape

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))}) -> {self.result}"


def program_shape(computation: Computation) -> ProgramShape:
    """Signature of ``computation`` (a scan of its instructions)."""
    return ProgramShape(tuple(p.shape for p in computation.parameters), computation.root.shape)


@frozen(cache_hash=True)
class Site:
    """What a rule may look at: an application of an opcode, before or after it is an instruction.

    Attributes:
        stated: the result shape as written, ``None`` where it was left out.
        programs: signatures of the called computations, in XLA's order.
    """

    opcode: Opcode
    operands: tuple[Shape, ...] = field(converter=tuple)
    payload: Payload | None = None
    programs: tuple[ProgramShape, ...] = ()
    stated: Shape | None = None

    def fail(self, reason: str) -> NoReturn:
        """Refuse, naming the opcode. No rule looks at layouts, so the message leaves them out.

        Raises:
            ShapeError: always.
        """
        raise ShapeError(f"{self.opcode}: {_LAYOUT.sub('', reason)}")

    def operand(self, number: int) -> Shape:
        """Shape of operand ``number``, which must be there: opcodes of any number of operands may still need some."""
        if number >= len(self.operands):
            self.fail(f"has {len(self.operands)} operands, expected at least {number + 1}")
        return self.operands[number]

    def array(self, number: int) -> ArrayShape:
        """Shape of operand ``number``, which must be an array."""
        shape = self.operand(number)
        if not isinstance(shape, ArrayShape):
            self.fail(f"operand {number} has shape {shape}, expected an array")
        return shape

    def arrays(self) -> list[ArrayShape]:
        """Shapes of all operands, which must be arrays."""
        return [self.array(number) for number in range(len(self.operands))]

    def scalar(self, number: int) -> ArrayShape:
        """Shape of operand ``number``, which must be a scalar."""
        shape = self.array(number)
        if shape.rank:
            self.fail(f"operand {number} has shape {shape}, expected a scalar")
        return shape

    def tuple(self, number: int) -> TupleShape:
        """Shape of operand ``number``, which must be a tuple."""
        shape = self.operand(number)
        if not isinstance(shape, TupleShape):
            self.fail(f"operand {number} has shape {shape}, expected a tuple")
        return shape

    def token(self, number: int) -> None:
        """Refuse unless operand ``number`` is a token."""
        shape = self.operand(number)
        if shape != TOKEN:
            self.fail(f"operand {number} has shape {shape}, expected token[]")

    def payload_as(self, kind: type[P]) -> P:
        if not isinstance(self.payload, kind):
            found = "none" if self.payload is None else type(self.payload).__name__
            self.fail(f"has payload {found}, expected {kind.__name__}")
        return self.payload

    def program(self, number: int = 0, *, count: int = 1) -> ProgramShape:
        """Signature of called computation ``number`` of ``count``."""
        if len(self.programs) != count:
            self.fail(f"calls {len(self.programs)} computations, expected {count}")
        return self.programs[number]

    def distinct(self, name: str, dimensions: tuple[int, ...], rank: int, *, ascending: bool = False) -> None:
        """Refuse numbers outside ``0..rank-1``, repeated ones and, where asked, ones out of order."""
        if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < rank for d in dimensions):
            self.fail(f"has {name} {dimensions}, expected distinct numbers in 0..{rank - 1}")
        if ascending and list(dimensions) != sorted(dimensions):
            self.fail(f"has {name} {dimensions}, expected ascending numbers")

    def stated_shape(self) -> Shape:
        """The shape as written.

        Raises:
            ShapeError: it was left out, and cannot be inferred.
        """
        if self.stated is None:
            self.fail("its shape cannot be inferred and must be stated")
        return self.stated

    def stated_array(self) -> ArrayShape:
        shape = self.stated_shape()
        if not isinstance(shape, ArrayShape):
            self.fail(f"has shape {shape}, expected an array")
        return shape


ShapeRule = Callable[[Site], Shape]

RULES: dict[Opcode, ShapeRule] = {}


def shape_rule(*opcodes: Opcode) -> Callable[[ShapeRule], ShapeRule]:
    """Register a rule for these opcodes; two rules for one opcode are a slip."""

    def register(rule: ShapeRule) -> ShapeRule:
        for opcode in opcodes:
            assert opcode not in RULES, f"{opcode} has two shape rules"
            RULES[opcode] = rule
        return rule

    return register


def opcodes(text: str) -> tuple[Opcode, ...]:
    """The opcodes with these spellings."""
    return tuple(map(Opcode, text.split()))


def infer_shape(
    opcode: Opcode,
    operand_shapes: Sequence[Shape],
    payload: Payload | None,
    callees: Sequence[Computation] = (),
    *,
    stated: Shape | None = None,
) -> Shape:
    """The result shape of ``opcode`` on operands of these shapes.

    Args:
        opcode: any opcode.
        operand_shapes: with layouts, which copied shapes inherit.
        payload: the opcode's attributes, ``None`` for opcodes without.
        callees: called computations in XLA's order.
        stated: the shape as written; opcodes outside :data:`CAN_INFER` may need it.

    Raises:
        ShapeError: XLA refuses this application, or it needs ``stated``; the message says who, what was expected and found.
    """
    return infer_site(Site(opcode, tuple(operand_shapes), payload, tuple(map(program_shape, callees)), stated))


def infer_site(site: Site) -> Shape:
    """As :func:`infer_shape`. Modules repeat few sites many times, so answers are kept, except those that hold constants.

    Raises:
        ShapeError: as :func:`infer_shape`.
    """
    return _infer(site) if site.opcode is Opcode.CONSTANT else _infer_cached(site)


def _infer(site: Site) -> Shape:
    arity = site.opcode.spec.arity
    if arity is not None and len(site.operands) != arity:
        site.fail(f"has {len(site.operands)} operands, expected {arity}")
    return RULES[site.opcode](site)


_infer_cached = lru_cache(maxsize=1 << 16)(_infer)


CAN_INFER = (
    ELEMENTWISE - {Opcode.BITCAST_CONVERT, Opcode.CONVERT, Opcode.REDUCE_PRECISION, Opcode.STOCHASTIC_CONVERT}
) | frozenset(
    opcodes(
        "add-dependency after-all batch-norm-grad batch-norm-inference batch-norm-training broadcast call cholesky concatenate "
        "conditional convolution domain dot fft gather get-dimension-size get-tuple-element map opt-barrier pad partition-id "
        "ragged-dot reduce reduce-window replica-id reverse scaled-dot scan scatter select-and-scatter set-dimension-size sort "
        "topk transpose triangular-solve tuple while"
    )
)
"""Opcodes whose shape HLO text may leave out; for the others XLA's parser wants it, even where it follows from the operands."""

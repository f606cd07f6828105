"""How an opcode's attributes are declared, and what a payload is built from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import NoReturn, TypeVar

from attrs import field, frozen

from layoutsim.ir import (
    TOKEN,
    ArrayShape,
    Computation,
    ElementType,
    Instruction,
    Opcode,
    Shape,
    TupleShape,
    array_shape,
    default_layout,
    map_arrays,
    tuple_shape,
)
from layoutsim.ir.payloads import NO_GROUPS, Aliasing, ListReplicaGroups, Payload, ReplicaGroups
from layoutsim.ir.replica_groups import IotaReplicaGroups, MeshReplicaGroups
from layoutsim.text.annotation_syntax import (
    read_frontend_attributes,
    read_metadata,
    read_origin,
    read_parameter_replication,
    read_statistics,
    read_string_or_json,
)
from layoutsim.text.device_syntax import read_sharding
from layoutsim.text.lexer import Kind, Lexer

T = TypeVar("T")
Ints = tuple[int, ...]
Form = Callable[[Lexer], object]


class Reference(Enum):
    """Values that name other parts of the module; the parser reads them."""

    COMPUTATION = "computation"
    COMPUTATIONS = "computations"
    INSTRUCTIONS = "instructions"


COMPUTATION = Reference.COMPUTATION
COMPUTATIONS = Reference.COMPUTATIONS

Forms = Mapping[str, Form | Reference]

CALL_ORDER = (
    "body",
    "condition",
    "select",
    "scatter",
    "true_computation",
    "false_computation",
    "branch_computations",
    "to_apply",
    "called_computations",
    "calls",
)
"""Computation-valued attributes in the order of ``Instruction.called_computations``."""

COMMON: Forms = {
    "sharding": read_sharding,
    "frontend_attributes": read_frontend_attributes,
    "statistics": read_statistics,
    "parameter_replication": read_parameter_replication,
    "control-predecessors": Reference.INSTRUCTIONS,
    "origin": read_origin,
    "metadata": read_metadata,
    "backend_config": read_string_or_json,
}
"""Attributes that every opcode takes."""

APPLY: Forms = {"to_apply": COMPUTATION}


@frozen
class Given:
    """What has been read of an instruction when its payload is built.

    Attributes:
        shape: as written, ``None`` where left out.
        refuse: raises a ParseError at an attribute, or at the opcode when that attribute was not given.
    """

    opcode: Opcode
    values: Mapping[str, object]
    operands: Sequence[Instruction]
    shape: Shape | None
    refuse: Callable[[str, str], NoReturn]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: T) -> T:
        """The value of an attribute, which has the type of its default."""
        value = self.values.get(name, default)
        assert isinstance(value, type(default)), f"{name}={value!r}"
        return value

    def optional(self, name: str, kind: type[T]) -> T | None:
        """The value of an attribute, or ``None`` where it was not given."""
        value = self.values.get(name)
        assert value is None or isinstance(value, kind), f"{name}={value!r}"
        return value

    def ints(self, name: str) -> Ints:
        return self.items(name, int)

    def int_lists(self, name: str) -> tuple[Ints, ...]:
        value = self.values.get(name, ())
        assert isinstance(value, tuple)
        return value  # pyright: ignore[reportUnknownVariableType]

    def words(self, name: str) -> tuple[str, ...]:
        return self.items(name, str)

    def items(self, name: str, kind: type[T]) -> tuple[T, ...]:
        """The entries of a list-valued attribute; none where it was not given."""
        value = self.values.get(name, ())
        assert isinstance(value, tuple)
        return tuple(item for item in value if isinstance(item, kind))  # pyright: ignore[reportUnknownVariableType]

    def integer(self, name: str, default: int = 0) -> int:
        return self.get(name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        return self.get(name, default)

    def word(self, name: str, default: str = "") -> str:
        return self.get(name, default)

    def one(self, name: str) -> int:
        """The only entry of a list that must have exactly one."""
        values = self.ints(name)
        if len(values) != 1:
            self.refuse(name, f"expected exactly one entry in {name}, got {len(values)}")
        return values[0]

    def groups(self) -> ReplicaGroups:
        value = self.values.get("replica_groups", NO_GROUPS)
        assert isinstance(value, ListReplicaGroups | IotaReplicaGroups | MeshReplicaGroups)
        return value

    def aliasing(self) -> tuple[Aliasing, ...]:
        return self.items("output_to_operand_aliasing", Aliasing)


Builder = Callable[[Given], Payload | None]


def no_payload(_given: Given) -> None:
    """Builder of opcodes without attributes of their own."""
    return


@frozen
class OpcodeSyntax:
    """Attributes of one opcode.

    Attributes:
        looks_at_operands: the payload, or whether it is legal, depends on more than the attributes.
    """

    required: Forms = field(factory=dict[str, Form | Reference])
    optional: Forms = field(factory=dict[str, Form | Reference])
    build: Builder = no_payload
    looks_at_operands: bool = False

    def form(self, name: str) -> Form | Reference | None:
        """The reader of this attribute, or ``None`` if the opcode does not take it."""
        return self.required.get(name) or self.optional.get(name) or COMMON.get(name)

    def names(self) -> list[str]:
        return sorted({*self.required, *self.optional, *COMMON})


SYNTAX: dict[Opcode, OpcodeSyntax] = {}


def declare(
    opcodes: str,
    build: Builder = no_payload,
    *,
    required: Forms | None = None,
    optional: Forms | None = None,
    looks_at_operands: bool = False,
) -> None:
    """Give the opcodes named in a blank-separated text their attributes; two declarations of one are a slip."""
    entry = OpcodeSyntax(required or {}, optional or {}, build, looks_at_operands)
    for name in opcodes.split():
        assert Opcode(name) not in SYNTAX, name
        SYNTAX[Opcode(name)] = entry


# -- readers of simple values ------------------------------------------------------------------------------------------


def read_integer(lexer: Lexer) -> int:
    """A 64-bit integer."""
    return lexer.integer()


def read_int32(lexer: Lexer) -> int:
    """A 32-bit integer."""
    start = lexer.start
    value = lexer.integer()
    if not -(2**31) <= value < 2**31:
        raise lexer.source.error(f"expected a 32-bit integer, got {value}", start)
    return value


def read_flag(lexer: Lexer) -> bool:
    """``true`` or ``false``."""
    return lexer.boolean()


def read_string(lexer: Lexer) -> str:
    """The value of a string."""
    return lexer.string()


def read_float(lexer: Lexer) -> float:
    """A real number, as an integer, a decimal or an infinity."""
    if lexer.kind not in (Kind.INT, Kind.DECIMAL, "inf", "-inf"):
        lexer.fail("a number")
    value = float(lexer.value)
    lexer.advance()
    return value


# -- shapes ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def fill_layouts(shape: Shape) -> Shape:
    """``shape`` with the default layout wherever none was written, inside buffers too."""
    return map_arrays(shape, lambda leaf: leaf if leaf.layout is not None else leaf.with_layout(default_layout(leaf.rank)))


def fixed_shape(given: Given) -> Shape | None:
    """The shape of opcodes whose written shape XLA replaces by the one it builds; ``None`` for all others."""
    match given.opcode:
        case Opcode.SEND:
            return tuple_shape((given.operands[0].shape, _CONTEXT, TOKEN))
        case Opcode.RECV if isinstance(given.shape, TupleShape) and given.shape.elements:
            return tuple_shape((given.shape.elements[0], _CONTEXT, TOKEN))
        case Opcode.RECV_DONE if isinstance(source := given.operands[0].shape, TupleShape) and source.elements:
            return tuple_shape((source.elements[0], TOKEN))
        case Opcode.INFEED if isinstance(given.shape, TupleShape) and given.shape.elements:
            return tuple_shape((given.shape.elements[0], TOKEN))
        case Opcode.SEND_DONE | Opcode.AFTER_ALL:
            return TOKEN
        case Opcode.ADD_DEPENDENCY:
            return given.operands[0].shape
        case _:
            return None


_CONTEXT = array_shape(ElementType.U32, ())

FIXED_SHAPE = frozenset(
    [
        Opcode.SEND,
        Opcode.RECV,
        Opcode.RECV_DONE,
        Opcode.INFEED,
        Opcode.SEND_DONE,
        Opcode.AFTER_ALL,
        Opcode.ADD_DEPENDENCY,
    ]
)
"""Opcodes for which :func:`fixed_shape` may have an answer."""


def is_scalar(shape: Shape) -> bool:
    """Whether ``shape`` is an array of rank 0."""
    return isinstance(shape, ArrayShape) and not shape.rank


def called_computations(values: Mapping[str, object]) -> tuple[Computation, ...]:
    """The computations among an instruction's attributes, in XLA's order."""
    found: list[Computation] = []
    for name in CALL_ORDER:
        value = values.get(name)
        if isinstance(value, Computation):
            found.append(value)
        elif isinstance(value, tuple):
            found += value
    return tuple(found)

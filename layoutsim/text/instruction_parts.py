"""What an instruction consists of while it is read, and the attributes that every opcode takes."""

from __future__ import annotations

from attrs import define, field

from layoutsim.ir import NO_ATTRIBUTES, Attributes, Instruction, Opcode, Shape, TupleShape, leaves
from layoutsim.text.device_syntax import is_tuple_sharding, tuple_sharding
from layoutsim.text.lexer import Kind, Lexer

ASYNC_SUFFIXES = {"-start": Opcode.ASYNC_START, "-update": Opcode.ASYNC_UPDATE, "-done": Opcode.ASYNC_DONE}
_WITH_OWN_ASYNC = {"all-gather", "all-reduce", "collective-permute", "copy", "send", "recv"}
OPCODES = {opcode.value: opcode for opcode in Opcode}


@define(eq=False)
class Head:
    """An instruction up to its operands.

    Attributes:
        start: offset of the opcode, where complaints about the whole instruction go.
        wrapped: the opcode inside an async operation written with sugar.
    """

    start: int
    shape: Shape | None
    opcode: Opcode
    wrapped: Opcode | None = None


@define(eq=False)
class Parts:
    """Operands and attributes as read, with the offsets of the attributes."""

    operands: list[Instruction] = field(factory=list[Instruction])
    values: dict[str, object] = field(factory=dict[str, object])
    offsets: dict[str, int] = field(factory=dict[str, int])
    extra: list[str] = field(factory=list[str])


def without_sharding(values: dict[str, object]) -> dict[str, object]:
    """The attributes that an asynchronous operation shares with the operation it wraps."""
    return {name: value for name, value in values.items() if name != "sharding"}


def head_of(start: int, shape: Shape | None, text: str) -> Head | None:
    """The opcode that ``text`` names, as itself or as async sugar."""
    if text in OPCODES:
        return Head(start, shape, OPCODES[text])
    for suffix, opcode in ASYNC_SUFFIXES.items():
        wrapped = text.removesuffix(suffix)
        if wrapped != text and wrapped in OPCODES and wrapped not in _WITH_OWN_ASYNC:
            return Head(start, shape, opcode, OPCODES[wrapped])
    return None


def async_start(instruction: Instruction) -> Instruction:
    """The async-start at the beginning of a chain of updates."""
    while instruction.opcode is not Opcode.ASYNC_START:
        instruction = instruction.operand(0)
    return instruction


def common_attributes(values: dict[str, object], shape: Shape, extra: str = "") -> Attributes:
    """The attributes that any opcode takes; a single sharding on a tuple holds for each of its leaves."""
    if not extra and not values:
        return NO_ATTRIBUTES

    def text(name: str) -> str:
        return str(values.get(name, ""))

    sharding = text("sharding")
    if sharding and isinstance(shape, TupleShape) and not is_tuple_sharding(sharding) and leaves(shape):
        sharding = tuple_sharding([sharding] * len(leaves(shape)))
    found = Attributes(
        metadata_text=text("metadata"),
        sharding=sharding,
        frontend_attributes=text("frontend_attributes"),
        backend_config=text("backend_config"),
        statistics=text("statistics"),
        parameter_replication=text("parameter_replication"),
        result_accuracy=text("result_accuracy"),
        origin=text("origin"),
        extra=extra,
    )
    return found if found != NO_ATTRIBUTES else NO_ATTRIBUTES


_CLOSERS = {"{": "}", "(": ")", "[": "]"}


def skip_value(lexer: Lexer) -> str:
    """The text of an attribute value of unknown form: one token or bracketed group, and what is joined to it."""
    start = lexer.start
    while True:
        if lexer.kind in _CLOSERS:
            _skip_group(lexer)
        else:
            if lexer.kind in (Kind.END, ",", "}", ")", "]"):
                lexer.fail("an attribute value")
            lexer.advance()
        if lexer.kind not in ("<=", "[", "(", "->") and not lexer.at_word("T"):
            return lexer.text[start : lexer.previous_end]


def _skip_group(lexer: Lexer) -> None:
    closers = [_CLOSERS[lexer.kind]]
    lexer.advance()
    while closers:
        if lexer.kind in _CLOSERS:
            closers.append(_CLOSERS[lexer.kind])
        elif lexer.kind == closers[-1]:
            closers.pop()
        elif lexer.kind in (Kind.END, "}", ")", "]"):
            lexer.fail(repr(closers[-1]))
        lexer.advance()

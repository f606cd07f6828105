"""Reads the common lines of HLO dumps quickly; everything else is left to the token by token reader.

The rule that keeps this honest: a line is taken only if it has exactly the form below, ends where the line ends, and is
followed by a line that cannot continue it. Parts of a line (shapes, attribute values, literals) are read by the very readers
of the slow path on the part's own text, and remembered by that text. A part that does not read, an unknown name, a repeated
attribute or anything else out of the ordinary makes :meth:`FastReader.read_lines` stop in front of the line, and the slow
path reads or refuses it.

    ROOT? %name = shape opcode(%a, %b), attribute=value, to_apply=%c, attribute=value, metadata={...}, backend_config={...}

No pattern here backtracks over more than a word: groups are possessive, and lines can be 77 KB long.
"""

from __future__ import annotations

import re
from typing import NoReturn

from attrs import define, frozen

from layoutsim.errors import ParseError
from layoutsim.ir import NO_ATTRIBUTES, Attributes, Computation, Instruction, Opcode, Shape, with_static_dimensions
from layoutsim.ir.payloads import ConstantPayload, ParameterPayload, Payload
from layoutsim.text.instruction_parts import OPCODES, common_attributes
from layoutsim.text.lexer import PRIMITIVES, RESERVED, Kind, Lexer
from layoutsim.text.literal_syntax import read_literal
from layoutsim.text.opcodes import (
    COMMON,
    FIXED_SHAPE,
    SYNTAX,
    Given,
    OpcodeSyntax,
    Reference,
    called_computations,
    fill_layouts,
    no_payload,
)
from layoutsim.text.scope import ComputationTable, Scope, sanitized
from layoutsim.text.shape_syntax import read_shape
from layoutsim.text.source import Source

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*+"
_INDEX = r"(?:/\*index=[0-9]++\*/)?"


def _nested(opening: str, closing: str, plain: str, levels: int) -> str:
    """A pattern for a bracketed group with up to ``levels`` of the same brackets inside."""
    group = f"{opening}(?:{plain})*+{closing}"
    for _ in range(levels):
        group = f"{opening}(?:{plain}|{group})*+{closing}"
    return group


_STRING = r'"(?:[^"\\\n]|\\[^\n])*+"'
_BRACES = _nested(r"\{", r"\}", rf"""[^{{}}"'/\n]++|{_STRING}""", 7)
_VALUE = rf"(?:[%A-Za-z0-9_.>-]++|{_BRACES}|{_STRING}|\[[0-9,]++\]<=\[[0-9,]++\](?:T\([0-9,]++\))?+)"

_PARENTHESES = _nested(r"\(", r"\)", r"[^()\n]++", 6)
_LINE = re.compile(
    rf"\s*+(ROOT )?(%?{_NAME}) = ([a-z][^\s]*+|{_PARENTHESES}) ([a-z][a-z0-9-]*+)"
    r"\(([^()\n]*+)\)([^\n]*+)\n"
    rf"(?=\s*+(?:\}}|%|(?:ROOT )?%?{_NAME} =))",
    re.ASCII,
)
_TAIL = re.compile(
    rf"((?:, (?!to_apply=|calls=|metadata=|backend_config=)[a-z_-]++={_VALUE})*+)"
    rf"(?:, (to_apply|calls)=(%?{_NAME}))?+"
    rf"((?:, (?!to_apply=|calls=|metadata=|backend_config=)[a-z_-]++={_VALUE})*+)"
    rf"(?:, metadata=({_BRACES}))?+(?:, backend_config=({_BRACES}|{_STRING}))?+\r?",
    re.ASCII,
)
_ATTRIBUTE = re.compile(rf", ([a-z_-]++)=({_VALUE})", re.ASCII)
_INDEX_COMMENT = re.compile(r"/\*index=[0-9]++\*/", re.ASCII)
_PARAMETER_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)

_TEXT = r'="[ !#-&(-\[\]-~]++"'
_NUMBER = r"=[1-9][0-9]{0,8}"
_METADATA_FIELDS = (
    ("op_type", _TEXT),
    ("op_name", _TEXT),
    ("source_file", _TEXT),
    ("source_line", _NUMBER),
    ("source_end_line", _NUMBER),
    ("source_column", _NUMBER),
    ("source_end_column", _NUMBER),
    ("deduplicated_name", _TEXT),
    ("scheduling_name", _TEXT),
    ("stack_frame_id", _NUMBER),
)
_CANONICAL_METADATA = re.compile(r"\{(?! )" + "".join(rf"(?: ?{n}{v}(?=[ }}]))?+" for n, v in _METADATA_FIELDS) + r"\}")
"""Metadata in the form that ``read_metadata`` returns, so that it need not be asked."""

_PRIMITIVE = "(?:" + "|".join(sorted(PRIMITIVES - {"token", "opaque"}, key=len, reverse=True)) + ")"
_ARRAY = rf"{_PRIMITIVE}\[(?=[0-9,]{{0,17}}\])(?:[0-9]++(?:,[0-9]++)*+)?+\]"  # short enough not to overflow 64 bits
_LEAF = rf"(?:{_ARRAY}|token\[\]|opaque\[\])"


def _tuple_of(element: str) -> str:
    return rf"(?:{_LEAF}|\((?:{_INDEX}{element}(?:, {_INDEX}{element})*+)?+\))"


_PLAIN_SHAPE = _tuple_of(_tuple_of(_tuple_of(_LEAF)))
_PARAMETER = rf"{_INDEX}{_NAME}: {_PLAIN_SHAPE}"
_HEAD = re.compile(
    rf"(ENTRY )?(%?{_NAME}) \((?:{_PARAMETER}(?:, {_PARAMETER})*+)?+\) -> ({_PLAIN_SHAPE}) \{{(?=\s++[%A-Za-z_])", re.ASCII
)

_LEFT_TO_SLOW_PATH = FIXED_SHAPE | {
    Opcode.ASYNC_START,
    Opcode.ASYNC_UPDATE,
    Opcode.ASYNC_DONE,
    Opcode.CONDITIONAL,
    Opcode.SCAN,  # looks at the computation it calls
}
_FAST_OPCODES = {text: opcode for text, opcode in OPCODES.items() if opcode not in _LEFT_TO_SLOW_PATH}
_ANNOTATIONS = COMMON.keys() | {"result_accuracy"}


class _NotFastError(Exception):
    """The line is left to the slow path."""


def _refuse(_attribute: str, _reason: str) -> NoReturn:
    raise _NotFastError


@frozen
class Opened:
    """The head of a computation: where its body starts, and where its result shape stands."""

    name: str
    is_entry: bool
    result: Shape
    result_start: int
    body_start: int


@define(eq=False)
class _Specifics:
    """What the attributes of an opcode say, apart from called computations, metadata and backend config.

    Attributes:
        payload: ``None`` if it depends on the operands (then ``builds``) or if the opcode has none.
        annotates: some of the values belong into the common attributes.
    """

    values: dict[str, object]
    payload: Payload | None
    builds: bool
    annotates: bool


class FastReader:
    """Remembers what the parts of lines mean, for one parse."""

    def __init__(self, source: Source, computations: ComputationTable, fill_missing_layouts: bool) -> None:
        self.text = source.text
        self.computations = computations
        self.fill_missing_layouts = fill_missing_layouts
        self.shapes: dict[str, Shape] = {}
        self.results: dict[str, Shape] = {}
        self.specifics: dict[tuple[str, str, str | None, str], _Specifics] = {}
        self.values: dict[tuple[str, str, str], object] = {}
        self.annotations: dict[tuple[str | None, str | None], Attributes] = {(None, None): NO_ATTRIBUTES}
        self.annotation_values: dict[tuple[str, str], str] = {}
        self.constants: dict[tuple[str, str], ConstantPayload] = {}
        self.parameters: dict[str, ParameterPayload] = {}

    # -- heads of computations -------------------------------------------------------------------------------------

    def open_computation(self, offset: int) -> Opened | None:
        """The computation head at ``offset``, if it is in the common form."""
        match = _HEAD.match(self.text, offset)
        if match is None:
            return None
        entry, name, result_text = match.groups()
        if name[0] != "%" and name in RESERVED:
            return None
        result = self.results.get(result_text)
        if result is None:
            result = self.results[result_text] = read_shape(Lexer(Source(result_text)))
        bare = name[1:] if name[0] == "%" else name
        return Opened(bare, entry is not None, result, match.start(3), match.end())

    # -- lines -----------------------------------------------------------------------------------------------------

    def read_lines(self, scope: Scope, lexer: Lexer) -> Instruction | None:
        """Read lines from the current token on, add their instructions to ``scope``, and return the last one.

        The lexer stands at the first token of the first line that was not taken.
        """
        offset = start = lexer.start
        last: Instruction | None = None
        match_line, text = _LINE.match, self.text
        try:
            while (match := match_line(text, offset)) is not None:
                last = self._read_line(scope, match)
                offset = match.end()
        except _NotFastError:
            pass
        except ParseError:
            pass  # a part did not read: the slow path says what is wrong, at its place in the whole text
        if offset != start:
            lexer.jump(offset)
        return last

    def _read_line(self, scope: Scope, match: re.Match[str]) -> Instruction:
        """One instruction; this function runs once a line and is written for speed."""
        root, name, shape_text, opcode_text, operands_text, tail = match.groups()
        opcode = _FAST_OPCODES.get(opcode_text)
        names = scope.names
        if name[0] == "%":
            key, name = name, name[1:]
        else:
            key = f"%{name}"
            if name in RESERVED:
                raise _NotFastError
        if opcode is None or key in names or (root is not None and scope.root is not None):
            raise _NotFastError
        if (name[0] == "_" or name in PRIMITIVES) and sanitized(name) != name:
            raise _NotFastError
        shape = self.shapes.get(shape_text) or self._read_shape(shape_text)
        operands: list[Instruction] = []
        payload: Payload | None = None
        if opcode is Opcode.PARAMETER:
            payload = self.parameters.get(operands_text) or self._read_parameter(operands_text)
            if payload.number in scope.parameters:
                raise _NotFastError
        elif opcode is Opcode.CONSTANT:
            payload = self.constants.get((shape_text, operands_text)) or self._read_constant(shape_text, operands_text)
            shape = with_static_dimensions(shape)
        elif operands_text:
            if "/" in operands_text:
                operands_text = _INDEX_COMMENT.sub("", operands_text)
            try:
                operands = [names[operand] for operand in operands_text.split(", ")]
            except KeyError:
                raise _NotFastError from None
        arity = _ARITY[opcode]
        if arity is not None and arity != len(operands):
            raise _NotFastError
        if tail:
            built, called, attributes = self._read_tail(opcode, opcode_text, tail, shape, operands)
            instruction = Instruction(name, opcode, shape, payload or built, operands, called, attributes)
        else:
            if opcode_text not in _NEEDS_NOTHING:
                payload = payload or self._build(opcode, opcode_text, shape, operands)
            instruction = Instruction(name, opcode, shape, payload, operands)
        names[key] = instruction
        if name not in RESERVED:
            names[name] = instruction
        if payload.__class__ is ParameterPayload:
            scope.parameters[payload.number] = instruction  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue, reportUnknownMemberType]
        scope.computation.adopt(instruction)
        if root is not None:
            scope.root = instruction
        return instruction

    def _build(self, opcode: Opcode, opcode_text: str, shape: Shape, operands: list[Instruction]) -> Payload | None:
        """The payload of an opcode without any attribute."""
        specifics = self._read_specifics(opcode, opcode_text, "", None, "")
        if not specifics.builds:
            return specifics.payload
        return SYNTAX[opcode].build(Given(opcode, specifics.values, operands, shape, _refuse))

    # -- parts of a line -------------------------------------------------------------------------------------------

    def _read_shape(self, text: str) -> Shape:
        lexer = self._part(text)
        shape = read_shape(lexer)
        if lexer.kind != Kind.END:
            raise _NotFastError
        if self.fill_missing_layouts:
            shape = fill_layouts(shape)
        self.shapes[text] = shape
        return shape

    @staticmethod
    def _part(text: str) -> Lexer:
        """A lexer on a part of a line; a ``//`` comment would reach further in the whole text than in the part."""
        if "//" in text:
            raise _NotFastError
        return Lexer(Source(text))

    def _read_parameter(self, text: str) -> ParameterPayload:
        if not _PARAMETER_NUMBER.fullmatch(text):
            raise _NotFastError
        payload = self.parameters[text] = ParameterPayload(int(text))
        return payload

    def _read_constant(self, shape_text: str, text: str) -> ConstantPayload:
        lexer = self._part(text)
        literal = read_literal(lexer, self.shapes[shape_text])
        if lexer.kind != Kind.END:
            raise _NotFastError
        payload = self.constants[shape_text, text] = ConstantPayload(literal)
        return payload

    def _read_tail(
        self, opcode: Opcode, opcode_text: str, tail: str, shape: Shape, operands: list[Instruction]
    ) -> tuple[Payload | None, tuple[Computation, ...], Attributes]:
        """Payload, called computations and common attributes of ``, name=value, ...``."""
        match = _TAIL.fullmatch(tail)
        if match is None:
            raise _NotFastError
        before, call_name, call, behind, metadata, backend_config = match.groups()
        specifics = self.specifics.get((opcode_text, before, call_name, behind))
        if specifics is None:
            specifics = self._read_specifics(opcode, opcode_text, before, call_name, behind)
        payload = specifics.payload
        if specifics.builds:
            payload = SYNTAX[opcode].build(Given(opcode, specifics.values, operands, shape, _refuse))
        if call is not None:
            callee = self.computations.names.get(call)
            if callee is None:
                raise _NotFastError
            called: tuple[Computation, ...] = (callee,)
        else:
            called = called_computations(specifics.values) if specifics.values else ()
        attributes = self.annotations.get((metadata, backend_config))
        if attributes is None:
            attributes = self._read_annotations(metadata, backend_config)
        if specifics.annotates:
            values = specifics.values | {"metadata": attributes.metadata_text, "backend_config": attributes.backend_config}
            attributes = common_attributes(values, shape)
        return payload, called, attributes

    def _read_specifics(self, opcode: Opcode, opcode_text: str, before: str, call_name: str | None, behind: str) -> _Specifics:
        syntax = SYNTAX[opcode]
        values: dict[str, object] = {}
        for name, text in _ATTRIBUTE.findall(before + behind):
            if name in values:
                raise _NotFastError
            values[name] = self._read_value(syntax, opcode_text, name, text)
        present = values.keys() | {call_name}
        if call_name is not None and syntax.form(call_name) is not Reference.COMPUTATION:
            raise _NotFastError
        if not syntax.required.keys() <= present:
            raise _NotFastError
        builds = syntax.looks_at_operands
        payload = None if builds else syntax.build(Given(opcode, values, (), None, _refuse))
        annotates = not values.keys().isdisjoint(_ANNOTATIONS)
        specifics = _Specifics(values, payload, builds, annotates)
        calls_by_value = any(syntax.form(name) is Reference.COMPUTATION for name in values)
        if not calls_by_value:  # names of computations are not worth remembering
            self.specifics[opcode_text, before, call_name, behind] = specifics
        return specifics

    def _read_value(self, syntax: OpcodeSyntax, opcode_text: str, name: str, text: str) -> object:
        form = syntax.form(name)
        if form is None or form is Reference.INSTRUCTIONS or form is Reference.COMPUTATIONS or name == "parameter_replication":
            raise _NotFastError
        if form is Reference.COMPUTATION:
            callee = self.computations.names.get(text)
            if callee is None:
                raise _NotFastError
            return callee
        key = (opcode_text, name, text)
        if key not in self.values:
            assert not isinstance(form, Reference)
            lexer = self._part(text)
            value = form(lexer)
            if lexer.kind != Kind.END:
                raise _NotFastError
            self.values[key] = value
        return self.values[key]

    def _read_annotations(self, metadata: str | None, backend_config: str | None) -> Attributes:
        attributes = Attributes(
            metadata_text=self._read_annotation("metadata", metadata),
            backend_config=self._read_annotation("backend_config", backend_config),
        )
        if attributes == NO_ATTRIBUTES:
            attributes = NO_ATTRIBUTES
        self.annotations[metadata, backend_config] = attributes
        return attributes

    def _read_annotation(self, name: str, text: str | None) -> str:
        if text is None:
            return ""
        if name == "metadata" and _CANONICAL_METADATA.fullmatch(text) and text != "{}":
            return text
        found = self.annotation_values.get((name, text))
        if found is None:
            form = COMMON[name]
            assert not isinstance(form, Reference)
            lexer = Lexer(Source(text))
            found = str(form(lexer))
            if lexer.kind != Kind.END:
                raise _NotFastError
            self.annotation_values[name, text] = found
        return found


_ARITY = {opcode: opcode.spec.arity for opcode in Opcode}
_NEEDS_NOTHING = {
    opcode.value
    for opcode, syntax in SYNTAX.items()
    if not syntax.required and not syntax.looks_at_operands and syntax.build is no_payload
}

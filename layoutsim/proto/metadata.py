"""Common attributes of instructions as protos: metadata, frontend attributes, statistics, accuracy, origin (text spec, 7.5).

The intermediate representation keeps these as text, so reading a proto writes canonical text, and writing one reads it.
"""

from __future__ import annotations

import re

from layoutsim.errors import ParseError
from layoutsim.ir import Shape, ShapeIndex, TupleShape, index_text, leaves
from layoutsim.ir.attributes import parse_metadata
from layoutsim.proto.schema import Message
from layoutsim.text.annotation_syntax import written
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.quoting import quote, unescape
from layoutsim.text.source import Source

_METADATA_ORDER = (
    "op_type",
    "op_name",
    "source_file",
    "source_line",
    "source_end_line",
    "source_column",
    "source_end_column",
    "profile_type",
    "deduplicated_name",
    "scheduling_name",
    "stack_frame_id",
)
_METADATA_FIELDS = tuple(name for name in _METADATA_ORDER if name != "profile_type")
_OUTSIDE_STRINGS = r'^(?:[^"]|"(?:[^"\\]|\\.)*")*?'
_PROFILE_TYPE = re.compile(_OUTSIDE_STRINGS + r"\bprofile_type=\{([\d,\s]*)\}")
_PAYLOAD = re.compile(_OUTSIDE_STRINGS + r'\bmetadata_payload="((?:[^"\\]|\\.)*)"')

_ACCURACY_MODES = ("default", "highest")


def metadata_fields_text(proto: Message) -> str:
    """``op_name="f" source_line=3``, without braces; fields with a default value are left out."""
    parts: list[str] = []
    for name in _METADATA_ORDER:
        value = getattr(proto, name)
        if not value:
            continue
        if name == "profile_type":
            parts.append(f"profile_type={{{','.join(map(str, value))}}}")
        else:
            parts.append(f"{name}={quote(value) if isinstance(value, str) else value}")
    if payload := proto.metadata_payload.value:
        parts.append(f"metadata_payload={quote(payload.decode('utf-8', 'surrogateescape'))}")
    return " ".join(parts)


def metadata_text(proto: Message) -> str:
    """``{op_name="f" ...}``, or empty without fields."""
    fields = metadata_fields_text(proto)
    return f"{{{fields}}}" if fields else ""


def write_metadata(text: str, proto: Message) -> None:
    """Fill an ``OpMetadata`` from the text of a metadata attribute."""
    metadata = parse_metadata(text)
    for name in _METADATA_FIELDS:
        if value := getattr(metadata, name):
            setattr(proto, name, value)
    if types := _PROFILE_TYPE.match(text):
        proto.profile_type.extend(int(number) for number in types.group(1).split(",") if number.strip())
    if payload := _PAYLOAD.match(text):
        proto.metadata_payload.value = unescape(payload.group(1)).encode("utf-8", "surrogateescape")


def frontend_attributes_text(proto: Message) -> str:
    """``{a="1",b={"json":2}}`` sorted by key, or empty; values that are one JSON object stand bare, as XLA prints them."""
    pairs: dict[str, str] = {pair.key: pair.value for pair in proto.map}
    return "{" + ",".join(f"{key}={written(pairs[key])}" for key in sorted(pairs)) + "}" if pairs else ""


def write_frontend_attributes(text: str, proto: Message) -> None:
    """Fill a ``FrontendAttributes`` from ``{a="1",...}``."""
    lexer = Lexer(Source(text))
    lexer.expect("{")
    while lexer.kind != "}":
        key = lexer.expect(Kind.ATTRIBUTE)
        proto.map.add(key=key, value=lexer.json() if lexer.kind == "{" else lexer.string())
        lexer.eat(",")


def statistics_text(proto: Message) -> str:
    """``{visualizing_index=0,count=1.5}``, or empty."""
    if not proto.statistics:
        return ""
    values = (f"{s.stat_name}={format(s.stat_val, 'g')}" for s in proto.statistics)
    return "{" + ",".join([f"visualizing_index={proto.stat_index_to_visualize}", *values]) + "}"


def write_statistics(text: str, proto: Message) -> None:
    """Fill a ``StatisticsViz``."""
    for part in text.strip("{} ").split(","):
        name, _, value = part.strip().partition("=")
        if name == "visualizing_index":
            proto.stat_index_to_visualize = int(value)
        elif name:
            proto.statistics.add(stat_name=name, stat_val=float(value))


def result_accuracy_text(proto: Message) -> str:
    """``{mode=highest}``, ``{tolerance={atol=..,rtol=..,ulps=..}}``, or empty for the default."""
    if proto.HasField("tolerance"):
        of = proto.tolerance
        return f"{{tolerance={{atol={format(of.atol, 'g')},rtol={format(of.rtol, 'g')},ulps={of.ulps}}}}}"
    if not proto.mode:
        return ""
    if not 0 <= proto.mode < len(_ACCURACY_MODES):
        raise ParseError(f"unknown accuracy mode number {proto.mode}")
    return f"{{mode={_ACCURACY_MODES[proto.mode]}}}"


def write_result_accuracy(text: str, proto: Message) -> None:
    """Fill a ``ResultAccuracy``."""
    if mode := re.search(r"mode\s*=\s*(\w+)", text):
        proto.mode = _ACCURACY_MODES.index(mode.group(1).lower())
    for name, value in re.findall(r"(atol|rtol|ulps)\s*=\s*([^,}\s]+)", text):
        setattr(proto.tolerance, name, int(value) if name == "ulps" else float(value))


# -- origin ----------------------------------------------------------------------------------------------------------------


def origin_text(proto: Message, shape: Shape) -> str:
    """``{{"a" {0}}}``-like text: a tree with the shape's tuples, ``{}`` where the origin of a leaf is unknown."""
    if proto.is_synthetic_call:
        return "{[synthetic_call]}"
    arrays = {tuple(e.shape_index): e.original_array for e in proto.elements if e.HasField("original_array")}
    return "{" + _origin_node(shape, (), arrays) + "}"


def _origin_node(shape: Shape, index: ShapeIndex, arrays: dict[ShapeIndex, Message]) -> str:
    if isinstance(shape, TupleShape):
        return "(" + ", ".join(_origin_node(part, (*index, i), arrays) for i, part in enumerate(shape.elements)) + ")"
    array = arrays.get(index)
    if array is None:
        return "{}"
    where = tuple(array.shape_index)
    return f'{{"{array.instruction_name}"{" " + index_text(where) if where else ""}}}'


def write_origin(text: str, shape: Shape, proto: Message) -> None:
    """Fill an ``OriginalValueProto``."""
    if "[synthetic_call]" in text:
        proto.is_synthetic_call = True
        return
    found = re.findall(r'\{\s*(?:"([^"]*)"\s*(\{[\d,\s]*\})?)?\s*\}', text[1:-1])
    for (index, _), (name, where) in zip(leaves(shape), found, strict=False):
        element = proto.elements.add(shape_index=index)
        if name:
            element.original_array.instruction_name = name
            element.original_array.shape_index.extend(map(int, re.findall(r"\d+", where)))

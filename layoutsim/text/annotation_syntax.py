"""Attributes that every instruction may carry, read into their canonical texts (text spec, sections 1.8 and 6.2).

Each ``read_*`` checks what stands there and returns the text that the printer writes for it, so that two spellings of one
attribute compare equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.quoting import quote
from layoutsim.text.shape_syntax import read_list, read_shape_index

INT32_LIMIT = 2**31

_PROFILE_TYPES = 4


def read_sub_attributes(
    lexer: Lexer, readers: Mapping[str, Callable[[Lexer], str]], required: tuple[str, ...] = ()
) -> dict[str, str]:
    """``{name=value name=value}``, commas optional, each name at most once."""
    opening = lexer.start
    lexer.expect("{")
    found: dict[str, str] = {}
    while not lexer.eat("}"):
        lexer.eat(",")
        name = lexer.value
        if lexer.kind != Kind.ATTRIBUTE or name not in readers:
            lexer.fail(f"one of {', '.join(f'{r}=' for r in readers)} or '}}'")
        if name in found:
            raise lexer.source.error(f"attribute {name} stands here twice", lexer.start)
        lexer.advance()
        found[name] = readers[name](lexer)
    for name in required:
        if name not in found:
            raise lexer.source.error(f"expected attribute {name} in these braces, got none", opening)
    return found


def read_quoted(lexer: Lexer) -> str:
    """A string, quoted and escaped the canonical way."""
    return quote(lexer.string())


def read_int32(lexer: Lexer) -> str:
    """A 32-bit integer as text."""
    start = lexer.start
    value = lexer.integer()
    if not -INT32_LIMIT <= value < INT32_LIMIT:
        raise lexer.source.error(f"expected a 32-bit integer, got {value}", start)
    return str(value)


def _read_profile_types(lexer: Lexer) -> str:
    return "{" + ",".join(str(x) for x in read_list(lexer, "{", "}", _read_profile_type)) + "}"


def _read_profile_type(lexer: Lexer) -> int:
    start = lexer.start
    value = lexer.integer()
    if not 0 <= value <= _PROFILE_TYPES:
        raise lexer.source.error(f"expected a profile type from 0 to {_PROFILE_TYPES}, got {value}", start)
    return value


_METADATA: dict[str, Callable[[Lexer], str]] = {
    "op_type": read_quoted,
    "op_name": read_quoted,
    "source_file": read_quoted,
    "source_line": read_int32,
    "source_end_line": read_int32,
    "source_column": read_int32,
    "source_end_column": read_int32,
    "profile_type": _read_profile_types,
    "deduplicated_name": read_quoted,
    "scheduling_name": read_quoted,
    "stack_frame_id": read_int32,
    "metadata_payload": read_quoted,
}
_NOTHING = ('""', "0", "{}")


def read_metadata(lexer: Lexer) -> str:
    """``{op_name="x" source_line=3}``; fields in proto order, empty ones left out; ``{}`` becomes no metadata."""
    found = read_sub_attributes(lexer, _METADATA)
    fields = [f"{name}={found[name]}" for name in _METADATA if found.get(name, "0") not in _NOTHING]
    return "{" + " ".join(fields) + "}" if fields else ""


def read_metadata_list(lexer: Lexer) -> str:
    """One metadata block or a list of them, as shardings carry."""
    if lexer.following_kind() != "{":
        return read_metadata(lexer) or "{}"
    blocks = [block or "{}" for block in read_list(lexer, "{", "}", read_metadata)]
    return blocks[0] if len(blocks) == 1 else "{" + ", ".join(blocks) + "}"


def read_frontend_attributes(lexer: Lexer) -> str:
    """``{key="value",other={json}}`` with sorted keys; a repeated key keeps its last value."""
    lexer.expect("{")
    found: dict[str, str] = {}
    if lexer.kind != "}":
        _read_frontend_attribute(lexer, found)
        while lexer.eat(","):
            _read_frontend_attribute(lexer, found)
    lexer.expect("}", "',' or '}'")
    return "{" + ",".join(f"{key}={found[key]}" for key in sorted(found)) + "}" if found else ""


def _read_frontend_attribute(lexer: Lexer, found: dict[str, str]) -> None:
    key = lexer.expect(Kind.ATTRIBUTE, "an attribute name")
    found[key] = written(read_string_or_json(lexer))


def read_string_or_json(lexer: Lexer) -> str:
    """The value of a string, or a JSON object with its braces."""
    if lexer.kind == "{":
        return lexer.json()
    return lexer.string("a string or a JSON object")


def written(value: str) -> str:
    """How a string-or-JSON value is printed: bare if the lexer would read it whole as JSON, quoted otherwise."""
    return value if _is_json_blob(value) else quote(value)


def _is_json_blob(value: str) -> bool:
    if not (value.startswith("{") and value.endswith("}")) or "\0" in value:
        return False
    depth, offset, size = 0, 0, len(value)
    while offset < size:
        c = value[offset]
        if c == '"':
            offset = _string_end(value, offset)
            if offset < 0:
                return False
            continue
        depth += (c == "{") - (c == "}")
        offset += 1
        if depth == 0:
            return offset == size
    return False


def _string_end(value: str, offset: int) -> int:
    """Where the string that opens at ``offset`` ends, or -1; a backslash in front of a line feed ends nothing."""
    offset += 1
    while offset < len(value):
        if value[offset] == '"':
            return offset + 1
        if value[offset] == "\\":
            offset += 1
            if offset >= len(value) or value[offset] == "\n":
                return -1
        offset += 1
    return -1


def read_statistics(lexer: Lexer) -> str:
    """``{visualizing_index=1,name=2.5}`` or ``{}``."""
    lexer.expect("{")
    parts: list[str] = []
    if lexer.kind != "}":
        if lexer.kind != Kind.ATTRIBUTE or lexer.value != "visualizing_index":
            lexer.fail("visualizing_index=")
        lexer.advance()
        parts.append(f"visualizing_index={lexer.integer()}")
        while lexer.eat(","):
            name = lexer.expect(Kind.ATTRIBUTE, "a statistic name")
            if lexer.kind not in (Kind.DECIMAL, Kind.INT):
                lexer.fail("a number")
            parts.append(f"{name}={lexer.value}")
            lexer.advance()
    lexer.expect("}", "',' or '}'")
    return "{" + ",".join(parts) + "}" if parts else ""


def read_parameter_replication(lexer: Lexer) -> str:
    """``{true,false}``, one for each leaf buffer."""
    flags = read_list(lexer, "{", "}", Lexer.boolean)
    return "{" + ",".join("true" if flag else "false" for flag in flags) + "}"


def read_booleans(lexer: Lexer) -> str:
    """``true`` or ``{true,false}``."""
    if lexer.kind == "{":
        return read_parameter_replication(lexer)
    return "{true}" if lexer.boolean() else "{false}"


def read_result_accuracy(lexer: Lexer) -> str:
    """``{mode=highest}`` or ``{tolerance={atol=0.1,rtol=0.1,ulps=2}}``; ``""`` for the default mode."""
    found = read_sub_attributes(lexer, {"mode": _read_accuracy_mode, "tolerance": _read_tolerance})
    if "tolerance" in found:
        return f"{{tolerance={found['tolerance']}}}"
    return f"{{mode={found['mode']}}}" if found.get("mode", "default") != "default" else ""


def _read_accuracy_mode(lexer: Lexer) -> str:
    if lexer.kind != Kind.IDENTIFIER or lexer.value.lower() not in ("default", "highest"):
        lexer.fail("default or highest")
    mode = lexer.value.lower()
    lexer.advance()
    return mode


def _read_tolerance(lexer: Lexer) -> str:
    readers = {"atol": _read_number, "rtol": _read_number, "ulps": _read_integer}
    found = read_sub_attributes(lexer, readers)
    return "{" + ",".join(f"{name}={found[name]}" for name in readers if name in found) + "}"


def _read_integer(lexer: Lexer) -> str:
    return str(lexer.integer())


def _read_number(lexer: Lexer) -> str:
    if lexer.kind not in (Kind.DECIMAL, Kind.INT):
        lexer.fail("a number")
    value = lexer.value
    lexer.advance()
    return value


def read_origin(lexer: Lexer) -> str:
    """``{({"a" {0}}, {"b"})}``, a tuple tree of original arrays, or ``{[synthetic_call]}``."""
    lexer.expect("{")
    if lexer.eat("["):
        if not lexer.at_word("synthetic_call"):
            lexer.fail("synthetic_call")
        lexer.advance()
        lexer.expect("]")
        lexer.expect("}")
        return "{[synthetic_call]}"
    tree = "" if lexer.kind == "}" else _read_origin_tree(lexer)
    lexer.expect("}")
    return f"{{{tree}}}"


def _read_origin_tree(lexer: Lexer) -> str:
    if lexer.kind != "(":
        return read_original_array(lexer)
    lexer.deeper()
    try:
        return "(" + ", ".join(read_list(lexer, "(", ")", _read_origin_tree)) + ")"
    finally:
        lexer.depth -= 1


def read_original_array(lexer: Lexer) -> str:
    """``{"name" {0,1}}``, ``{"name"}`` or ``{}``."""
    lexer.expect("{", "'{' or '('")
    text = ""
    if lexer.kind == Kind.STRING:
        text = read_quoted(lexer)
        if lexer.kind == "{":
            index = read_shape_index(lexer)
            text += " {" + ",".join(map(str, index)) + "}" if index else ""
    lexer.expect("}")
    return f"{{{text}}}"


def read_recovery_table(lexer: Lexer) -> str:
    """``{array : array, "module text" ...}``."""
    lexer.expect("{")
    entries: list[str] = []
    while not lexer.eat("}"):
        replaced = read_original_array(lexer)
        lexer.expect(":")
        entry = f"{replaced} : {read_original_array(lexer)}"
        if lexer.eat(","):
            entry += f", {read_quoted(lexer)}"
        entries.append(entry)
    return "{" + " ".join(entries) + "}" if entries else ""


FRAME_LOCATION = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")
STACK_FRAME = ("file_location_id", "parent_frame_id")


def read_stack_frames(lexer: Lexer) -> str:
    """The stack frame index behind the header, checked and kept verbatim (blank lines at its end removed)."""
    if lexer.kind != "FileNames":
        return ""
    start = lexer.start
    lexer.advance()
    _read_numbered(lexer, read_quoted)
    lexer.expect("FunctionNames")
    _read_numbered(lexer, read_quoted)
    lexer.expect("FileLocations")
    _read_numbered(lexer, partial(_read_numbers, FRAME_LOCATION))
    lexer.expect("StackFrames")
    _read_numbered(lexer, partial(_read_numbers, STACK_FRAME))
    return lexer.text[start : lexer.previous_end]


def _read_numbered(lexer: Lexer, item: Callable[[Lexer], str]) -> None:
    while lexer.eat(Kind.INT):
        item(lexer)


def _read_numbers(names: tuple[str, ...], lexer: Lexer) -> str:
    read_sub_attributes(lexer, dict.fromkeys(names, read_int32), names)
    return ""

"""The stack frame index as a proto and as the text block behind a module's header (text spec, sections 1.6 and 7.2).

Text stores a parent frame's id plus one.
"""

from __future__ import annotations

import re

from layoutsim.proto.schema import Message
from layoutsim.text.annotation_syntax import FRAME_LOCATION
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.quoting import quote
from layoutsim.text.source import Source

_NUMBER_FIELD = re.compile(r"(\w+)=(-?\d+)")


def stack_frames_text(proto: Message) -> str:
    """The four sections, or empty."""
    if not (proto.file_names or proto.function_names or proto.file_locations or proto.stack_frames):
        return ""
    locations = (" ".join(f"{name}={getattr(location, name)}" for name in FRAME_LOCATION) for location in proto.file_locations)
    frames = (f"file_location_id={f.file_location_id} parent_frame_id={f.parent_frame_id + 1}" for f in proto.stack_frames)
    sections = {
        "FileNames": map(quote, proto.file_names),
        "FunctionNames": map(quote, proto.function_names),
        "FileLocations": (f"{{{location}}}" for location in locations),
        "StackFrames": (f"{{{frame}}}" for frame in frames),
    }
    blocks = ("\n".join([title, *(f"{i} {line}" for i, line in enumerate(lines, 1))]) for title, lines in sections.items())
    return "\n\n".join(blocks)


def write_stack_frames(text: str, proto: Message) -> None:
    """Fill a ``StackFrameIndexProto`` from the text that the parser kept."""
    lexer = Lexer(Source(text))
    section = ""
    while lexer.kind != Kind.END:
        if lexer.kind != Kind.INT:
            section = lexer.kind
            lexer.advance()
            continue
        lexer.advance()
        if section in ("FileNames", "FunctionNames"):
            (proto.file_names if section == "FileNames" else proto.function_names).append(lexer.string())
            continue
        numbers = {name: int(value) for name, value in _NUMBER_FIELD.findall(lexer.json())}
        if section == "FileLocations":
            proto.file_locations.add(**numbers)
        else:
            numbers["parent_frame_id"] -= 1
            proto.stack_frames.add(**numbers)

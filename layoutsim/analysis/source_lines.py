"""Where in the user's program an instruction comes from.

Older dumps write the file and line into each instruction's metadata. Newer ones write the number of a stack frame, and the
frames into the module's header (text spec, section 1.6): file names, functions, locations and frames, each numbered by its
position from 1.
"""

from __future__ import annotations

import re
from functools import cache

from layoutsim.ir.instruction import Instruction

_SECTION = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*$", re.MULTILINE)
_STRING = re.compile(r'^\d+[ \t]+"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_FIELD = re.compile(r"(\w+)=(\d+)")
_ENTRY = re.compile(r"^\d+[ \t]*\{([^}]*)\}", re.MULTILINE)


def source_line(instruction: Instruction) -> str:
    """``file.py:12``, or ``""`` where nothing was recorded."""
    metadata = instruction.metadata
    if metadata.source_file or not metadata.stack_frame_id:
        return metadata.location
    module = instruction.parent.parent if instruction.parent is not None else None
    if module is None or not module.config.stack_frames:
        return ""
    lines = frame_lines(module.config.stack_frames)
    number = metadata.stack_frame_id
    return lines[number - 1] if number <= len(lines) else ""


@cache
def frame_lines(stack_frames: str) -> tuple[str, ...]:
    """``file.py:12`` for each frame of a stack frame index."""
    pieces = _SECTION.split(stack_frames)
    sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    files = _STRING.findall(sections.get("FileNames", ""))
    locations = [_location(files, dict(_FIELD.findall(entry))) for entry in _ENTRY.findall(sections.get("FileLocations", ""))]
    frames = [dict(_FIELD.findall(entry)) for entry in _ENTRY.findall(sections.get("StackFrames", ""))]
    return tuple(_at(locations, int(frame.get("file_location_id", 0))) for frame in frames)


def _location(files: list[str], fields: dict[str, str]) -> str:
    name = _at(files, int(fields.get("file_name_id", 0)))
    return f"{name}:{fields.get('line', '?')}" if name else ""


def _at(items: list[str], number: int) -> str:
    """The item with this 1-based number; ``""`` where there is none."""
    return items[number - 1] if 1 <= number <= len(items) else ""

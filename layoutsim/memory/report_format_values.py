"""Names of values in XLA's reports, and the section "Used values" (memory spec, 11.2).

::

    <1 Arg_1.296 @0>
     positions:
      Arg_1.296
     uses:
      add.297.0, operand 1
     from instruction: %Arg_1.296 = bf16[] parameter(1)

The section begins with the total and ends with an empty line where another section follows (0.6.x). From 0.10.2 it is a
file of its own and says ``(none)`` where a value has no use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

from layoutsim.memory.report_format_lines import Index, Lines, parse_index, print_index
from layoutsim.memory.report_format_usage import human_bytes


@frozen
class ValueName:
    """``<12 add.3{0} (phi) @0>``: id, defining instruction, and index if that is tuple-shaped.

    Attributes:
        color: ``None`` where colours have not been assigned.
    """

    id: int
    name: str
    index: Index | None = None
    is_phi: bool = False
    color: int | None = 0

    @classmethod
    def parse(cls, text: str) -> ValueName | None:
        """Reads the short form; ``None`` if it is something else."""
        match = _VALUE_NAME.fullmatch(text)
        if match is None:
            return None
        index = parse_index(match[3]) if match[3] is not None else None
        return cls(int(match[1]), match[2], index, match[4] is not None, int(match[5]) if match[5] is not None else None)

    def __str__(self) -> str:
        index = print_index(self.index) if self.index is not None else ""
        color = f" @{self.color}" if self.color is not None else ""
        return f"<{self.id} {self.name}{index}{' (phi)' if self.is_phi else ''}{color}>"


@frozen
class UsedValue:
    """A value with all positions and uses, as printed, and the text of the instruction that defines it."""

    value: ValueName
    positions: tuple[str, ...]
    uses: tuple[str, ...]
    instruction: str


@frozen
class UsedValues:
    """The section: total of the allocations' bytes, and every assigned value by id.

    Attributes:
        says_none: whether a value without uses has a line ``(none)``.
    """

    total_bytes: int
    values: tuple[UsedValue, ...]
    says_none: bool = True


_VALUE_NAME = re.compile(r"<(\d+) ([^ ]+?)(\{[\d,]*\})?( \(phi\))?(?: @(\d+))?>")
_TOTAL = re.compile(r"Total bytes used: (\d+) \(.*\)")
_FROM = " from instruction: "


def parse_used_values(lines: Lines) -> UsedValues:
    """Reads the section, from the empty line before the total.

    Raises:
        ParseError: a line is not what XLA prints there.
    """
    lines.expect("")
    total_bytes = int(lines.match(_TOTAL, "the total bytes")[1])
    lines.expect("")
    lines.expect("Used values:")
    says_none = [False]
    values: list[UsedValue] = []
    while lines.starts_with("<"):
        values.append(_parse_value(lines, says_none))
    return UsedValues(total_bytes, tuple(values), says_none[0])


def print_used_values(section: UsedValues) -> str:
    """The section as text, from the empty line before the total."""
    head = f"\nTotal bytes used: {section.total_bytes} ({human_bytes(section.total_bytes)})\n\nUsed values:\n"
    return head + "".join(f"{line}\n" for value in section.values for line in _print_value(value, says_none=section.says_none))


def _parse_value(lines: Lines, says_none: list[bool]) -> UsedValue:
    name = ValueName.parse(lines.take())
    if name is None:
        raise lines.error("expected a value like <12 add.3{0} (phi) @0>", back=1)
    lines.expect(" positions:")
    positions = tuple(_indented(lines))
    lines.expect(" uses:")
    uses = tuple(_indented(lines))
    if uses == ("(none)",):
        says_none[0] = True
        uses = ()
    if not lines.starts_with(_FROM):
        raise lines.error(f"expected {_FROM.strip()!r}")
    return UsedValue(name, positions, uses, lines.take().removeprefix(_FROM))


def _indented(lines: Lines) -> Iterator[str]:
    while lines.starts_with("  "):
        yield lines.take()[2:]


def _print_value(value: UsedValue, *, says_none: bool) -> Iterator[str]:
    yield str(value.value)
    yield " positions:"
    yield from (f"  {position}" for position in value.positions)
    yield " uses:"
    yield from (f"  {use}" for use in value.uses)
    if not value.uses and says_none:
        yield "  (none)"
    yield f"{_FROM}{value.instruction}"

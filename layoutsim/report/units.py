"""Numbers as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_bytes(size: int) -> str:
    """``1.50 MiB``; exact below 1 KiB."""
    value, unit = float(abs(size)), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    sign = "-" if size < 0 else ""
    return f"{sign}{value:.0f} B" if unit == 0 else f"{sign}{value:.2f} {_UNITS[unit]}"


def unit_of(size: int) -> tuple[str, int]:
    """The unit in which ``size`` is a number from 1 to 1024, and its bytes: ``("MiB", 1048576)``."""
    power = 0
    while size >= 1024 ** (power + 1) and power < len(_UNITS) - 1:
        power += 1
    return _UNITS[power], 1024**power


def exact_bytes(size: int) -> str:
    """``167,772,160 B (160.00 MiB)``."""
    return f"{size:,} B" if abs(size) < 1024 else f"{size:,} B ({human_bytes(size)})"


def signed_bytes(size: int) -> str:
    """A difference: ``+160.00 MiB``, ``-3 B`` or ``=``."""
    if size == 0:
        return "="
    return f"+{human_bytes(size)}" if size > 0 else human_bytes(size)


def count(number: int, one: str, many: str) -> str:
    """``1 copy``, ``2,000 copies``."""
    return f"{number:,} {one if number == 1 else many}"

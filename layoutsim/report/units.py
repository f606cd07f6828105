"""Numbers as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_bytes(count: int) -> str:
    """``1.50 MiB``; exact below 1 KiB."""
    value, unit = float(abs(count)), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    sign = "-" if count < 0 else ""
    return f"{sign}{value:.0f} B" if unit == 0 else f"{sign}{value:.2f} {_UNITS[unit]}"


def exact_bytes(count: int) -> str:
    """``167,772,160 B (160.00 MiB)``."""
    return f"{count:,} B" if abs(count) < 1024 else f"{count:,} B ({human_bytes(count)})"


def signed_bytes(count: int) -> str:
    """A difference: ``+160.00 MiB``, ``-3 B`` or ``=``."""
    if count == 0:
        return "="
    return f"+{human_bytes(count)}" if count > 0 else human_bytes(count)

"""What must be said of a module, in HLO text, before a compiler that stands alone takes it.

1. Explicit collectives belong to an already partitioned program. Such a module is compiled as N replicas of one partition:
   shardings go, partition ids become replica ids, and collectives over channels become collectives over replicas.
2. Entry layouts are no part of a module proto's program for the compiler: they are passed as compile options.
"""

from __future__ import annotations

import re

_CROSS_DEVICE = "all-gather|all-reduce|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast"
_COLLECTIVE_LINE = re.compile(rf"^\s*(?:ROOT )?\S+ = .*? (?:{_CROSS_DEVICE})(?:-start)?\(")
_ARRAY_LEAF = re.compile(r"\b(?!token|opaque)[a-z]\w*\[([^\]]*)\](?:\{([\d,]*))?")
_ENTRY_LAYOUT = "entry_computation_layout="

Order = tuple[int, ...] | None
"""Minor-to-major order of an array, ``None`` where the compiler may choose."""

EntryOrders = tuple[list[Order], list[Order]]
"""Of the entry's parameter leaves and result leaves; tuples are flattened, tokens left out."""


def as_replicas(text: str) -> str:
    """The module as a program of replicas instead of partitions (rule 1)."""
    text = _without_shardings(text)
    text = re.sub(r", num_partitions=\d+", "", text, count=1).replace(" partition-id()", " replica-id()")
    return "\n".join(map(_without_channel, text.split("\n")))


def _without_channel(line: str) -> str:
    if "channel_id=" not in line or "use_global_device_ids=true" in line or not _COLLECTIVE_LINE.match(line):
        return line
    return re.sub(r", channel_id=\d+", "", line)


def _without_shardings(text: str) -> str:
    key, position = ", sharding={", 0
    parts: list[str] = []
    while (found := text.find(key, position)) >= 0:
        parts.append(text[position:found])
        position = _closing(text, found + len(key) - 1) + 1
    return "".join(parts) + text[position:]


def _closing(text: str, opening: int) -> int:
    """Position of the brace that closes the one at ``opening``."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.start()
    raise ValueError(f"unbalanced braces from position {opening}")


def entry_orders(text: str) -> EntryOrders | None:
    """The entry layout that the module states, or ``None``."""
    head = text.find(_ENTRY_LAYOUT)
    if head < 0:
        return None
    start = head + len(_ENTRY_LAYOUT)
    signature = re.sub(r"/\*.*?\*/", "", text[start : _closing(text, start)])
    arguments, _, results = signature.rpartition("->")
    return _leaf_orders(arguments), _leaf_orders(results)


def _leaf_orders(shapes: str) -> list[Order]:
    return [_order(dimensions, order) for dimensions, order in _ARRAY_LEAF.findall(shapes)]


def _order(dimensions: str, order: str) -> Order:
    """A scalar's order is known, and printed without braces."""
    if not dimensions:
        return ()
    return tuple(map(int, order.split(","))) if order else None

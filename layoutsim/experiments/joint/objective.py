"""What joint layout assignment minimises, and how it reads the backend's demands."""

from __future__ import annotations

from enum import StrEnum


class Objective(StrEnum):
    """What is to be small.

    * ``MOVED``: bytes moved in one run of the entry: each copy times its runs.
    * ``HELD``: bytes of the copies, each once.
    * ``PEAK``: the most bytes alive at once, as the rest of the preset's passes make it; among equals, bytes moved.
    """

    MOVED = "moved"
    HELD = "held"
    PEAK = "peak"


class DemandReading(StrEnum):
    """How the demands of a backend are taken, dimensions of size 1 aside.

    ``NEEDED``: any order that serves what the demand is made for. ``STATED``: the order that XLA writes down.
    """

    NEEDED = "needed"
    STATED = "stated"

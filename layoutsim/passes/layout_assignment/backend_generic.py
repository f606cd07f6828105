"""No backend: only what holds everywhere. XLA's base pass, as its own unit tests run it."""

from __future__ import annotations

from layoutsim.passes.layout_assignment.backends import Backend

GENERIC = Backend("generic")

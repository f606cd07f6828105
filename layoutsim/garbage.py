"""Long work without the cyclic garbage collector.

Reading and analysing a module makes millions of objects and next to no garbage; the collector walks all of them again and
again, for a third of the time. Reference counting goes on as always.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """Switch the collector off, and on again behind if it was on (so that uses may nest)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

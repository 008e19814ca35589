"""Big parses with the cyclic garbage collector off.

It takes two thirds of the time to parse a list of 4,000 objects (research/rig.md section
3), for trees of fresh dicts that hold no cycles. Used around every list.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_off"]

_lock = threading.Lock()
_holders = 0
_was_enabled = True


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the collector off until the last of all threads has left the block."""
    global _holders, _was_enabled  # noqa: PLW0603 - the collector is the process's own state
    with _lock:
        if _holders == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _was_enabled:
                gc.enable()

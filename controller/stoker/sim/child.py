"""Child processes of the rig: tied to their owner's life, on free loopback ports."""

from __future__ import annotations

import ctypes
import signal
import socket
from pathlib import Path

__all__ = ["die_with_parent", "free_ports", "tail"]

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LIBC = ctypes.CDLL(None)
_SIGKILL = int(signal.SIGKILL)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that made it ends.

    For `preexec_fn`: one system call, everything bound before the fork.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def free_ports(count: int) -> tuple[int, ...]:
    """Distinct loopback ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(int(each.getsockname()[1]) for each in sockets)
    finally:
        for each in sockets:
            each.close()


def tail(path: Path, *, lines: int = 3) -> str:
    """The last lines of a log in one, or a word that there is none."""
    if not path.exists():
        return "no log"
    with path.open("rb") as log:
        log.seek(0, 2)
        log.seek(max(0, log.tell() - 4096))
        text = log.read().decode(errors="replace")
    return " / ".join(text.strip().splitlines()[-lines:])

"""Talks to one child over its pipes, and holds no more of what it says than allowed.

Used by command.run: what a git child prints may come from a hostile server (b.G row 118).
"""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Callable
from typing import IO

__all__ = ["TooMuch", "converse"]

PIECE_BYTES = 1 << 16
ERRORS_KEPT_BYTES = 1 << 16
"""Of stderr the end says why; a server can put any amount of text before it."""


class TooMuch(Exception):
    """The child printed more than allowed; it still runs."""


def converse(
    process: subprocess.Popen[bytes],
    stdin: bytes,
    *,
    seconds: float,
    most_bytes: int,
    now: Callable[[], float],
) -> tuple[bytes, bytes]:
    """Give `stdin`, read until both outputs end, wait: stdout whole, the last 64 KiB of stderr.

    `now` gives seconds that only grow. Raises subprocess.TimeoutExpired after `seconds`, TooMuch above `most_bytes` of stdout; the
    child is then the caller's to end.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    ends_at = now() + seconds
    out, errors = bytearray(), bytearray()
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ, out)
        ready.register(process.stderr, selectors.EVENT_READ, errors)
        if rest:
            os.set_blocking(process.stdin.fileno(), False)
            ready.register(process.stdin, selectors.EVENT_WRITE)
        else:
            process.stdin.close()
        while ready.get_map():
            left = ends_at - now()
            if left <= 0:
                raise subprocess.TimeoutExpired(process.args, seconds)
            for key, _ in ready.select(left):
                pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
                if pipe is process.stdin:
                    rest = _given(pipe, rest)
                    ended = not rest
                else:
                    ended = not _taken(pipe, key.data)
                if ended:
                    ready.unregister(pipe)
                    pipe.close()
            if len(out) > most_bytes:
                raise TooMuch
            del errors[:-ERRORS_KEPT_BYTES]
    process.wait(max(0.0, ends_at - now()))
    return bytes(out), bytes(errors)


def _given(pipe: IO[bytes], rest: memoryview) -> memoryview:
    """What is left to give; nothing to a child that does not listen any more."""
    try:
        return rest[os.write(pipe.fileno(), rest[:PIECE_BYTES]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]


def _taken(pipe: IO[bytes], into: bytearray) -> bool:
    piece = os.read(pipe.fileno(), PIECE_BYTES)
    into += piece
    return bool(piece)

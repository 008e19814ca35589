"""One render child as the pool sees it: a process and its two pipes.

Started with nothing inherited: own session, empty environment, closed descriptors. The
rest of the jail is put on by the child itself (worker, jail). Called by pool.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stoker.model.parsing import parsed_json
from stoker.render import frames

__all__ = ["Child", "start_child"]

_BOOT = """
import sys
sys.path[:0] = [p for p in sys.argv[2:] if p not in sys.path]
import types, stoker
package = sys.modules["stoker.render"] = types.ModuleType("stoker.render")
package.__path__ = [stoker.__path__[0] + "/render"]
from stoker.render.worker import main
main()
"""
"""The package stays empty: it would import every stage, which is most of a child's start."""
_NEEDED_PACKAGES = ("stoker", "jinja2", "markupsafe", "yaml")
_WRITE_BYTES = 64 * 1024
_READ_BYTES = 64 * 1024
"""What a pipe holds: a read never gives more."""


@dataclass(slots=True, eq=False)
class Child:
    """A running child. `jobs` are the indices it was given and has not answered, in order.

    `deadline` is on the pool's monotonic clock, `answered` counts answers of its life.
    """

    process: subprocess.Popen[bytes]
    deadline: float
    jobs: deque[int] = field(default_factory=deque)
    started: bool = False
    answered: int = 0
    outgoing: memoryview = field(default_factory=lambda: memoryview(b""))
    _incoming: bytearray = field(default_factory=bytearray)

    @property
    def reader(self) -> int:
        """Descriptor of its answers."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    @property
    def writer(self) -> int:
        """Descriptor of its requests."""
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    def push(self) -> None:
        """Write what the pipe takes; a dead child is noticed when reading."""
        try:
            sent = os.write(self.writer, self.outgoing[:_WRITE_BYTES])
        except BlockingIOError:
            return
        except BrokenPipeError:
            sent = len(self.outgoing)
        self.outgoing = self.outgoing[sent:]

    def pull(self) -> bool:
        """Read what has arrived; False once the child has closed its end."""
        try:
            piece = os.read(self.reader, _READ_BYTES)
        except BlockingIOError:
            return True
        self._incoming += piece
        return bool(piece)

    def answers(self, max_bytes: int) -> Iterator[Any]:
        """Every whole answer that has arrived.

        Raises OverflowError for one longer than `max_bytes`, ValueError or RecursionError
        for one that is not JSON.
        """
        while len(self._incoming) >= frames.HEADER_BYTES:
            length = frames.length_of(bytes(self._incoming[: frames.HEADER_BYTES]))
            if length > max_bytes:
                raise OverflowError
            end = frames.HEADER_BYTES + length
            if len(self._incoming) < end:
                return
            body = bytes(self._incoming[frames.HEADER_BYTES : end])
            del self._incoming[:end]
            yield parsed_json(body)

    def end(self) -> None:
        """Kill it with everything it started, and reap it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def start_child(settings: dict[str, int], deadline: float) -> Child:
    """Start one; its first answer says which parts of the jail hold."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, json.dumps(settings), *_folders()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        env={},
        close_fds=True,
        start_new_session=True,
    )
    child = Child(process, deadline)
    os.set_blocking(child.reader, False)
    os.set_blocking(child.writer, False)
    return child


def _folders() -> list[str]:
    """Where the child finds the packages it needs: it does not see PYTHONPATH."""
    folders: set[str] = set()
    for name in _NEEDED_PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.add(str(Path(spec.origin).parent.parent))
    return sorted(folders)

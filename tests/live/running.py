"""`stoker run` as a process of its own, and the audit log that tells what it asks for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from stoker.clock import SystemClock

CLOCK = SystemClock()
PATIENCE = 90.0
"""Seconds to wait for anything on a machine that builds beside it; most takes a few."""


def until(check: Callable[[], object], *, seconds: float = PATIENCE, every: float = 0.1) -> float:
    """Wait until it holds; gives the seconds that took. Raises TimeoutError when it never does."""
    start = CLOCK.monotonic()
    while not check():
        if CLOCK.monotonic() - start > seconds:
            raise TimeoutError(f"not within {seconds:.0f} s")
        CLOCK.wait(every)
    return CLOCK.monotonic() - start


class Running:
    """One controller process; its log stands in `log`. Killed for certain by `kill`.

    `state` is where its Git mirror lies: an empty folder, or what a dead one has left.
    Programs are looked for in `programs` first.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        state: Path | None = None,
        programs: Path | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "controller.log"
        command = [sys.executable, "-m", "stoker", "run", "--log-format", "json", *arguments]
        command += ["--state-folder", str(state or folder / "state")]
        path = os.environ["PATH"] if programs is None else f"{programs}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(folder)}
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        return self._child.poll()

    def events(self, name: str) -> list[dict]:
        """Its log lines of an event so far."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        found = []
        for line in lines:
            with suppress(ValueError):
                found.append(json.loads(line))
        return [event for event in found if isinstance(event, dict) and event.get("event") == name]

    def children(self) -> list[int]:
        """Processes that it has started and that still run, and theirs."""
        found, todo = [], [self.pid]
        while todo:
            with suppress(OSError):
                for task in Path(f"/proc/{todo.pop()}/task").iterdir():
                    text = (task / "children").read_text(encoding="ascii")
                    todo += [int(word) for word in text.split()]
                    found += [int(word) for word in text.split()]
        return found

    def terminate(self, seconds: float) -> float:
        """SIGTERM; gives the seconds until it was gone. Raises TimeoutExpired."""
        start = CLOCK.monotonic()
        self._child.send_signal(signal.SIGTERM)
        self._child.wait(seconds)
        return CLOCK.monotonic() - start

    def kill(self) -> None:
        """SIGKILL, whatever state it is in."""
        self._child.kill()
        self._child.wait()


class Audit:
    """The requests of controllers, as the API server notes them, from now on."""

    def __init__(self, path: Path, agent: str = "stoker/") -> None:
        self._agent = agent
        self._file = path.open("rb")
        self._file.seek(0, os.SEEK_END)
        self._rest = b""

    def news(self) -> Iterator[tuple[str, str]]:
        """Verb and URI of each request that came since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if event.get("userAgent", "").startswith(self._agent):
                yield event["verb"], event["requestURI"]

    def close(self) -> None:
        self._file.close()


def is_write(request: tuple[str, str]) -> bool:
    """Whether it changes something."""
    verb, uri = request
    return verb in {"create", "update", "patch", "delete"} and "dryRun" not in uri


def gone(pid: int) -> bool:
    """Whether no such process runs; one that waits for its parent is over."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"

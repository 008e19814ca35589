"""Kills the controller of a World at its port calls, and starts another.

In: a World's transport and repository, which `Crashes` wraps. Out: `Crashed`, raised by the
call at which the process died: before it was sent, or after it was carried out and its answer
lost. Nothing of the dead process reaches a port again; the next one starts from nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stoker.cli.world import World
from stoker.cli.world_repository import Polled
from stoker.kube.transport import Request, Response, Transport

_REPO_CALLS = frozenset(
    {"fetch", "resolve", "tree", "read", "message", "commit_files", "read_branch"}
)


class Crashed(BaseException):
    """The controller's process is dead; no boundary of the product may catch this."""


class When(StrEnum):
    """Which side of a call the process dies on."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Point:
    """Die at the `number`-th call from here (0 = the next), before or after it."""

    number: int
    when: When


@dataclass(frozen=True, slots=True)
class Call:
    """One port call: `text` for people, and whether it changes anything outside."""

    text: str
    writes: bool


class Crashes:
    """Counts the calls of the running controller and kills it at armed points.

    The first point counts from `arm`, each further one from the death before it.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        """Since the last `arm`."""
        self.deaths: list[str] = []
        """Where processes died since the last `arm`, for people."""
        self._points: tuple[Point, ...] = ()
        self._from = 0
        self._process = 0
        self._dead = False
        self._lock = threading.Lock()

    def arm(self, *points: Point) -> None:
        """Count from here, and die at these points, one after the other."""
        self.calls, self.deaths, self._points, self._from = [], [], points, 0

    def transport(self, inner: Transport) -> Transport:
        """The API server as a new process sees it."""
        self._process += 1
        self._dead = False
        return _Wire(inner, self, self._process)

    def repo(self, inner: Any) -> Any:
        """The repository as that process sees it."""
        return _Git(inner, self, self._process)

    def of(self, process: int, call: Call, act: Callable[[], Any]) -> Any:
        """Carry out one call of a process, or let it die."""
        with self._lock:
            self._check_alive(process)
            ends = self._end(call)
            self.calls.append(call)
            if ends is When.BEFORE:
                self._die(call, ends)
        answer = act()
        with self._lock:
            self._check_alive(process)
            if ends is When.AFTER:
                self._die(call, ends)
        return answer

    def _end(self, call: Call) -> When | None:
        if self._points and len(self.calls) - self._from >= self._points[0].number:
            return self._points[0].when
        return None

    def _check_alive(self, process: int) -> None:
        if process < self._process or self._dead:
            raise Crashed

    def _die(self, call: Call, when: When) -> None:
        self.deaths.append(f"{when} call {len(self.calls) - self._from} of its own: {call.text}")
        self._points, self._from, self._dead = self._points[1:], len(self.calls), True
        raise Crashed


class _Wire:
    def __init__(self, inner: Transport, crashes: Crashes, process: int) -> None:
        self.url = inner.url
        self._inner, self._crashes, self._process = inner, crashes, process

    def send(self, request: Request) -> Response:
        writes = request.method != "GET" and ("dryRun", "All") not in request.query
        call = Call(f"{request.method} {request.path}", writes)
        answer: Response = self._crashes.of(self._process, call, lambda: self._inner.send(request))
        return answer

    def stream(self, request: Request) -> Iterator[bytes]:
        return self._inner.stream(request)

    def close(self) -> None:
        """The server outlives the process."""


class _Git:
    """A Repo; what is no port call goes to the real one."""

    def __init__(self, inner: Any, crashes: Crashes, process: int) -> None:
        self._inner, self._crashes, self._process = Polled(inner), crashes, process

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in _REPO_CALLS:
            return found

        def called(*args: Any, **options: Any) -> Any:
            subject = args[0] if args and isinstance(args[0], str) else ""
            call = Call(f"git {name} {subject}".rstrip(), name == "commit_files")
            return self._crashes.of(self._process, call, lambda: found(*args, **options))

        return called


class Rig:
    """A World whose controller dies as told; time moves a second at a step.

    `look` is called after each second, after each pass and after each death.
    """

    def __init__(self, world: World, crashes: Crashes, look: Callable[[], None]) -> None:
        self.world = world
        self.crashes = crashes
        self._look = look

    def second(self) -> bool:
        """One second of the cluster, then a pass; False when the controller died in it."""
        self.world.advance(1, passes=False)
        self._look()
        try:
            self.world.one_pass()
        except Crashed:
            self.world.stop_controller()
            return False
        finally:
            self._look()
        return True

    def rest(self, *, seconds: int, quiet: int = 5) -> int:
        """Let time go by until nothing was written for `quiet` seconds; the seconds it took.

        Raises TimeoutError when the fleet does not come to rest.
        """
        still = 0
        for second in range(seconds):
            before, told = self.world.memory.resource_version, len(self.crashes.calls)
            alive = self.second()
            moved = (
                self.world.memory.resource_version != before
                or any(call.writes for call in self.crashes.calls[told:])
                or self.world.is_busy
            )
            still = still + 1 if alive and not moved else 0
            if still >= quiet:
                return second + 1
        raise TimeoutError(f"no rest within {seconds} s")

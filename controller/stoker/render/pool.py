"""Runs jobs on render children, and lets no child harm anything but its own job.

Jobs come in, results go out in the same order; a child that crashes, hangs or answers too
much costs one finding on the job it was at. Called by renderer, on the reconciler thread.
"""

from __future__ import annotations

import math
import select
import signal
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker.errors import Finding, SourceLocation, Stalled
from stoker.model.ports import Clock
from stoker.render import frames
from stoker.render.child import Child, start_child
from stoker.render.jail import ON
from stoker.render.sources import SourceSet

__all__ = ["Job", "JobResult", "Limits", "Pool"]

_BATCH_ITEMS = 64
_BATCH_BYTES = 256 * 1024
_MAX_FAILED_STARTS = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job and one child may use.

    Wall and CPU seconds and output count per job, address space per child; a child is
    replaced after `jobs_per_child` jobs.
    """

    wall_seconds: float = 10.0
    cpu_seconds: int = 5
    address_space_bytes: int = 512 * 2**20
    output_bytes: int = 32 * 2**20
    start_seconds: float = 20.0
    jobs_per_child: int = 4000


@dataclass(frozen=True, slots=True)
class Job:
    """One unit's files to read (`yaml`) or templates to render (`jinja`), by name in `sources`.

    `path` is the file to blame when nothing closer is known, `data` what templates see.
    """

    path: str
    sources: SourceSet
    yaml: tuple[str, ...] = ()
    jinja: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict, hash=False)

    def item(self) -> dict[str, Any]:
        """The job as worker.answer takes it."""
        common = {"path": self.path, "set": self.sources.key}
        if self.yaml:
            return common | {"yaml": self.yaml}
        return common | {"jinja": self.jinja, "data": self.data}


@dataclass(frozen=True, slots=True)
class JobResult:
    """What came of a job. `documents` are (path, line, value), in file order.

    `decided` names the paths whose templates looked at a decision.
    """

    documents: tuple[tuple[str, int, Any], ...] = field(default=(), hash=False)
    findings: tuple[Finding, ...] = ()
    decided: tuple[str, ...] = ()


class Pool:
    """Up to `size` children, started when first needed and kept until `close`.

    With `require_jail`, `run` raises Stalled `jail-unavailable` where the kernel lacks a
    part of the jail; otherwise `jail` says which parts hold.
    """

    def __init__(
        self, size: int, clock: Clock, limits: Limits | None = None, *, require_jail: bool = False
    ) -> None:
        self._size = max(1, size)
        self._clock = clock
        self._limits = limits or Limits()
        self._require_jail = require_jail
        self._children: list[Child] = []
        weakref.finalize(self, _end_all, self._children)  # whoever forgets `close` leaves nobody
        self._failed_starts = 0
        self.jail: dict[str, str] = {}
        """Parts of the jail of the newest child: `on` or a reason. Empty before the first."""

    def warm_up(self) -> None:
        """Start one child now, so that the first job finds it ready; waits for nothing."""
        if not self._children:
            self._start()

    def run(
        self, jobs: Sequence[Job], checkpoint: Callable[[], None] | None = None
    ) -> tuple[JobResult, ...]:
        """Give one result per job. `checkpoint` is called often and may raise to stop."""
        run = _Run(jobs, deque(range(len(jobs))), [None] * len(jobs), set())
        try:
            while run.queue or any(child.jobs for child in self._children):
                if checkpoint is not None:
                    checkpoint()
                self._assign(run)
                self._wait(run)
        finally:
            # After an interrupt, answers still on their way belong to nobody.
            for child in [child for child in self._children if child.jobs]:
                self._end(child)
        return tuple(result or JobResult() for result in run.results)

    def close(self) -> None:
        """End every child; the pool may be used again."""
        _end_all(self._children)

    def _assign(self, run: _Run) -> None:
        """Replace worn children, start missing ones, and give work to the idle."""
        for child in [child for child in self._children if not child.jobs]:
            if child.answered >= self._limits.jobs_per_child:
                self._end(child)
        busy = sum(1 for child in self._children if child.jobs)
        wanted = min(self._size, busy - (-len(run.queue) // _BATCH_ITEMS))
        while len(self._children) < wanted:
            self._start()
        for child in self._children:
            if child.started and not child.jobs and run.queue:
                self._send(child, run)

    def _start(self) -> None:
        deadline = self._clock.monotonic() + self._limits.start_seconds
        self._children.append(start_child(self._settings(), deadline))

    def _settings(self) -> dict[str, int]:
        return {
            "addressSpaceBytes": self._limits.address_space_bytes,
            "cpuSeconds": self._limits.cpu_seconds,
            "outputBytes": self._limits.output_bytes,
        }

    def _send(self, child: Child, run: _Run) -> None:
        """One request with as many jobs as a batch takes; sources are sent once."""
        items: list[dict[str, Any]] = []
        texts: dict[str, str] = {}
        sets: dict[str, dict[str, tuple[str, str]]] = {}
        size = 0
        while run.queue and len(items) < _BATCH_ITEMS and size < _BATCH_BYTES:
            index = run.queue[0]
            if index in run.alone and items:
                break
            run.queue.popleft()
            job = run.jobs[index]
            if job.sources.key not in sets:
                named = job.sources.named
                sets[job.sources.key] = {name: (s.oid, s.path) for name, s in named.items()}
                texts |= {source.oid: source.text for source in named.values()}
                size += sum(len(source.text) for source in named.values())
            items.append(job.item())
            child.jobs.append(index)
            if index in run.alone:
                break
        child.outgoing = memoryview(frames.encode({"texts": texts, "sets": sets, "items": items}))
        child.deadline = self._clock.monotonic() + self._limits.wall_seconds

    def _wait(self, run: _Run) -> None:
        """Move bytes until something happened or a deadline passed."""
        poll = select.poll()  # made anew each time, it costs a third of an epoll
        owners: dict[int, Child] = {}
        for child in self._children:
            owners[child.reader] = owners[child.writer] = child
            poll.register(child.reader, select.POLLIN)
            if child.outgoing:
                poll.register(child.writer, select.POLLOUT)
        now = self._clock.monotonic()
        deadlines = [child.deadline for child in self._watched()]
        left = max(0.0, min(deadlines, default=now) - now)
        for descriptor, _ in poll.poll(math.ceil(left * 1000)):
            child = owners[descriptor]
            if child not in self._children:
                continue
            if descriptor == child.writer:
                child.push()
            elif child.pull():
                self._take(child, run)
            else:
                self._bury(child, run)
        now = self._clock.monotonic()
        for child in [child for child in self._watched() if now > child.deadline]:
            limits = self._limits
            seconds = limits.wall_seconds if child.started else limits.start_seconds
            message = f"rendering took longer than {seconds:g} s"
            self._fail(child, run, "render-timeout", message)

    def _watched(self) -> list[Child]:
        return [child for child in self._children if child.jobs or not child.started]

    def _take(self, child: Child, run: _Run) -> None:
        """Use every whole answer that has arrived."""
        try:
            for data in child.answers(self._limits.output_bytes + 2 * frames.SLACK_BYTES):
                if child.started:
                    self._accept(child, run, data)
                else:
                    self._greet(child, dict(data["jail"]))
                if child not in self._children:
                    return
        except OverflowError:
            self._fail(child, run, "render-too-large", "the render answers with too much")
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            self._fail(child, run, "render-crashed", "the render answers with nonsense")

    def _greet(self, child: Child, jail: dict[str, str]) -> None:
        child.started = True
        self._failed_starts = 0
        self.jail = jail
        missing = sorted(part for part, state in jail.items() if state != ON)
        if self._require_jail and missing:
            self._end(child)
            reasons = ", ".join(f"{part} ({jail[part]})" for part in missing)
            raise Stalled(
                f"the render jail is incomplete: {reasons}",
                code="jail-unavailable",
                hint="run on a kernel that has these parts, or do not require the jail",
            )

    def _accept(self, child: Child, run: _Run, data: Any) -> None:
        result = JobResult(
            documents=tuple(
                (str(path), int(line), value) for path, line, value in data["documents"]
            ),
            findings=tuple(_finding(entry) for entry in data["findings"]),
            decided=tuple(map(str, data["decided"])),
        )
        index = child.jobs.popleft()
        retires = bool(data.get("retire"))
        if retires and child.answered and index not in run.alone:
            run.again(index)
        else:
            run.results[index] = result
        child.answered += 1
        child.deadline = self._clock.monotonic() + self._limits.wall_seconds
        if retires:
            self._end(child, run)

    def _bury(self, child: Child, run: _Run) -> None:
        """The child died by itself; say how."""
        code = child.process.wait()
        if code == -signal.SIGXCPU:
            message = f"rendering used more than {self._limits.cpu_seconds} s of CPU time"
            self._fail(child, run, "render-timeout", message)
            return
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"status {code}"
        self._fail(child, run, "render-crashed", f"the render process died ({name})", retry=True)

    def _fail(
        self, child: Child, run: _Run, code: str, message: str, *, retry: bool = False
    ) -> None:
        """Blame the job the child was at, put the others back, end the child."""
        if not child.started:
            self._failed_starts += 1
            self._end(child)
            if self._failed_starts >= _MAX_FAILED_STARTS:
                raise Stalled(f"render children do not start: {message}", code="render-unavailable")
            return
        if child.jobs:
            index = child.jobs.popleft()
            if retry and child.answered and index not in run.alone:
                # What an earlier job left behind may be to blame: once more, in a new child.
                run.again(index)
            else:
                location = SourceLocation(run.jobs[index].path)
                run.results[index] = JobResult(findings=(Finding(location, code, message),))
        self._end(child, run)

    def _end(self, child: Child, run: _Run | None = None) -> None:
        """End the child; with a run, its unanswered jobs go back to the queue."""
        self._children.remove(child)
        if run is not None:
            run.queue.extendleft(reversed(child.jobs))
        child.jobs.clear()
        child.end()


def _end_all(children: list[Child]) -> None:
    while children:
        children.pop().end()


@dataclass(slots=True)
class _Run:
    """The state of one `run`: `alone` are jobs that get a new child of their own."""

    jobs: Sequence[Job]
    queue: deque[int]
    results: list[JobResult | None]
    alone: set[int]

    def again(self, index: int) -> None:
        """Queue the job for a second, last try."""
        self.alone.add(index)
        self.queue.appendleft(index)


def _finding(entry: Mapping[str, Any]) -> Finding:
    return Finding(
        SourceLocation(str(entry["path"]), int(entry["line"]), int(entry["column"])),
        str(entry["code"]),
        str(entry["message"]),
        hint=str(entry["hint"]),
    )

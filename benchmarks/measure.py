"""What a process costs: CPU with its children, peak memory, requests by the audit log."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = [
    "AuditMark",
    "Cost",
    "Meter",
    "Requests",
    "count_requests",
    "machine",
    "row",
    "run_seconds",
    "wait_until",
]

_TICKS = os.sysconf("SC_CLK_TCK")
_READS = frozenset({"get", "list", "watch", "discover"})


def row(
    measure: str, value: float, unit: str, bar: float | None, *, section: str = "core"
) -> dict[str, Any]:
    """One row of the results; `bar` is the most that the value may be, None = no bar."""
    return {
        "section": section,
        "measure": measure,
        "value": round(value, 3),
        "unit": unit,
        "bar": bar,
        "holds": bar is None or value <= bar,
    }


def machine() -> dict[str, Any]:
    """The machine that the figures are from, and how busy it was when asked."""
    return {
        "cpu": _first_value("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": int(_first_value("/proc/meminfo", "MemTotal").split()[0]) // 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def _first_value(path: str, key: str) -> str:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return "0"


# ------------------------------------------------------------------ CPU and memory


def _stat(pid: int) -> tuple[int, float] | None:
    """Parent and CPU seconds (own and of reaped children) of a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), sum(int(fields[i]) for i in (11, 12, 13, 14)) / _TICKS


def _family(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (found := _stat(int(entry.name))) is not None:
            parents[int(entry.name)] = found[0]
    members, grew = {root}, True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in members} - members
        grew = bool(more)
        members |= more
    return sorted(members)


def peak_mib(pid: int) -> float:
    """VmHWM: the most memory the process has held at once; 0 when it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


@dataclass(frozen=True)
class Cost:
    """CPU seconds with children, peak MiB of the process and of each living child."""

    cpu_seconds: float
    peak_mib: float
    children_mib: tuple[float, ...]


@dataclass
class Meter:
    """Reads one process and its children; `start` sets the zero."""

    pid: int
    _zero: float = field(default=0.0)

    def cpu(self) -> float:
        """CPU seconds so far, of the process, its living children and those it reaped."""
        return sum(found[1] for pid in _family(self.pid) if (found := _stat(pid)) is not None)

    def start(self) -> None:
        """Count from here."""
        self._zero = self.cpu()

    def read(self) -> Cost:
        """The cost since `start`; peaks are those of the whole life."""
        children = [peak_mib(pid) for pid in _family(self.pid) if pid != self.pid]
        return Cost(
            cpu_seconds=self.cpu() - self._zero,
            peak_mib=peak_mib(self.pid),
            children_mib=tuple(sorted(round(mib, 1) for mib in children)),
        )

    def settle(self, *, quiet_seconds: float = 3.0, share: float = 0.05, seconds: float) -> None:
        """Wait until the process has used less than `share` of a core for `quiet_seconds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            before = self.cpu()
            time.sleep(quiet_seconds)
            if self.cpu() - before < share * quiet_seconds:
                return
        raise TimeoutError(f"the controller is still busy after {seconds:.0f} s")


# ------------------------------------------------------------------------- requests


@dataclass(frozen=True)
class AuditMark:
    """A place in the audit log to count from; the API server puts a full file aside."""

    path: Path
    offset: int
    inode: int = 0

    @classmethod
    def now(cls, path: Path) -> AuditMark:
        """The end of the log as it is."""
        found = path.stat() if path.exists() else None
        return cls(path, found.st_size, found.st_ino) if found else cls(path, 0)

    def lines(self) -> Iterator[bytes]:
        """Whole lines since, of the file that was marked and of all begun after it."""
        files = sorted(
            self.path.parent.glob(f"{self.path.stem}*{self.path.suffix}"),
            key=lambda file: file.stat().st_mtime,
        )
        inodes = [file.stat().st_ino for file in files]
        first = inodes.index(self.inode) if self.inode in inodes else len(files) - 1
        for number, file in enumerate(files[first:]):
            with file.open("rb") as log:
                log.seek(0 if number else self.offset)
                yield from (line for line in log if line.endswith(b"\n"))


@dataclass(frozen=True)
class Requests:
    """Requests of one client by verb; those on its lease stand apart, for they follow the clock.

    `mirrors` are those of `verbs` that went to our own kinds, which only show what stands.
    """

    verbs: Counter[str]
    lease: Counter[str]
    mirrors: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All but the lease's."""
        return sum(self.verbs.values())

    @property
    def writes(self) -> int:
        """All writes but the lease's."""
        return sum(count for verb, count in self.verbs.items() if verb not in _READS)

    def __str__(self) -> str:
        return f"{dict(self.verbs)}, lease {dict(self.lease)}"


def count_requests(mark: AuditMark, agent: str) -> Requests:
    """Requests of one client since the mark; a watch counts when it starts.

    Server-side applies are told from other patches by their `force` query; `discover` is
    a read of no object: which kinds are served, the server's version, who it takes us for.
    """
    verbs: Counter[str] = Counter()
    lease: Counter[str] = Counter()
    mirrors: Counter[str] = Counter()
    seen: set[str] = set()
    for line in mark.lines():
        event = json.loads(line)
        if not (event.get("userAgent") or "").startswith(agent):
            continue
        if event.get("stage") not in {"ResponseComplete", "ResponseStarted", "Panic"}:
            continue
        if event["auditID"] in seen:
            continue
        seen.add(event["auditID"])
        asked = event.get("objectRef") or {}
        (lease if asked.get("resource") == "leases" else verbs)[_verb(event)] += 1
        if asked.get("apiGroup") == "stoker.dev":
            mirrors[_verb(event)] += 1
    return Requests(verbs, lease, mirrors)


def _verb(event: dict[str, Any]) -> str:
    verb = str(event.get("verb", "-"))
    query = parse_qs(urlsplit(event.get("requestURI", "")).query)
    if verb == "patch" and "force" in query:
        verb = "apply"
    asked = event.get("objectRef") or {}
    if (verb == "get" and not asked) or asked.get("resource") == "selfsubjectreviews":
        verb = "discover"
    return f"{verb}-dryrun" if query.get("dryRun") else verb


# ---------------------------------------------------------------------------- time


def wait_until(
    what: str, check: Callable[[], bool], *, seconds: float, every: float = 0.2
) -> float:
    """Seconds until `check` holds; raises TimeoutError after `seconds`."""
    started = time.monotonic()
    while not check():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(every)
    return time.monotonic() - started


def run_seconds(command: Sequence[str], *, times: int, ok: tuple[int, ...] = (0,)) -> list[float]:
    """Wall seconds of each run of a command, sorted."""
    taken = []
    for _ in range(times):
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, check=False)
        taken.append(time.monotonic() - started)
        if done.returncode not in ok:
            raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr.decode()[-500:]}")
    return sorted(taken)

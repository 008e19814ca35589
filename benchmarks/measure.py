"""What a process costs: CPU with its children, peak memory, requests by the audit log."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

__all__ = ["AuditMark", "Cost", "Meter", "count_requests", "row", "wait_until"]

_TICKS = os.sysconf("SC_CLK_TCK")


def row(measure: str, value: float, unit: str, bar: float | None, *, section: str = "core") -> dict:
    """One row of the results; `bar` is the most that the value may be, None = no bar."""
    return {
        "section": section,
        "measure": measure,
        "value": round(value, 3),
        "unit": unit,
        "bar": bar,
        "holds": bar is None or value <= bar,
    }


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


def _peak_mib(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


@dataclass(frozen=True)
class Cost:
    """CPU seconds with children, peak MiB of the process and of its largest child."""

    cpu_seconds: float
    peak_mib: float
    child_peak_mib: float


@dataclass
class Meter:
    """Reads one process and its children; `start` sets the zero."""

    pid: int
    _zero: float = field(default=0.0)

    def cpu(self) -> float:
        return sum(found[1] for pid in _family(self.pid) if (found := _stat(pid)) is not None)

    def start(self) -> None:
        self._zero = self.cpu()

    def read(self) -> Cost:
        family = _family(self.pid)
        children = [_peak_mib(pid) for pid in family if pid != self.pid]
        return Cost(self.cpu() - self._zero, _peak_mib(self.pid), max(children, default=0.0))


@dataclass(frozen=True)
class AuditMark:
    """A place in the audit log to count from."""

    path: Path
    offset: int

    @classmethod
    def now(cls, path: Path) -> AuditMark:
        return cls(path, path.stat().st_size if path.exists() else 0)


def count_requests(mark: AuditMark, agent: str) -> Counter[str]:
    """Requests of one client since the mark by verb; a watch counts when it starts.

    Server-side applies are told from other patches by their `force` query.
    """
    verbs: Counter[str] = Counter()
    with mark.path.open("rb") as log:
        log.seek(mark.offset)
        seen: set[str] = set()
        for line in log:
            if not line.endswith(b"\n"):
                break
            event = json.loads(line)
            if not (event.get("userAgent") or "").startswith(agent):
                continue
            if event.get("stage") not in {"ResponseComplete", "ResponseStarted", "Panic"}:
                continue
            if event["auditID"] in seen:
                continue
            seen.add(event["auditID"])
            verb = event.get("verb", "-")
            query = parse_qs(urlsplit(event.get("requestURI", "")).query)
            if verb == "patch" and "force" in query:
                verb = "apply"
            if query.get("dryRun"):
                verb += "-dryrun"
            verbs[verb] += 1
    return verbs


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


def run_seconds(command: list[str], *, times: int, ok: tuple[int, ...] = (0,)) -> list[float]:
    """Wall seconds of each run of a command."""
    taken = []
    for _ in range(times):
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, check=False)
        taken.append(time.monotonic() - started)
        if done.returncode not in ok:
            raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr.decode()[-500:]}")
    return sorted(taken)

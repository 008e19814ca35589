"""What a controller holds after a long time, section apply: a real soak and a virtual day.

Both follow a fleet of 100 units through random churn from a fixed seed: a field changed in
Git, a unit that leaves and comes back, an edit by hand, an object deleted by hand. What the
process holds in the last minute (hour, where time is virtual) is set beside the first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from churn import Churn
from measure import row
from w1_rig import NAMESPACE, Rig, fleet, installed

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport

UNITS = int(os.environ.get("SOAK_UNITS", "100"))
SECONDS = int(os.environ.get("SOAK_SECONDS", "600"))
VIRTUAL_HOURS = int(os.environ.get("SOAK_VIRTUAL_HOURS", "24"))
SETTLE_SECONDS = 30
"""Churn before the first minute is counted: the caches of a young process still fill."""
EVERY_SECONDS = 2.0
GROWTH = 1.1


@dataclass(frozen=True)
class Held:
    """What a process holds at one instant."""

    memory_mib: float
    threads: int
    descriptors: int

    @classmethod
    def of(cls, pid: int) -> Held:
        """Read from /proc."""
        status = Path(f"/proc/{pid}/status").read_text("ascii")
        lines = dict(line.split(":", 1) for line in status.splitlines())
        return cls(
            memory_mib=int(lines["VmRSS"].split()[0]) / 1024,
            threads=int(lines["Threads"]),
            descriptors=len(os.listdir(f"/proc/{pid}/fd")),  # noqa: PTH208 - names suffice
        )


def run() -> list[dict[str, Any]]:
    """The real soak, then the virtual day in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch, fleet(Path(scratch), UNITS) as rig:
        rows = soak(rig)
    command = [sys.executable, str(Path(__file__).with_name("virtual_day.py"))]
    done = subprocess.run(
        [*command, str(UNITS), str(VIRTUAL_HOURS)], check=True, stdout=subprocess.PIPE
    )
    first, last = ([Held(**sample) for sample in samples] for samples in json.loads(done.stdout))
    return [*rows, *growth(f"{VIRTUAL_HOURS} virtual hours", first, last)]


def soak(rig: Rig) -> list[dict[str, Any]]:
    """Real time on the real API server."""
    client = Client(HttpsTransport.from_kubeconfig(rig.plane.kubeconfig_path), user_agent="churn")
    churn = Churn(rig.work, client, units=UNITS, namespace=NAMESPACE, remote=rig.bare)
    samples: list[tuple[float, Held]] = []
    with installed(rig) as (process, _, _, _):
        started = time.monotonic()
        ends = started + SETTLE_SECONDS + SECONDS
        while (now := time.monotonic()) < ends:
            churn.act()
            if now >= started + SETTLE_SECONDS:
                samples.append((now, Held.of(process.pid)))
            time.sleep(EVERY_SECONDS)
    minute = min(60.0, SECONDS / 2)
    begin, end = samples[0][0], samples[-1][0]
    first = [held for at, held in samples if at < begin + minute]
    last = [held for at, held in samples if at > end - minute]
    return growth(f"soak of {SECONDS} s", first, last)


def growth(what: str, first: Sequence[Held], last: Sequence[Held]) -> list[dict[str, Any]]:
    """Means of the last samples over means of the first."""
    print(f"{what}: {_mean(first)} at the start, {_mean(last)} at the end", file=sys.stderr)
    ratios = [after / before for before, after in zip(_mean(first), _mean(last), strict=True)]
    return [
        row(f"{what}: {name}, end over start", ratio, "ratio", GROWTH, section="apply")
        for name, ratio in zip(("memory", "threads", "descriptors"), ratios, strict=True)
    ]


def _mean(samples: Sequence[Held]) -> tuple[float, float, float]:
    count = len(samples)
    return (
        round(sum(held.memory_mib for held in samples) / count, 2),
        round(sum(held.threads for held in samples) / count, 2),
        round(sum(held.descriptors for held in samples) / count, 2),
    )

"""W1 on the real API server, section core: install, idle, one unit changed, no-op.

The rig and how it counts: w1_rig. These are the first bars; bench_apply goes on from them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import w1
from measure import AuditMark, Meter, row
from w1_rig import (
    NAMESPACE,
    POLL_JITTER,
    POLL_SECONDS,
    UNITS,
    Rig,
    fleet,
    floor_seconds,
    fresh_pass,
    installed,
    requests_since,
)

IDLE_SECONDS = 60


def install(rig: Rig, base: float) -> list[dict[str, Any]]:
    """From nothing to every Deployment observed; then the phases of the running controller."""
    mark = AuditMark.now(rig.plane.audit_log)
    with installed(rig) as (process, meter, _, taken):
        cost, requests = meter.read(), requests_since(mark)
        print(f"install: {taken:.1f} s, {requests}, {cost}", file=sys.stderr)
        return [
            row(f"W1 install, {UNITS} units: requests", requests.total, "requests", 5 * UNITS),
            row("W1 install: controller CPU", cost.cpu_seconds, "CPU s", 60),
            row("W1 install: wall, times the floor", taken / base, "ratio", 3),
            row("W1 install: wall", taken, "s", None),
            row("W1 install: peak memory of the controller", cost.peak_mib, "MiB", 250),
            row("W1 install: peak of a render worker", max(cost.children_mib), "MiB", None),
            *idle(rig, meter),
            *one_unit(rig, meter, process),
        ]


def idle(rig: Rig, meter: Meter) -> list[dict[str, Any]]:
    """A minute in which nothing changes but what the cluster's own controllers write."""
    mark = AuditMark.now(rig.plane.audit_log)
    asked, read = rig.git_reads(), rig.log.stat().st_size
    meter.start()
    time.sleep(IDLE_SECONDS)
    cost, asked = meter.read(), rig.git_reads() - asked
    requests, passes = requests_since(mark), rig.passes(read)
    polls = int(IDLE_SECONDS / (POLL_SECONDS * (1 - POLL_JITTER))) + 1
    print(f"idle: {requests}, {len(passes)} passes, {cost}", file=sys.stderr)
    what = f"W1 idle {IDLE_SECONDS} s"
    return [
        row(f"{what}: writes but the lease", requests.writes, "requests", 0),
        row(f"{what}: other requests but the lease", requests.total, "requests", None),
        row(f"{what}: requests of the lease", sum(requests.lease.values()), "requests", None),
        row(f"{what}: ls-remotes (polls every {POLL_SECONDS} s)", asked, "ls-remotes", polls),
        row(f"{what}: controller CPU", cost.cpu_seconds, "CPU s", 1),
        row(f"{what}: passes", len(passes), "passes", None),
    ]


def one_unit(rig: Rig, meter: Meter, process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """A commit that touches one unit, until its status is on the branch and all is quiet."""
    for path, text in w1.unit_files(17, namespace=NAMESPACE, cpu="3m").items():
        (rig.work / path).write_text(text, encoding="utf-8")
    mark, read = AuditMark.now(rig.plane.audit_log), rig.log.stat().st_size
    meter.start()
    commit = w1.commit(rig.work, "one unit", remote=rig.bare)
    rig.rest(commit, process)
    cost, requests = meter.read(), requests_since(mark)
    rendered = sum(int(event["rendered"]) for event in rig.passes(read))
    print(f"one unit: {requests}, {cost}", file=sys.stderr)
    return [
        row("W1 one unit: units rendered", rendered, "units", 1),
        row("W1 one unit: requests but the lease", requests.total, "requests", 20),
        row("W1 one unit: controller CPU", cost.cpu_seconds, "CPU s", 2),
    ]


def no_op(rig: Rig) -> list[dict[str, Any]]:
    """A fresh process with empty caches at a revision that is applied already."""
    found = fresh_pass(rig)
    what = "W1 no-op, fresh process"
    return [
        row(f"{what}: writes", found.requests.writes, "requests", 0),
        row(f"{what}: requests", found.requests.total, "requests", 50),
        row(f"{what}: CPU", found.cpu_seconds, "CPU s", 8),
        row(f"{what}: peak memory of the controller", found.peak_mib, "MiB", None),
    ]


def run() -> list[dict[str, Any]]:
    """All phases: the floor on its own control plane, the controller's on another."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        base = floor_seconds(folder / "floor", UNITS)
        print(f"floor: {base:.1f} s", file=sys.stderr)
        with fleet(folder, UNITS) as rig:
            rows = [row("W1 floor: wall", base, "s", None)]
            rows += install(rig, base)
            rows += no_op(rig)
    return rows

"""W1 on the real API server, section apply: the bars that stand ten times below Flux.

Install, one field in all units, a drift edit until it is repaired, ten quiet minutes. Rig and
counting: w1_rig.
"""

from __future__ import annotations

import os
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
    UNITS,
    Rig,
    Watched,
    fleet,
    floor_seconds,
    installed,
    largest_request_mib,
    requests_since,
)

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef

STEADY_SECONDS = int(os.environ.get("W1_STEADY_SECONDS", "600"))
EDITS = 100


def install(rig: Rig, base: float) -> list[dict[str, Any]]:
    """From nothing to every Deployment observed; then what a running controller meets."""
    mark = AuditMark.now(rig.plane.audit_log)
    with installed(rig) as (process, meter, _, taken):
        cost, requests = meter.read(), requests_since(mark)
        print(f"install: {taken:.1f} s, {requests}, {cost}", file=sys.stderr)
        rows = [
            _row("install: wall, times the floor", taken / base, "ratio", 1.5),
            _row("install: requests", requests.total, "requests", 4250),
            _row("install: controller CPU", cost.cpu_seconds, "CPU s", 24),
            *update(rig, meter, process, base),
            *drift(rig),
            *steady(rig, meter),
        ]
        rows.append(_row("peak memory of the controller", meter.read().peak_mib, "MiB", 200))
        what = "largest request of all phases, to the next 0.1 MB"
        rows.append(_row(what, largest_request_mib(rig.plane), "MiB", 1))
        return rows


def update(
    rig: Rig, meter: Meter, process: subprocess.Popen[bytes], base: float
) -> list[dict[str, Any]]:
    """One field of the Deployment of every unit."""
    for number in range(1, UNITS + 1):
        for path, text in w1.unit_files(number, namespace=NAMESPACE, cpu="2m").items():
            (rig.work / path).write_text(text, encoding="utf-8")
    watched, mark = Watched(rig.plane, UNITS, newer=True), AuditMark.now(rig.plane.audit_log)
    meter.start()
    commit = w1.commit(rig.work, "all units", remote=rig.bare)
    started = time.monotonic()
    watched.wait("update", 900)
    taken = time.monotonic() - started
    rig.rest(commit, process)
    cost, requests = meter.read(), requests_since(mark)
    print(f"update: {taken:.1f} s, {requests}, {cost}", file=sys.stderr)
    return [
        _row("one field in all units: wall, times the floor", taken / base, "ratio", 1.6),
        _row("one field in all units: requests", requests.total, "requests", 1100),
        _row("one field in all units: controller CPU", cost.cpu_seconds, "CPU s", 24),
    ]


def drift(rig: Rig) -> list[dict[str, Any]]:
    """Edits by hand of a field that Git says, one after the other, each until it is put right."""
    client, taken = _admin(rig), []
    for number in range(1, min(EDITS, UNITS) + 1):
        ref = ObjectRef("", "Service", NAMESPACE, f"u{number:05d}", "v1")
        label = {"metadata": {"labels": {"app.kubernetes.io/name": "by-hand"}}}
        client.patch(ref, "merge", label, manager="kubectl-edit")
        started = time.monotonic()
        while client.get(ref)["metadata"]["labels"]["app.kubernetes.io/name"] != ref.name:
            if time.monotonic() > started + 60:
                raise TimeoutError(f"{ref}: drift stands after 60 s")
            time.sleep(0.01)
        taken.append(time.monotonic() - started)
    taken.sort()
    print(f"drift: median {taken[len(taken) // 2]:.2f} s, worst {taken[-1]:.2f} s", file=sys.stderr)
    return [
        _row(f"drift edit to repaired, median of {EDITS}", taken[len(taken) // 2], "s", None),
        _row(f"drift edit to repaired, p99 of {EDITS}", taken[len(taken) * 99 // 100 - 1], "s", 1),
    ]


def steady(rig: Rig, meter: Meter) -> list[dict[str, Any]]:
    """Nothing happens; audits go on."""
    time.sleep(rig.quiet_seconds)
    mark = AuditMark.now(rig.plane.audit_log)
    meter.start()
    time.sleep(STEADY_SECONDS)
    cost, requests = meter.read(), requests_since(mark)
    print(f"steady: {requests}, {cost}", file=sys.stderr)
    what = f"steady {STEADY_SECONDS} s, audits included"
    return [
        _row(f"{what}: requests", requests.total, "requests", 100),
        _row(f"{what}: cores", cost.cpu_seconds / STEADY_SECONDS, "cores", 0.01),
    ]


def run() -> list[dict[str, Any]]:
    """All phases, after the floor on a control plane of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        base = floor_seconds(folder / "floor", UNITS)
        print(f"floor: {base:.1f} s", file=sys.stderr)
        rows = [_row("floor: wall", base, "s", None)]
        with fleet(folder / "main", UNITS) as rig:
            rows += install(rig, base)
    return rows


def _row(measure: str, value: float, unit: str, bar: float | None) -> dict[str, Any]:
    return row(f"W1 {measure}", value, unit, bar, section="apply")


def _admin(rig: Rig) -> Client:
    transport = HttpsTransport.from_kubeconfig(rig.plane.kubeconfig_path)
    return Client(transport, user_agent="bench")

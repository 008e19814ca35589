"""W1 on the real API server, section apply: the bars that stand ten times below Flux.

Install, one field in all units, no-op by a fresh and by the warm process, one unit among
100, 1,000 and 5,000, a drift edit until it is repaired, ten quiet minutes. Rig and
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
from measure import AuditMark, Meter, row, wait_until
from w1_rig import (
    NAMESPACE,
    UNITS,
    Rig,
    Watched,
    fleet,
    floor_seconds,
    fresh_pass,
    installed,
    largest_request_mib,
    requests_since,
)

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef

STEADY_SECONDS = int(os.environ.get("W1_STEADY_SECONDS", "600"))
SIZES = tuple(int(size) for size in os.environ.get("W1_SIZES", "100,5000").split(",") if size)
"""Fleets beside that of 1,000 units in which one unit is changed."""
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
            *one_unit(rig, meter, process, 1000),
            *warm(rig, meter, process),
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


def one_unit(
    rig: Rig, meter: Meter, process: subprocess.Popen[bytes], units: int
) -> list[dict[str, Any]]:
    """A commit that touches one unit: until its Deployment shows it, then until all is quiet."""
    number = min(17, rig.units)
    for path, text in w1.unit_files(number, namespace=NAMESPACE, cpu="3m").items():
        (rig.work / path).write_text(text, encoding="utf-8")
    mark, read = AuditMark.now(rig.plane.audit_log), rig.log.stat().st_size
    client, ref = _admin(rig), ObjectRef("apps", "Deployment", NAMESPACE, f"u{number:05d}", "v1")
    meter.start()
    commit = w1.commit(rig.work, "one unit", remote=rig.bare)
    polls = rig.git_reads()
    wait_until("a poll", lambda: rig.git_reads() > polls, seconds=60, every=0.01)
    taken = wait_until(
        "one unit", lambda: _cpu_of(client.get(ref)) == "3m", seconds=120, every=0.02
    )
    rig.rest(commit, process)
    cost, requests = meter.read(), requests_since(mark)
    rendered = sum(int(event["rendered"]) for event in rig.passes(read))
    print(f"one unit of {units}: {taken:.2f} s, {requests}, {cost}", file=sys.stderr)
    what = f"one unit of {units:,}"
    return [
        _row(f"{what}: from the poll to its Deployment", taken, "s", 1),
        _row(f"{what}: requests", requests.total, "requests", 10),
        _row(f"{what}: units rendered", rendered, "units", 1),
        _row(f"{what}: controller CPU", cost.cpu_seconds, "CPU s", 1),
    ]


def warm(rig: Rig, meter: Meter, process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """A commit that changes nothing: the running controller looks at everything again."""
    mark = AuditMark.now(rig.plane.audit_log)
    meter.start()
    rig.rest(w1.commit(rig.work, "nothing", remote=rig.bare), process)
    cost, requests = meter.read(), requests_since(mark)
    asked = requests.total - requests.verbs["watch"]
    print(f"warm no-op: {requests}, {cost}", file=sys.stderr)
    return [
        _row("no-op by the warm process: requests but watches", asked, "requests", 0),
        _row("no-op by the warm process: CPU", cost.cpu_seconds, "CPU s", None),
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


def no_op(rig: Rig) -> list[dict[str, Any]]:
    """A fresh process with empty caches at a revision that is applied already."""
    found = fresh_pass(rig)
    what = "no-op by a fresh process"
    return [
        _row(f"{what}: wall", found.seconds, "s", 3),
        _row(f"{what}: writes", found.requests.writes, "requests", 0),
        _row(f"{what}: requests", found.requests.total, "requests", 30),
        _row(f"{what}: CPU", found.cpu_seconds, "CPU s", 4),
    ]


def among(folder: Path, units: int) -> list[dict[str, Any]]:
    """One unit changed in a fleet of another size."""
    with fleet(folder, units) as rig, installed(rig) as (process, meter, _, _):
        return one_unit(rig, meter, process, units)


def run() -> list[dict[str, Any]]:
    """All phases, each fleet on a control plane of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        base = floor_seconds(folder / "floor", UNITS)
        print(f"floor: {base:.1f} s", file=sys.stderr)
        rows = [_row("floor: wall", base, "s", None)]
        with fleet(folder / "main", UNITS) as rig:
            rows += install(rig, base)
            rows += no_op(rig)
        for units in SIZES:
            rows += among(folder / str(units), units)
    return rows


def _row(measure: str, value: float, unit: str, bar: float | None) -> dict[str, Any]:
    return row(f"W1 {measure}", value, unit, bar, section="apply")


def _admin(rig: Rig) -> Client:
    transport = HttpsTransport.from_kubeconfig(rig.plane.kubeconfig_path)
    return Client(transport, user_agent="bench")


def _cpu_of(body: dict[str, Any]) -> str:
    container = body["spec"]["template"]["spec"]["containers"][0]
    return str(container["resources"]["requests"]["cpu"])

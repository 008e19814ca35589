"""Little and nothing to do on the real API server, section apply.

One unit changed among 100, 1,000 and 5,000; no-op by the warm process and by a fresh one.
Rig and counting: w1_rig.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import w1
from measure import AuditMark, Meter, row, wait_until
from w1_rig import NAMESPACE, Rig, fleet, fresh_pass, installed, requests_since

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef

SIZES = tuple(int(size) for size in os.environ.get("W1_SIZES", "100,1000,5000").split(",") if size)
NO_OP = 1000
"""The size of the fleet that is looked at again."""


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
    """One unit changed in a fleet of some size, and of the usual size nothing at all."""
    with fleet(folder, units) as rig:
        with installed(rig) as (process, meter, _, _):
            rows = one_unit(rig, meter, process, units)
            if units == NO_OP:
                rows += warm(rig, meter, process)
        if units == NO_OP:
            rows += no_op(rig)
    return rows


def run() -> list[dict[str, Any]]:
    """Each fleet on a control plane of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        return [found for units in SIZES for found in among(Path(scratch) / str(units), units)]


def _row(measure: str, value: float, unit: str, bar: float | None) -> dict[str, Any]:
    return row(f"W1 {measure}", value, unit, bar, section="apply")


def _admin(rig: Rig) -> Client:
    transport = HttpsTransport.from_kubeconfig(rig.plane.kubeconfig_path)
    return Client(transport, user_agent="bench")


def _cpu_of(body: dict[str, Any]) -> str:
    container = body["spec"]["template"]["spec"]["containers"][0]
    return str(container["resources"]["requests"]["cpu"])

"""Takes over the fields of an adopted object from the tools that wrote it before.

The answer of the adopting apply comes in; the object as it is then goes out: entries that
shared fields with ours are gone, and so are the marks by which Flux, Argo CD and kubectl
find their objects. No other value changes and nothing restarts. Called by send.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stoker.apply.answers import Sent
from stoker.errors import StokerError
from stoker.kube.errors import Conflict, Invalid
from stoker.model.change import Change
from stoker.model.outcome import Result
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.objects.takeover import predecessors, tracking_marks, without_predecessors

__all__ = ["succeeded", "taken_over"]

ATTEMPTS = 3
"""How often an object is read again that a controller writes at the same time."""


def succeeded(cluster: Cluster, change: Change, sent: Sent, manager: str) -> Sent:
    """What was sent, after the takeover where the change adopts an object.

    A takeover that fails leaves the object adopted and its fields shared; the outcome says
    so, and the next pass tries again.
    """
    if not change.adopted or sent.body is None:
        return sent
    try:
        body = taken_over(cluster, change.ref, sent.body, manager)
    except StokerError as error:
        message = f"its fields are still shared with others: {error.message}"
        return replace(sent, outcome=replace(sent.outcome, message=message))
    if body is sent.body:
        return sent
    return replace(sent, body=body, outcome=replace(sent.outcome, result=Result.CHANGED))


def taken_over(
    cluster: Cluster, ref: ObjectRef, live: dict[str, Any], manager: str
) -> dict[str, Any]:
    """The object after the takeover, or as it was where there is nothing to take.

    One that keeps changing meanwhile is left to the next pass. Raises what the Cluster port
    raises.
    """
    for _ in range(ATTEMPTS):
        if not predecessors(live, manager):
            return live
        try:
            return cluster.patch(ref, "json", _patch(live, manager), manager=manager)
        except (Conflict, Invalid):  # somebody has written since
            live = cluster.get(ref)
    return live


def _patch(live: dict[str, Any], manager: str) -> list[dict[str, Any]]:
    """Entries and marks out, on exactly this object in exactly this version."""
    metadata = live["metadata"]
    tests = [
        {"op": "test", "path": f"/metadata/{key}", "value": metadata[key]}
        for key in ("uid", "resourceVersion")
    ]
    entries = without_predecessors(live, manager)
    marks = [
        {"op": "remove", "path": f"/metadata/{place}/{_escaped(key)}"}
        for place, key in tracking_marks(live, manager)
    ]
    return [*tests, {"op": "replace", "path": "/metadata/managedFields", "value": entries}, *marks]


def _escaped(key: str) -> str:
    """A key in a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")

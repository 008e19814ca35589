"""A recorded start: a folder with what kubectl printed of one pod.

pod.json (`kubectl get pod -o json`), events.json (`kubectl get events -o json`) and
engine.log (`kubectl logs --timestamps`); one of the first two is needed. Called by coldstart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.errors import BadInput, Finding, SourceLocation
from stoker.objects.health_fields import items, mapping, text
from stoker.objects.start_facts import concerns

__all__ = ["Recorded", "read_recorded_start"]

POD, EVENTS, LOG = "pod.json", "events.json", "engine.log"
MOST_BYTES = 64 * 2**20
"""Of a file; a log is looked at up to here. A start has said all in its first megabytes."""
HINT = "kubectl get pod NAME -o json > pod.json; kubectl get events -o json > events.json"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One pod (empty where it was not recorded), its events, and its lines."""

    pod: dict[str, Any]
    events: tuple[dict[str, Any], ...]
    log: tuple[str, ...]


def read_recorded_start(folder: Path) -> Recorded:
    """Read a folder. Raises BadInput with everything that is wrong in it, all at once."""
    findings: list[Finding] = []
    pod = _object(folder / POD, findings)
    listed = _object(folder / EVENTS, findings)
    if findings:
        raise BadInput(tuple(findings))
    if pod is None and listed is None:
        message = f"neither {POD} nor {EVENTS} is in it"
        raise BadInput(
            (Finding(SourceLocation(str(folder)), "invalid-recording", message, hint=HINT),)
        )
    events = items(listed or {}, "items")
    if pod is not None and text(pod, "kind", "Pod") != "Pod":
        raise BadInput((_wrong(folder / POD, f"it holds a {text(pod, 'kind')}, not one Pod"),))
    return Recorded(pod or {}, _of_one(folder, pod, events), _lines(folder / LOG))


def _object(path: Path, findings: list[Finding]) -> dict[str, Any] | None:
    """A JSON object; None where there is no such file, or it is wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(data) > MOST_BYTES:
        findings.append(_wrong(path, f"it is larger than {MOST_BYTES // 2**20} MiB"))
        return None
    try:
        found = json.loads(data)
    except json.JSONDecodeError as error:
        place = SourceLocation(str(path), error.lineno, error.colno)
        findings.append(
            Finding(place, "invalid-recording", f"no JSON: {error.msg}", hint="-o json")
        )
        return None
    except (UnicodeDecodeError, RecursionError) as error:
        findings.append(_wrong(path, f"no JSON: {type(error).__name__}"))
        return None
    if not isinstance(found, dict):
        findings.append(_wrong(path, "it holds no JSON object"))
        return None
    return found


def _of_one(
    folder: Path, pod: dict[str, Any] | None, events: tuple[dict[str, Any], ...]
) -> tuple[dict[str, Any], ...]:
    """The events of the pod; where it was not recorded, of the one pod that they name."""
    if pod is not None:
        metadata = mapping(pod, "metadata")
        about = (text(metadata, "namespace"), text(metadata, "name"), text(metadata, "uid"))
        return tuple(event for event in events if concerns(event, *about))
    named = [mapping(event, "involvedObject") or mapping(event, "regarding") for event in events]
    pods = sorted({text(each, "name") for each in named if text(each, "kind", "Pod") == "Pod"})
    if len(pods) != 1:
        told = f"events of {len(pods)} pods: {', '.join(pods[:5])}" if pods else "no event of a pod"
        message = f"{told}; beside it, {POD} says which one is meant"
        raise BadInput((_wrong(folder / EVENTS, message),))
    return tuple(
        event for event, each in zip(events, named, strict=True) if text(each, "name") == pods[0]
    )


def _lines(path: Path) -> tuple[str, ...]:
    try:
        with path.open("rb") as file:
            return tuple(file.read(MOST_BYTES).decode("utf-8", "replace").splitlines())
    except FileNotFoundError:
        return ()


def _wrong(path: Path, message: str) -> Finding:
    return Finding(SourceLocation(str(path)), "invalid-recording", message, hint=HINT)

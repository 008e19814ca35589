"""Versions of status files as rows of `stoker history`, newest first; pure.

Files that cannot be read, and entries that somebody else wrote, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.git.versions import FileVersion
from stoker.model.times import rfc3339, to_milliseconds
from stoker.objects.health_fields import items, mapping, text
from stoker.report import StatusReader
from stoker.source.durations import duration_text

__all__ = ["FLEET_HEADS", "UNIT_HEADS", "fleet_rows", "unit_rows"]

FLEET_HEADS = ("revision", "result", "started", "ready", "took", "coldStarts")
UNIT_HEADS = ("since", "revision", "model", "rev", "ready", "state", "why")
MOST_WHY = 200


def fleet_rows(versions: Iterable[FileVersion]) -> list[tuple[str, ...]]:
    """Each source revision once for each time it was tried; what was told last counts."""
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    for data in _read(versions):
        for entry in items(data, "history"):
            revision, started = text(entry, "revision"), text(entry, "started")
            if revision and started and (started, revision) not in known:
                ready = text(entry, "ready")
                known[started, revision] = (
                    revision,
                    text(entry, "result"),
                    started,
                    ready or "-",
                    _took(started, ready),
                    str(entry.get("coldStarts", 0)),
                )
    return [known[key] for key in sorted(known, reverse=True)]


def unit_rows(versions: Iterable[FileVersion]) -> list[tuple[str, ...]]:
    """Each state of the unit once, with when it began."""
    rows: list[tuple[str, ...]] = []
    for version in reversed(list(versions)):
        state = _unit_state(version)
        if state is not None and (not rows or rows[-1][1:] != state):
            rows.append((rfc3339(version.committed_ms), *state))
    return rows[::-1]


def _unit_state(version: FileVersion) -> tuple[str, ...] | None:
    if version.content is None:
        return ("-", "-", "-", "-", "Gone", "its file left the status branch")
    found = StatusReader().read(version.content)
    if found is None:
        return None
    data = found.data
    model, replicas = mapping(data, "model"), mapping(data, "replicas")
    ready = next((c for c in items(data, "conditions") if text(c, "type") == "Ready"), {})
    holds = [text(hold, "message") for hold in items(data, "holds")]
    why = next((told for told in [*holds, text(ready, "message")] if told), "")
    if text(ready, "status") == "True":
        why = ""
    count = f"{replicas.get('ready')}/{replicas.get('desired')}" if replicas else "-"
    return (
        text(data, "lastAppliedRevision").rpartition(":")[2][:7] or "-",
        text(model, "revision")[:7] or "-",
        text(model, "rev") or "-",
        count,
        text(ready, "reason") or "-",
        why if len(why) <= MOST_WHY else why[: MOST_WHY - 1] + "…",
    )


def _read(versions: Iterable[FileVersion]) -> Iterable[dict[str, Any]]:
    reader = StatusReader()
    for version in versions:
        found = reader.read(version.content) if version.content is not None else None
        if found is not None:
            yield found.data


def _took(started: str, ready: str) -> str:
    try:
        return duration_text(max(0, to_milliseconds(ready) - to_milliseconds(started)))
    except ValueError:
        return "-"

"""The last five source revisions: what came of each, when it was Ready, what it cost.

Called by report each pass with the entry list of the last one. An entry begins when a
revision is first attempted, and is never reopened (a revert is a new commit, row 93).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from stoker.model.times import rfc3339
from stoker.objects.health_fields import integer, text

__all__ = ["KEPT", "HistoryEntry", "history_from_data", "history_to_data", "next_history"]

KEPT = 5


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One source revision (7 digits). `result`: Applied, Applying, Failed or Observed.

    `started` and `ready` are RFC 3339; `ready` is empty until every unit was Ready once.
    `cold_starts` counts replicas started on Cold nodes for it.
    """

    revision: str
    result: str
    started: str
    ready: str = ""
    cold_starts: int = 0


def next_history(
    history: tuple[HistoryEntry, ...],
    *,
    revision: str,
    result: str,
    all_ready: bool,
    cold_starts: int,
    now_ms: int,
) -> tuple[HistoryEntry, ...]:
    """Add what this pass did; newest first. An empty revision changes nothing."""
    if not revision:
        return history
    revision = revision[:7]
    now = rfc3339(now_ms)
    if history and history[0].revision == revision:
        current, older = history[0], history[1:]
    else:
        current, older = HistoryEntry(revision, result, now), history
    current = replace(
        current,
        result=result if current.result != "Applied" else current.result,
        ready=now if all_ready and not current.ready else current.ready,
        cold_starts=current.cold_starts + cold_starts,
    )
    return (current, *older)[:KEPT]


def history_to_data(history: Iterable[HistoryEntry]) -> list[dict[str, Any]]:
    """The entries as status.yaml shows them."""
    return [
        {
            "revision": entry.revision,
            "result": entry.result,
            "started": entry.started,
            **({"ready": entry.ready} if entry.ready else {}),
            "coldStarts": entry.cold_starts,
        }
        for entry in history
    ]


def history_from_data(data: Iterable[dict[str, Any]]) -> tuple[HistoryEntry, ...]:
    """Read entries back; one without revision or start is left out."""
    return tuple(
        HistoryEntry(
            text(entry, "revision"),
            text(entry, "result"),
            text(entry, "started"),
            text(entry, "ready"),
            integer(entry, "coldStarts", 0),
        )
        for entry in data
        if text(entry, "revision") and text(entry, "started")
    )[:KEPT]

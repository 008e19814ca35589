"""What this fleet's own starts took, as a table; pure. Called by coldstart."""

from __future__ import annotations

from typing import Any

from stoker.cli.print_plan import duration
from stoker.cli.recorded import RecordedStarts
from stoker.cli.style import columns
from stoker.decide.ready_in import LEAST_SAMPLES, percentile
from stoker.model.times import rfc3339
from stoker.objects import names

__all__ = ["starts_json", "starts_text"]

_HEADS = ("SERVICE", "NODES", "THE NODE HELD", "STARTS", "P50", "P90", "LAST")
_UNKNOWN = ("(no service of now)", "-", "-")


def starts_text(found: RecordedStarts) -> str:
    """A row for each kind of start, slowest first; kinds below five starts say so."""
    rows = [
        (
            *each["who"],
            f"{each['starts']}" + ("" if each["starts"] >= LEAST_SAMPLES else " (prior used)"),
            duration(each["p50Ms"]),
            duration(each["p90Ms"]),
            each["last"],
        )
        for each in _kinds(found)
    ]
    if not rows:
        return "no starts are recorded\n"
    return "\n".join([f"as of {found.taken_at}", *columns([_HEADS, *rows])]) + "\n"


def starts_json(found: RecordedStarts) -> dict[str, Any]:
    """The versioned JSON form."""
    kinds = [
        {
            "service": each["who"][0],
            "nodes": each["who"][1],
            "held": each["who"][2],
            **{key: each[key] for key in ("kind", "starts", "p50Ms", "p90Ms", "last")},
        }
        for each in _kinds(found)
    ]
    version = f"{names.GROUP}/{names.VERSION}"
    return {
        "apiVersion": version,
        "kind": "LearnedStarts",
        "takenAt": found.taken_at,
        "kinds": kinds,
    }


def _kinds(found: RecordedStarts) -> list[dict[str, Any]]:
    known = dict(found.kinds)
    made = []
    for key, ring in found.starts.rings:
        kind = known.get(key)
        totals = sorted(sample.total_ms for sample in ring)
        made.append(
            {
                "kind": key,
                "who": _UNKNOWN if kind is None else (kind.service, kind.where or "-", kind.held),
                "starts": len(ring),
                "p50Ms": percentile(totals, 50),
                "p90Ms": percentile(totals, 90),
                "last": rfc3339(ring[-1].ready_ms),
            }
        )
    return sorted(made, key=lambda each: (-each["p90Ms"], each["who"], each["kind"]))

"""`stoker status`: status documents as text for a terminal.

In: the documents of a live report, or those read from the status branch; one path for
both. Out: the layout of ux.md. Pure; text from documents is stripped of control
characters, for anybody may have written to a branch. Called by the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.model.outcome import Document, Health, Sync
from stoker.model.times import rfc3339, to_milliseconds
from stoker.objects.health_fields import integer, items, mapping, text
from stoker.report.inputs import StatusWritten
from stoker.report.previous import STATUS_PATH
from stoker.report.status_asks import ask_lines
from stoker.report.status_rows import ago, clean, service_mark, table
from stoker.report.status_trouble import trouble_lines
from stoker.report.unit_report import UnitReport
from stoker.report.units import unit_from_document

__all__ = ["Paint", "StatusView", "render_status", "view_documents"]

Paint = Callable[[str, str], str]
"""Colours a text; the identity where nobody wants colour."""

HEALTHY_ROWS = 20
"""Healthy services listed one by one; beyond that they are counted, unless all are asked for."""

UNREAD_ROWS = 20
"""Files listed one by one that cannot be read."""

_COLOURS = {
    Health.HEALTHY: "green",
    Health.SUSPENDED: "green",
    Health.PROGRESSING: "yellow",
    Health.MISSING: "red",
    Health.DEGRADED: "red",
    Health.UNKNOWN: "yellow",
}


@dataclass(frozen=True, slots=True)
class StatusView:
    """What is shown, and where it comes from.

    `documents` is data by path. `origin` is `cluster` or says which commit. `seen_ms` is
    when the controller was last heard of, None to believe the status itself.
    `next_poll_seconds` is None where nobody polls.
    `unread` are paths of files that nobody can read: what they say is unknown.
    """

    documents: Mapping[str, Mapping[str, Any]] = field(hash=False)
    now_ms: int
    origin: str = "cluster"
    seen_ms: int | None = None
    written: StatusWritten | None = None
    next_poll_seconds: float | None = None
    show_all: bool = False
    unread: tuple[str, ...] = ()


def view_documents(documents: tuple[Document, ...]) -> dict[str, Mapping[str, Any]]:
    """The documents of a report as StatusView wants them."""
    return {document.path: document.data for document in documents}


def render_status(view: StatusView, paint: Paint = lambda value, _colour: value) -> str:
    """The whole text, ending in a line break."""
    status = dict(view.documents.get(STATUS_PATH, {}))
    units = _units(view)
    parts = [[_header(view, status, units, paint)]]
    if view.unread:
        parts.append(_unread(view.unread))
    trouble = trouble_lines(status, {str(unit.ref): unit for unit in units}, view.now_ms)
    if trouble:
        parts.append([paint("NEEDS ATTENTION", "bold"), *trouble])
    asked = ask_lines(status, units, view.now_ms)
    if asked:
        parts.append(asked)
    services = [unit for unit in units if unit.service is not None]
    if services:
        parts.append(_services(services, view, paint))
    others = [unit for unit in units if unit.service is None]
    if others:
        parts.append(_others(others, view, paint))
    parts.append(_footer(view, status))
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _units(view: StatusView) -> list[UnitReport]:
    found = (
        unit_from_document(data) for path, data in view.documents.items() if path != STATUS_PATH
    )
    return sorted((unit for unit in found if unit is not None), key=lambda unit: unit.ref)


def _unread(paths: tuple[str, ...]) -> list[str]:
    lines = [f"UNREADABLE {clean(path)}   what it says is unknown" for path in paths[:UNREAD_ROWS]]
    more = len(paths) - UNREAD_ROWS
    return [*lines, f"  … and {more} more files"] if more > 0 else lines


def _header(view: StatusView, status: dict[str, Any], units: list[UnitReport], paint: Paint) -> str:
    name = clean(text(mapping(status, "metadata"), "name", "?"))
    sync = clean(text(mapping(status, "sync"), "status", Sync.UNKNOWN))
    health = clean(text(mapping(status, "health"), "status", Health.UNKNOWN))
    ref, _, commit = text(status, "lastAttemptedRevision").partition("@sha1:")
    revision = f" {clean(ref)}@{clean(commit[:7])}" if commit else ""
    unhealthy = sum(1 for u in units if u.health not in {Health.HEALTHY, Health.SUSPENDED})
    count = f" {unhealthy} of {len(units)}" if unhealthy else ""
    colour = _COLOURS[Health(health)] if health in set(Health) else "yellow"
    words = (
        f"fleet {name}",
        f"{sync}{revision}",
        paint(f"{health}{count}", colour),
        _controller(view, status),
        f"source: {clean(view.origin)}",
    )
    return "   ".join(words)


def _controller(view: StatusView, status: dict[str, Any]) -> str:
    """When the controller was last seen; silent for two heartbeats means unknown."""
    controller = mapping(status, "controller")
    seen = view.seen_ms
    if seen is None:
        try:
            seen = to_milliseconds(text(controller, "observedAt"))
        except ValueError:
            return "controller never seen"
    age = view.now_ms - seen
    late = age > 2 * _heartbeat_ms(text(controller, "heartbeat"))
    return f"controller seen {ago(age)} ago" + (" (state unknown)" if late else "")


def _heartbeat_ms(value: str) -> int:
    """Read back what documents.duration wrote; an hour for anything else."""
    units = {"h": 3_600_000, "m": 60_000, "s": 1_000}
    total, number = 0, ""
    for letter in value:
        if letter.isdecimal():
            number += letter
        elif letter in units and number:
            total, number = total + int(number) * units[letter], ""
        else:
            return 3_600_000
    return total or 3_600_000


def _services(units: list[UnitReport], view: StatusView, paint: Paint) -> list[str]:
    """The table of services: of those that are well only the first, none that is at zero."""
    well = [unit for unit in units if _is_well(unit)]
    asleep = [u for u in well if u.service is not None and u.service.counts.desired == 0]
    resting = set() if view.show_all else {unit.ref for unit in asleep}
    healthy = [unit.ref for unit in well if unit.ref not in resting]
    hidden = set() if view.show_all else set(healthy[HEALTHY_ROWS:])
    shown = [unit for unit in units if unit.ref not in hidden | resting]
    rows = [["SERVICE", "SYNC", "HEALTH", "READY", "WARMING", "WANT", "MODEL", "NODES", "SINCE"]]
    rows += [_service_row(unit, view.now_ms) for unit in shown]
    colours = {number: _COLOURS[unit.health] for number, unit in enumerate(shown, 1)}
    lines = table(rows, colours, paint) if shown else []
    counted = [f"{len(hidden)} more Healthy"] if hidden else []
    counted += [f"{len(resting)} at zero"] if resting else []
    legend = sorted({service_mark(unit)[1] for unit in shown} - {""})
    if counted or legend:
        lines.append("   ".join([*([", ".join(counted) + " (--all)"] if counted else []), *legend]))
    return lines


def _service_row(unit: UnitReport, now_ms: int) -> list[str]:
    service = unit.service
    assert service is not None
    counts = service.counts
    want = "?" if counts.desired is None else str(counts.desired)
    mark = service_mark(unit)[0]
    nodes = [node for place in service.placements if place.replicas for node in place.nodes]
    return [
        clean(unit.ref.short),
        unit.sync.value,
        unit.health.value,
        counts.told(),
        str(counts.warming),
        f"{want} {mark}".rstrip(),
        clean(service.model_revision[:7]),
        clean(" ".join(shorten(nodes))),
        _since(unit, now_ms),
    ]


def shorten(names: list[str]) -> list[str]:
    """Node names with runs of three or more written as `l4-od-1..3`; five entries at most."""
    numbered: dict[str, list[int]] = {}
    plain = []
    for name in dict.fromkeys(names):
        head = name.rstrip("0123456789")
        tail = name[len(head) :]
        if tail and str(int(tail)) == tail:
            numbered.setdefault(head, []).append(int(tail))
        else:
            plain.append(name)
    found = list(plain)
    for head, numbers in numbered.items():
        for run in _runs(sorted(numbers)):
            if len(run) > 2:
                found.append(f"{head}{run[0]}..{run[-1]}")
            else:
                found += [f"{head}{number}" for number in run]
    found.sort()
    return found if len(found) <= 5 else [*found[:4], f"+{len(found) - 4}"]


def _runs(numbers: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _others(units: list[UnitReport], view: StatusView, paint: Paint) -> list[str]:
    """Bundles: those that are not as they should be, or all."""
    shown = units if view.show_all else [unit for unit in units if not _is_well(unit)]
    well = len(units) - len(shown)
    if not shown:
        return [f"{well} bundle{'s' if well > 1 else ''} Synced and Healthy (--all)"]
    rows = [["BUNDLE", "SYNC", "HEALTH", "OBJECTS", "SINCE"]]
    rows += [
        [
            clean(unit.ref.short),
            unit.sync.value,
            unit.health.value,
            f"{unit.synced}/{unit.objects}",
            _since(unit, view.now_ms),
        ]
        for unit in shown
    ]
    colours = {number: _COLOURS[unit.health] for number, unit in enumerate(shown, 1)}
    lines = table(rows, colours, paint)
    return [*lines, f"{well} more Synced and Healthy (--all)"] if well else lines


def _is_well(unit: UnitReport) -> bool:
    return unit.sync is Sync.SYNCED and unit.health in {Health.HEALTHY, Health.SUSPENDED}


def _since(unit: UnitReport, now_ms: int) -> str:
    told = unit.condition("Healthy")
    try:
        return ago(now_ms - to_milliseconds(told.since)) if told is not None else ""
    except ValueError:
        return ""


def _footer(view: StatusView, status: dict[str, Any]) -> list[str]:
    lines = []
    pools = [_pool(entry) for entry in items(status, "gpus")]
    if pools:
        drift = integer(mapping(status, "summary"), "driftRepaired24h", 0)
        lines.append("   ".join(["GPUs", *pools, f" drift repaired today {drift}"]))
    git = _git(view)
    if git:
        lines.append(git)
    return lines


def _pool(entry: dict[str, Any]) -> str:
    """`l4-spot 2/2 (1 node lost)`; `?` where nodes could not be read."""
    name = clean(text(entry, "pool"))
    used, capacity = entry.get("used"), entry.get("capacity")
    if not isinstance(used, int) or not isinstance(capacity, int):
        return f"{name} ?/?"
    lost = integer(entry, "lostNodes", 0)
    unknown = integer(entry, "unknownNodes", 0)
    notes = [f"{lost} node{'s' if lost > 1 else ''} lost"] if lost else []
    notes += [f"{unknown} unknown"] if unknown else []
    return f"{name} {used}/{capacity}" + (f" ({', '.join(notes)})" if notes else "")


def _git(view: StatusView) -> str:
    written = view.written
    words = []
    if written is not None and written.code:
        words.append(f"status not written to {clean(written.branch)}: {clean(written.message)}")
    elif written is not None and written.commit:
        at = f", {rfc3339(written.pushed_at_ms)[11:]}" if written.pushed_at_ms is not None else ""
        words.append(f"status {clean(written.commit[:7])} on {clean(written.branch)}{at}")
    if view.next_poll_seconds is not None:
        words.append(f"next poll in {ago(int(view.next_poll_seconds * 1000))}")
    return "     ".join([f"Git    {words[0]}", *words[1:]]) if words else ""

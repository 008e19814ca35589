"""Checks `dependsOn` across the files of a fleet: unknown names and circles.

Compiled units come in, findings at every entry concerned go out; their units are broken.
Called by source once all files are compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stoker.errors import Finding, SourceLocation
from stoker.model.refs import UnitRef
from stoker.source.compile import Compiled
from stoker.source.findings import did_you_mean

__all__ = ["dependency_findings"]


def dependency_findings(compiled: Sequence[Compiled], *, known: bool) -> list[Finding]:
    """Everything wrong with dependencies. Without the whole unit set (`known` False) a name
    that is not there may stand in a file that could not be read: then only circles count.
    """
    units = {unit.ref: unit for unit in compiled if unit.ref is not None}
    findings: list[Finding] = []
    for unit in units.values():
        for ref in unit.flow.depends_on:
            if known and ref not in units:
                findings.append(_unknown(unit, ref, units))
    for circle in _circles({ref: unit.flow.depends_on for ref, unit in units.items()}):
        findings += _of_circle(circle, units)
    return findings


def _unknown(unit: Compiled, ref: UnitRef, units: Iterable[UnitRef]) -> Finding:
    names = [other.name for other in units if other.kind == ref.kind]
    places = sorted(o.namespace for o in units if (o.kind, o.name) == (ref.kind, ref.name))
    hint = did_you_mean(ref.name, names)
    if places:
        hint = f"there is one in namespace {', '.join(places)}"
    field, place = _entry(unit, ref)
    message = f"the fleet has no {ref}"
    return Finding(place, "unknown-dependency", message, field, hint, unit=str(unit.ref))


def _of_circle(circle: Sequence[UnitRef], units: Mapping[UnitRef, Compiled]) -> list[Finding]:
    """One finding at every link, each naming the place of the next one."""
    findings = []
    links = list(zip(circle, [*circle[1:], circle[0]], strict=True))
    for number, (ref, after) in enumerate(links):
        unit = units[ref]
        field, place = _entry(unit, after)
        following = links[(number + 1) % len(links)]
        where = _entry(units[following[0]], following[1])[1]
        path = " -> ".join(str(each) for each in (*circle[number:], *circle[:number], ref))
        message = f"units wait for each other: {path}"
        if len(circle) == 1:
            message, hint = f"{ref} waits for itself", "delete this entry"
        else:
            hint = f"delete one of the entries; the next is {where}"
        findings.append(
            Finding(place, "dependency-circle", message, field, hint, unit=str(unit.ref))
        )
    return findings


def _entry(unit: Compiled, ref: UnitRef) -> tuple[str, SourceLocation]:
    """Field and place of the entry that names a unit."""
    lines = dict(unit.lines)
    for number, named in enumerate(unit.named):
        if named == ref:
            field = f"spec.dependsOn[{number}]"
            return field, lines.get(field) or lines.get(f"{field}.name") or unit.location
    return "spec.dependsOn", unit.location


def _circles(graph: Mapping[UnitRef, Sequence[UnitRef]]) -> list[tuple[UnitRef, ...]]:
    """Circles that cover every unit that is on one, each from its first unit by name."""
    found: list[tuple[UnitRef, ...]] = []
    covered: set[UnitRef] = set()
    for start in sorted(graph):
        if start in covered:
            continue
        circle = _way_back(start, graph)
        if circle:
            covered |= set(circle)
            found.append(circle)
    return found


def _way_back(start: UnitRef, graph: Mapping[UnitRef, Sequence[UnitRef]]) -> tuple[UnitRef, ...]:
    """The shortest way from a unit to itself; empty when there is none."""
    came: dict[UnitRef, UnitRef] = {}
    border = [start]
    while border:
        further = []
        for here in border:
            for after in graph.get(here, ()):
                if after == start:
                    way = [here]
                    while way[-1] != start:
                        way.append(came[way[-1]])
                    return tuple(reversed(way))
                if after not in came:
                    came[after] = here
                    further.append(after)
        border = further
    return ()

"""Which fields of a unit's file a change touches: the lines above its objects in `stoker diff`.

Two states of the repository and the ChangeSet between them come in; a `FieldLine` a field of
each unit's `spec` goes out. Fields that come from the Fleet file's defaults and patches
stand in that file and are not looked for. Values are masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.diff.classes import ChangeClass, classes_of
from stoker.errors import StokerError
from stoker.model.change import Action, ChangeSet, UnitChanges
from stoker.model.fleet import Desired
from stoker.model.plan import Plan
from stoker.model.ports import Repo
from stoker.model.refs import SourceRevision, UnitRef
from stoker.objects.masks import masked
from stoker.source import read_yaml

__all__ = ["FieldLine", "State", "field_lines"]

Place = tuple[str | int, ...]
_Leaves = dict[Place, tuple[Any, int]]
"""Field to value and line."""


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field. `line` is that of the new file, or of what holds a field that is gone.

    `before` and `after` are None where the field is absent; `effect` is empty for Bundles.
    """

    line: int
    path: str
    before: Any
    after: Any
    effect: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """A repository at a revision. Without `desired` files are looked for where they are now."""

    repo: Repo
    revision: SourceRevision
    desired: Desired | None = None


_OUTSIDE_PODS: tuple[Place, ...] = (
    ("disruption",),
    ("expose",),
    ("placement",),
    ("priority",),
    ("replicas",),
    ("scaling",),
    ("update",),
)
"""Fields of a ModelService that reach no pod template: none of them restarts a pod."""


def field_lines(
    before: State, after: State, desired: Desired, changes: ChangeSet, plan: Plan
) -> dict[UnitRef, tuple[FieldLine, ...]]:
    """For each unit that differs the fields of its file that do; unreadable ones are left out."""
    units = {unit.unit: unit for unit in changes.units if _differs(unit)}
    refs = [ref for ref in units if desired.unit(ref) is not None]
    try:
        new = _specs(after, refs, {ref: _path(desired, ref) for ref in refs})
        earlier = before.desired or desired
        paths = {ref: _path(earlier, ref) or _path(desired, ref) for ref in refs}
        old = _specs(before, refs, paths)
    except StokerError:
        return {}
    found = {}
    for ref in refs:
        if (
            ref in new
            and ref in old
            and (lines := tuple(_lines(old[ref], new[ref], units[ref], plan)))
        ):
            found[ref] = lines
    return found


def _differs(unit: UnitChanges) -> bool:
    quiet = {Action.UNCHANGED, Action.KEEP}
    return bool(unit.retirements) or any(change.action not in quiet for change in unit.changes)


def _path(desired: Desired, ref: UnitRef) -> str:
    unit = desired.unit(ref)
    return unit.location.path if unit is not None else ""


def _specs(
    state: State, refs: list[UnitRef], paths: Mapping[UnitRef, str]
) -> dict[UnitRef, _Leaves]:
    """The fields of each unit whose file is there."""
    wanted = {path for path in paths.values() if path}
    blobs = tuple(b for b in state.repo.tree(state.revision.commit) if b.path in wanted)
    texts = dict(zip((b.path for b in blobs), state.repo.read(blobs), strict=True))
    found: dict[UnitRef, _Leaves] = {}
    for ref in refs:
        data = texts.get(paths[ref])
        for document in read_yaml(paths[ref], data).documents if data is not None else ():
            value = document.value if isinstance(document.value, dict) else {}
            metadata = value.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            if (value.get("kind"), name) == (ref.kind, ref.name):
                lines = {place: at.line for place, at in document.places.items()}
                found[ref] = dict(_leaves(value.get("spec"), ("spec",), lines))
    return found


def _leaves(
    value: Any, at: Place, lines: Mapping[Any, int]
) -> Iterator[tuple[Place, tuple[Any, int]]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*at, str(key)), lines)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield from _leaves(item, (*at, number), lines)
    else:
        yield at, (value, _line(at, lines))


def _line(at: Place, lines: Mapping[Any, int]) -> int:
    for length in range(len(at), 0, -1):
        if at[:length] in lines:
            return lines[at[:length]]
    return 0


def _lines(old: _Leaves, new: _Leaves, unit: UnitChanges, plan: Plan) -> Iterator[FieldLine]:
    """In the order of the file; what is gone stands where its neighbours do."""
    restarts = ChangeClass.RESTART in classes_of(ChangeSet((unit,)), plan)
    known = {place: line for place, (_, line) in new.items()}
    found = []
    for place in sorted({*old, *new}, key=str):
        before, after = old.get(place, (None, 0))[0], new.get(place, (None, 0))[0]
        if place in old and place in new and before == after:
            continue
        line = known.get(place) or _near(place, known)
        keys = [f"[{part}]" if isinstance(part, int) else part for part in place]
        effect = _effect(unit.unit.kind, place[1:], restarts=restarts)
        found.append(
            FieldLine(
                line,
                _dotted(place),
                masked(unit.unit.kind, keys, before),
                masked(unit.unit.kind, keys, after),
                effect,
            )
        )
    yield from sorted(found, key=lambda item: (item.line, item.path))


def _near(place: Place, known: Mapping[Place, int]) -> int:
    """The first line of the closest map that is still there."""
    for length in range(len(place) - 1, 0, -1):
        inside = [line for other, line in known.items() if other[:length] == place[:length]]
        if inside:
            return min(inside)
    return 0


def _dotted(place: Place) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _effect(kind: str, place: Place, *, restarts: bool) -> str:
    if kind != "ModelService":
        return ""
    outside = any(place[: len(field)] == field for field in _OUTSIDE_PODS)
    return "restarts pods" if restarts and not outside else "no restart"

"""One object, one unit: an object that is rendered twice stops every unit that renders it."""

from __future__ import annotations

from stoker.errors import Finding
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.refs import ObjectRef, UnitRef

__all__ = ["find_duplicates"]


def find_duplicates(sets: tuple[ManifestSet, ...]) -> dict[UnitRef, list[Finding]]:
    """Findings `object-defined-twice` by unit.

    Two versions of a kind are one object. Both sides are stopped, for either choice would
    let one file silently win over the other.
    """
    first: dict[ObjectRef, tuple[UnitRef, Manifest]] = {}
    found: dict[UnitRef, list[Finding]] = {}
    for item in sets:
        for manifest in item.manifests:
            other = first.setdefault(manifest.ref, (item.unit, manifest))
            if other[1] is manifest:
                continue
            _note(found, (item.unit, manifest), other)
            _note(found, other, (item.unit, manifest))
    return found


def _note(
    found: dict[UnitRef, list[Finding]],
    here: tuple[UnitRef, Manifest],
    there: tuple[UnitRef, Manifest],
) -> None:
    unit, manifest = here
    place = f" at {there[1].source}" if there[1].source.path else ""
    message = f"{manifest.ref} is also defined by {there[0]}{place}"
    hint = "keep it in one of the two"
    finding = Finding(manifest.source, "object-defined-twice", message, hint=hint)
    if finding not in found.setdefault(unit, []):
        found[unit].append(finding)

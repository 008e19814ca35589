"""The inventory as data: which objects each unit of a fleet has made, and with which UID.

Made and stored by apply.store, read by diff for prune, changed only through the functions
below. An empty UID is an intent: the object may or may not have been made, and the entry
proves nothing (design section 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from stoker.model.refs import ObjectRef, UnitRef

__all__ = ["INTENT", "Inventory", "Objects"]

INTENT = ""
"""The UID of an entry whose object was not yet seen in an answer."""

Objects = Mapping[ObjectRef, str]
"""Objects of one unit with their UIDs."""

_NOTHING: Objects = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a fleet has made. Treat `entries` as read-only; units without objects are absent.

    `rebuilt` is True when the stored inventory was lost or damaged and these entries come
    from owner marks: then nothing is pruned in this pass.
    """

    fleet_id: str
    fleet_name: str
    entries: Mapping[UnitRef, Objects] = field(default_factory=dict, hash=False)
    rebuilt: bool = False
    adopted: frozenset[ObjectRef] = frozenset()
    """Objects that somebody else made: never pruned without consent. All of them are listed."""

    @property
    def units(self) -> tuple[UnitRef, ...]:
        """Every unit that has objects, sorted."""
        return tuple(sorted(self.entries))

    def objects(self, unit: UnitRef) -> Objects:
        """Objects of one unit; empty when it has none."""
        return self.entries.get(unit, _NOTHING)

    def owners(self) -> dict[ObjectRef, tuple[UnitRef, ...]]:
        """For each object the units that list it, sorted; two while it moves."""
        found: dict[ObjectRef, tuple[UnitRef, ...]] = {}
        for unit in self.units:
            for ref in self.entries[unit]:
                found[ref] = (*found.get(ref, ()), unit)
        return found

    def names(self, unit: UnitRef, ref: ObjectRef) -> bool:
        """Whether the unit lists the object, as an intent or with its UID."""
        return ref in self.objects(unit)

    def union(
        self,
        additions: Iterable[tuple[UnitRef, ObjectRef, str]],
        *,
        adopted: Iterable[ObjectRef] = (),
    ) -> Inventory:
        """Add names. A UID replaces an intent or another UID; an intent replaces nothing.

        With the UID comes the API version under which the object was last sent. `adopted`
        are names to be marked so; one that comes with another UID was made anew, by us, and
        loses the mark.
        """
        added = tuple(additions)
        marks = frozenset(adopted)
        if marks <= self.adopted and self._holds(added):
            return self
        touched = {unit: dict(self.objects(unit)) for unit in {unit for unit, _, _ in added}}
        entries: dict[UnitRef, Objects] = {**self.entries, **touched}
        renewed: set[ObjectRef] = set()
        for unit, ref, uid in added:
            objects = touched[unit]
            before = objects.get(ref, INTENT)
            if uid or ref not in objects:
                objects.pop(ref, None)  # an equal key of another API version would stay
                objects[ref] = uid
            if before not in {INTENT, objects[ref]}:
                renewed.add(ref)
        kept = (self.adopted - renewed) | marks
        return replace(self, entries=entries, adopted=_listed(kept, entries))

    def without(self, removals: Iterable[tuple[UnitRef, ObjectRef]]) -> Inventory:
        """Drop names; names that are not there are no error."""
        removed = tuple(removals)
        if not removed:
            return self
        going: dict[UnitRef, set[ObjectRef]] = {}
        for unit, ref in removed:
            going.setdefault(unit, set()).add(ref)
        entries = dict(self.entries)
        for unit, refs in going.items():
            objects = {ref: uid for ref, uid in self.objects(unit).items() if ref not in refs}
            if objects:
                entries[unit] = objects
            else:
                entries.pop(unit, None)
        return replace(self, entries=entries, adopted=_listed(self.adopted, entries))

    def adds_names(self, older: Inventory) -> bool:
        """Whether any unit lists an object here that it does not list in `older`."""
        return any(
            ref not in before
            for unit, objects in self.entries.items()
            if (before := older.objects(unit)) is not objects
            for ref in objects
        )

    def _holds(self, additions: Iterable[tuple[UnitRef, ObjectRef, str]]) -> bool:
        """Whether names with these UIDs would change nothing, their API versions included."""
        versions: dict[UnitRef, dict[ObjectRef, str]] = {}
        for unit, ref, uid in additions:
            objects = self.objects(unit)
            if ref not in objects or uid not in {INTENT, objects[ref]}:
                return False
            if uid:
                if unit not in versions:
                    versions[unit] = {known: known.version for known in objects}
                if versions[unit][ref] != ref.version:
                    return False
        return True


def _listed(refs: frozenset[ObjectRef], entries: Mapping[UnitRef, Objects]) -> frozenset[ObjectRef]:
    """Those that some unit lists."""
    return refs & {ref for objects in entries.values() for ref in objects} if refs else refs

"""Everything that diff looks at, gathered once per pass and frozen.

Desired, the rendered sets, the live view and the inventory come in; `Ground` answers whose
an object is, who else claims it, and which kinds and namespaces this pass itself brings.
Built by diff, read by pair, verdict and prune.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.diff.rivals import Rivals
from stoker.model.fleet import Desired, Unit
from stoker.model.live import LiveObject, LiveView
from stoker.model.manifest import ManifestSet
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects.consent import consents_in_git, consents_on_live
from stoker.objects.inventory import Inventory
from stoker.objects.kinds import CRD_GROUP
from stoker.objects.names import manager_of, unit_of_mark
from stoker.objects.owned import is_applied_by

__all__ = ["Ground", "ground_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """The inputs of one diff. `claims` are the units that render an object, sorted."""

    desired: Desired
    live: LiveView
    inventory: Inventory
    cluster: Cluster
    fleet_id: str
    units: Mapping[UnitRef, Unit]
    sets: Mapping[UnitRef, ManifestSet]
    claims: Mapping[ObjectRef, tuple[UnitRef, ...]]
    listed: Mapping[ObjectRef, tuple[UnitRef, ...]]
    """Units whose inventory lists the object."""
    coming_kinds: frozenset[tuple[str, str]]
    """(group, kind) of CRDs that this fleet renders."""
    coming_namespaces: frozenset[str]
    rivals: Rivals
    """Other GitOps controllers of the cluster, asked for objects to adopt only."""
    verify: bool = False

    def again(
        self,
        desired: Desired,
        sets: tuple[ManifestSet, ...],
        live: LiveView,
        inventory: Inventory,
        now_ms: int,
    ) -> Ground:
        """The same fleet in a later pass, which renders what it did and maybe more; neither a
        kind nor a namespace comes or goes.
        """
        known = {found.unit: found for found in sets}
        claims = dict(self.claims)
        for unit, found in known.items():
            if found is self.sets.get(unit):
                continue
            for ref in (manifest.ref for manifest in found.manifests):
                claims[ref] = tuple(sorted({*claims.get(ref, ()), unit}))
        return replace(
            self,
            desired=desired,
            live=live,
            inventory=inventory,
            units={unit.ref: unit for unit in desired.units},
            sets=known,
            claims=claims,
            listed=self.listed if inventory is self.inventory else inventory.owners(),
            rivals=Rivals(self.cluster, now_ms),
        )

    @property
    def manager(self) -> str:
        """Our field manager."""
        return manager_of(self.fleet_id)

    def marked_unit(self, live: LiveObject) -> UnitRef | None:
        """The unit of this fleet that a live object's owner mark names, with the object."""
        return unit_of_mark(live.owner, self.fleet_id, live.ref)

    def is_listed(self, live: LiveObject) -> bool:
        """Whether the inventory proves by its UID that this fleet made it."""
        return any(
            self.inventory.objects(unit).get(live.ref) == live.uid
            for unit in self.listed.get(live.ref, ())
        )

    def is_adopted(self, live: LiveObject) -> bool:
        """Whether somebody else made it: the inventory or the object itself remembers that."""
        return self.is_listed_adopted(live) or consents_on_live(live.body, self.manager).adopted

    def is_listed_adopted(self, live: LiveObject) -> bool:
        """The same, by the inventory and the UID alone: needs no body."""
        return live.ref in self.inventory.adopted and self.is_listed(live)

    def is_applied_by_us(self, live: LiveObject) -> bool:
        """Whether our manager has applied it: a mark alone can be typed by anybody."""
        return is_applied_by(live.body, self.manager)

    def was_not_rendered(self, unit: UnitRef) -> bool:
        """Whether what the unit wants is not known: broken, failed, or not in this pass."""
        found = self.sets.get(unit)
        if found is None:
            return unit in self.units or unit in self.desired.broken
        return not found.complete

    def kept(self, unit: UnitRef) -> tuple[ObjectRef, ...]:
        """Objects of the unit that stay although it does not render them."""
        found = self.sets.get(unit)
        return found.kept if found is not None else ()

    def over(self, unit: UnitRef) -> tuple[ObjectRef, ...]:
        """Jobs of the unit that were decided to be done with."""
        found = self.sets.get(unit)
        return found.over if found is not None else ()

    def still_claims(self, unit: UnitRef, ref: ObjectRef) -> str:
        """Why the unit may still want the object; empty when it certainly does not."""
        if unit in self.desired.broken:
            return f"{unit} could not be read"
        if self.was_not_rendered(unit):
            return f"{unit} did not render"
        if unit not in self.sets:
            return "" if self.desired.unit_set_known else "not every file could be read"
        return f"{unit} renders it too" if unit in self.claims.get(ref, ()) else ""


def ground_of(
    desired: Desired,
    sets: tuple[ManifestSet, ...],
    live: LiveView,
    inventory: Inventory,
    cluster: Cluster,
    fleet_id: str,
    *,
    verify: bool = False,
    now_ms: int = 0,
) -> Ground:
    """Index the inputs of one diff."""
    claims: dict[ObjectRef, tuple[UnitRef, ...]] = {}
    kinds: set[tuple[str, str]] = set()
    namespaces: set[str] = set()
    for found in sorted(sets, key=lambda item: item.unit):
        for manifest in found.manifests:
            ref = manifest.ref
            claims[ref] = (*claims.get(ref, ()), found.unit)
            if consents_in_git(manifest.body).left_alone:
                continue
            if (ref.group, ref.kind) == (CRD_GROUP, "CustomResourceDefinition"):
                kinds.add(_kind_of_crd(manifest.body))
            if (ref.group, ref.kind) == ("", "Namespace"):
                namespaces.add(ref.name)
    return Ground(
        desired=desired,
        live=live,
        inventory=inventory,
        cluster=cluster,
        fleet_id=fleet_id,
        units={unit.ref: unit for unit in desired.units},
        sets={found.unit: found for found in sets},
        claims=claims,
        listed=inventory.owners(),
        coming_kinds=frozenset(kinds),
        coming_namespaces=frozenset(namespaces),
        rivals=Rivals(cluster, now_ms),
        verify=verify,
    )


def _kind_of_crd(body: dict[str, Any]) -> tuple[str, str]:
    """The CRD's own names: a guessed plural or kind is wrong sooner or later (cases row 63)."""
    spec = body.get("spec") or {}
    return str(spec.get("group", "")), str((spec.get("names") or {}).get("kind", ""))

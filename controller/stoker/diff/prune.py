"""What left Git: decides object by object what is deleted, kept, or waited for.

The ground comes in; `Pruned` goes out: changes per unit, the reason why nothing is deleted
in this pass, and what the inventory may forget. Only what inventory, owner mark and UID
prove ours is deleted, and nothing on partial truth (design section 6). Called by diff.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stoker.diff.consent import Consent, consent_of
from stoker.diff.ground import Ground
from stoker.errors import StokerError
from stoker.model.change import Action, Change
from stoker.model.fleet import ModelService
from stoker.model.live import LiveObject
from stoker.model.prune import PruneMode
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.workload import is_workload
from stoker.objects import names
from stoker.objects.consent import consents_on_live
from stoker.objects.inventory import INTENT
from stoker.objects.kinds import CRD_GROUP, NEEDS_CONSENT, delete_order

__all__ = ["Pruned", "held_back", "prune"]


@dataclass(frozen=True, slots=True)
class Pruned:
    """`changes` are DELETE, KEEP and WAIT of each unit, dependents first."""

    changes: Mapping[UnitRef, tuple[Change, ...]] = field(default_factory=dict, hash=False)
    hold: str = ""
    forgotten: tuple[tuple[UnitRef, ObjectRef], ...] = ()
    proven: tuple[tuple[UnitRef, ObjectRef, str], ...] = ()


def prune(ground: Ground) -> Pruned:
    """Judge every inventory entry and every owned object that no unit renders."""
    consent = consent_of(ground.desired)
    forgotten: list[tuple[UnitRef, ObjectRef]] = []
    proven: list[tuple[UnitRef, ObjectRef, str]] = []
    judged: dict[UnitRef, list[Change]] = {}
    for unit in ground.inventory.units:
        for ref, uid in _unclaimed(unit, ground):
            change = _judge(unit, ref, uid, ground, consent)
            if change is None:
                forgotten.append((unit, ref))
            elif change.action is not Action.UNCHANGED:
                judged.setdefault(unit, []).append(change)
                if change.code == "inventory-intent" and change.live_uid:
                    proven.append((unit, ref, change.live_uid))
    for unit, change in _orphans(ground):
        judged.setdefault(unit, []).append(change)
    hold = _hold(ground, consent, judged) or _over_cap(ground, consent, judged)
    used = _namespaces_in_use(ground, judged)
    kinds = _leaving_groups(judged)
    changes = {
        unit: tuple(
            sorted(
                (_held(_ordered(change, kinds, used), hold) for change in found),
                key=lambda change: delete_order(change.ref),
            )
        )
        for unit, found in sorted(judged.items())
    }
    return Pruned(changes, hold, tuple(forgotten), tuple(proven))


def held_back(leaving: tuple[Change, ...], rendered: tuple[Change, ...]) -> tuple[Change, ...]:
    """What leaves a unit, held while something the unit renders cannot be applied.

    Apply deletes only from a unit that has applied: a preview must not promise more.
    """
    stops = {Action.ERROR, Action.WAIT}
    first = next((change.ref for change in rendered if change.action in stops), None)
    if first is None:
        return leaving
    return tuple(_held(change, f"{first} is not applied") for change in leaving)


_STAYS = Action.UNCHANGED


def _unclaimed(unit: UnitRef, ground: Ground) -> list[tuple[ObjectRef, str]]:
    """What the inventory lists for the unit and the unit does not render, sorted: mostly nothing."""
    listed = ground.inventory.objects(unit).items()
    return sorted(item for item in listed if unit not in ground.claims.get(item[0], ()))


def _judge(
    unit: UnitRef, ref: ObjectRef, uid: str, ground: Ground, consent: Consent
) -> Change | None:
    """None to forget the entry, UNCHANGED to leave it be without a word."""
    claims = ground.claims.get(ref, ())
    if ground.was_not_rendered(unit) or ref in ground.kept(unit):
        return Change(ref, _STAYS)
    if not ground.live.known(ref):
        return _keep(ref, "live-state-unknown", ground.live.why_unknown(ref))
    try:
        live = ground.live.get(ref)
    except StokerError as error:  # our own Secrets are read on demand
        return _keep(ref, "live-state-unknown", error.message)
    if live is None:
        return None
    if claims:
        return _moved(unit, ref, live, ground)
    if uid == INTENT:
        return _intended(unit, ref, live, ground)
    return (
        _unproven(unit, ref, uid, live, ground)
        or _by_policy(unit, ref, live, ground, consent)
        or _going(ref, live)
        or Change(ref, Action.DELETE, live_uid=live.uid)
    )


def _moved(unit: UnitRef, ref: ObjectRef, live: LiveObject, ground: Ground) -> Change | None:
    """Another unit renders it now: the entry goes once the mark names that unit."""
    return Change(ref, _STAYS) if ground.marked_unit(live) == unit else None


def _intended(unit: UnitRef, ref: ObjectRef, live: LiveObject, ground: Ground) -> Change | None:
    """An intent proves nothing in this pass; with mark and manager its UID is recorded."""
    if ground.marked_unit(live) != unit:
        return None
    if not ground.is_applied_by_us(live):
        return _keep(ref, "inventory-intent", "bears our mark, but we never applied it")
    note = "made by a pass that did not end; its UID is recorded now"
    return replace(_keep(ref, "inventory-intent", note), live_uid=live.uid)


def _unproven(
    unit: UnitRef, ref: ObjectRef, uid: str, live: LiveObject, ground: Ground
) -> Change | None:
    """Keep what inventory, owner mark and UID together do not prove to be this unit's."""
    marked = ground.marked_unit(live)
    if uid != live.uid:
        return _keep(ref, "uid-differs", "somebody deleted and made it again")
    if marked is None:
        return _keep(ref, "owner-mark-missing", "its owner mark is gone or names something else")
    if marked != unit:
        return _keep(ref, "owner-mark-differs", f"its owner mark names {marked}")
    owners = live.body.get("metadata", {}).get("ownerReferences") or ()
    if owners:
        named = ", ".join(f"{owner.get('kind')}/{owner.get('name')}" for owner in owners)
        return _keep(ref, "foreign-owner", f"belongs to {named} by ownerReference")
    return None


def _by_policy(
    unit: UnitRef, ref: ObjectRef, live: LiveObject, ground: Ground, consent: Consent
) -> Change | None:
    """Keep what a person, the fleet's settings or the kind itself protect."""
    metadata = live.body.get("metadata", {})
    consents = consents_on_live(live.body, ground.manager)
    if consents.keep or consents.left_alone:
        return _keep(ref, "kept-by-policy", "kept by policy")
    spec = ground.units[unit].spec if unit in ground.units else None
    placed = names.PLACEMENT_LABEL in (metadata.get("labels") or {})
    if isinstance(spec, ModelService) and is_workload(ref) and placed:
        return _keep(ref, "leaves-by-retirement", "a replica leaves by retirement, never by prune")
    if isinstance(spec, ModelService) and _is_prefetch(live):
        return None if ref in ground.over(unit) else Change(ref, _STAYS)
    adopted = ground.is_adopted(live)
    guarded = adopted or (ref.group, ref.kind) in NEEDS_CONSENT
    if guarded and not consents.prune and not consent.names_object(ref):
        why = "it was adopted; to" if adopted else "to"
        return _keep(ref, "needs-consent", f"{why} delete it: {consent.object_trailer(ref)}")
    mode = ground.desired.fleet.prune.mode
    if mode is PruneMode.NEVER:
        return _keep(ref, "prune-never", "the fleet's prune.mode is Never")
    if mode is PruneMode.CONFIRM and not consent.names_unit(unit):
        return _keep(ref, "prune-unconfirmed", f"to delete it: {consent.unit_trailer((unit,))}")
    return None


def _is_prefetch(live: LiveObject) -> bool:
    """Whether it is a Job that fetches ahead: decide alone ends those of a service in Git."""
    labels = live.body.get("metadata", {}).get("labels") or {}
    return (live.ref.group, live.ref.kind) == ("batch", "Job") and names.PREFETCH_LABEL in labels


def _going(ref: ObjectRef, live: LiveObject) -> Change | None:
    """One delete, then waiting: finalizers are not overridden."""
    metadata = live.body.get("metadata", {})
    if not metadata.get("deletionTimestamp"):
        return None
    held = ", ".join(metadata.get("finalizers") or ())
    note = f"being deleted since {metadata['deletionTimestamp']}"
    note += f", held by finalizers {held}" if held else ""
    return Change(ref, Action.WAIT, live_uid=live.uid, code="deletion-pending", note=note)


def _orphans(ground: Ground) -> list[tuple[UnitRef, Change]]:
    """Objects with our mark that no inventory entry and no unit knows (cases.md row 73)."""
    found = []
    for live in sorted(ground.live.owned(ground.fleet_id), key=lambda item: item.ref):
        if live.ref in ground.listed or live.ref in ground.claims:
            continue
        unit = ground.marked_unit(live)
        if unit is None:
            continue
        if ground.was_not_rendered(unit) or live.ref in ground.kept(unit):
            continue
        note = "bears our mark but is not in the inventory; deleted only by inventory proof"
        found.append((unit, _keep(live.ref, "orphan", note)))
    return found


def _hold(ground: Ground, consent: Consent, judged: Mapping[UnitRef, list[Change]]) -> str:
    """Why nothing may be deleted on what this pass knows; empty where nothing would be."""
    desired = ground.desired
    losing = [unit for unit in sorted(judged) if _deletes(judged[unit])]
    if not losing:
        return ""
    if ground.inventory.rebuilt:
        return "the inventory was lost and has been rebuilt from owner marks"
    if not desired.unit_set_known:
        return "not every file of the fleet could be read"
    if desired.broken:
        return f"{desired.broken[0]} could not be read"
    failed = [found.unit for found in ground.sets.values() if not found.complete]
    missing = [unit.ref for unit in desired.units if unit.ref not in ground.sets]
    if failed or missing:
        return f"{min([*failed, *missing])} did not render"
    if not desired.units and not consent.everything:
        return f"the fleet has no unit left; to delete all: {consent.unit_trailer(('all',))}"
    for unit in losing:
        found = ground.sets.get(unit)
        if found is not None and not found.manifests and not consent.names_unit(unit):
            return f"{unit} renders nothing any more; to delete: {consent.unit_trailer((unit,))}"
    return ""


def _deletes(changes: list[Change]) -> bool:
    return any(change.action is Action.DELETE for change in changes)


def _over_cap(ground: Ground, consent: Consent, judged: Mapping[UnitRef, list[Change]]) -> str:
    """Count the units that would lose objects; replaced and moved objects do not count."""
    losing = [
        unit
        for unit, changes in sorted(judged.items())
        if not consent.names_unit(unit) and _losses(unit, changes, ground)
    ]
    total = len({*ground.inventory.units, *(unit.ref for unit in ground.desired.units)})
    cap = ground.desired.fleet.prune.max_units.resolve(total)
    if len(losing) <= cap:
        return ""
    return (
        f"{len(losing)} units would lose objects and prune.maxUnits allows {cap}; "
        f"to delete them: {consent.unit_trailer(tuple(losing))}"
    )


def _losses(unit: UnitRef, changes: list[Change], ground: Ground) -> int:
    """Deletes of a unit beyond those that a new object of the same kind makes up for."""
    gone: dict[tuple[str, str, str], int] = {}
    over = ground.over(unit)
    for change in changes:
        if change.action is Action.DELETE and change.ref not in over:
            key = (change.ref.group, change.ref.kind, change.ref.namespace)
            gone[key] = gone.get(key, 0) + 1
    found = ground.sets.get(unit)
    for manifest in found.manifests if found is not None else ():
        ref = manifest.ref
        key = (ref.group, ref.kind, ref.namespace)
        if gone.get(key) and not ground.inventory.names(unit, ref):
            gone[key] -= 1
    return sum(gone.values())


def _held(change: Change, hold: str) -> Change:
    """A delete that does not happen in this pass is kept, and says why."""
    if change.action is not Action.DELETE or not hold:
        return change
    return replace(change, action=Action.KEEP, code="prune-held", note=hold)


def _namespaces_in_use(ground: Ground, judged: Mapping[UnitRef, list[Change]]) -> dict[str, str]:
    """Namespaces in which something of the fleet stays, and what: deleting one takes all."""
    used: dict[str, str] = {}
    for ref in ground.claims:
        used.setdefault(ref.namespace, str(ref))
    for found in ground.sets.values():
        for ref in found.kept:
            used.setdefault(ref.namespace, str(ref))
    for changes in judged.values():
        for change in changes:
            if change.action is Action.KEEP:
                used.setdefault(change.ref.namespace, str(change.ref))
    return used


def _leaving_groups(judged: Mapping[UnitRef, list[Change]]) -> set[str]:
    """API groups of which objects are being deleted now."""
    going = {Action.DELETE, Action.WAIT}
    return {c.ref.group for changes in judged.values() for c in changes if c.action in going}


def _ordered(change: Change, groups: set[str], used: Mapping[str, str]) -> Change:
    """What would take others along waits for them, or stays while they stay."""
    if change.action is not Action.DELETE:
        return change
    if (change.ref.group, change.ref.kind) == ("", "Namespace") and change.ref.name in used:
        return _keep(change.ref, "namespace-in-use", f"{used[change.ref.name]} stays in it")
    plural, _, group = change.ref.name.partition(".")
    if change.ref.group == CRD_GROUP and group in groups:
        note = f"waits until the {plural} of {group} are gone"
        return replace(change, action=Action.WAIT, code="custom-resources-left", note=note)
    return change


def _keep(ref: ObjectRef, code: str, note: str) -> Change:
    return Change(ref, Action.KEEP, code=code, note=note)

"""The diff stage: everything that would be written, and why the rest is not.

Desired, the rendered and checked sets, the live view and the inventory come in; a
ChangeSet goes out. Nothing is written. Called by reconcile, and by the command line for
`diff`; the same function feeds status and comments, so nothing printed means Synced.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from stoker.diff.adoption import Adoption
from stoker.diff.audit import Audit
from stoker.diff.dryrun import UNVERIFIED, DryRun, refusal_of, verified
from stoker.diff.ground import Ground, ground_of
from stoker.diff.leaving import Leaving, drained
from stoker.diff.memo import DiffMemo
from stoker.diff.pair import pair, replaced_by
from stoker.diff.prune import Pruned, held_back, prune
from stoker.diff.takeover import contested
from stoker.diff.verdict import audited, judge, payload_of
from stoker.errors import Finding, StokerError
from stoker.kube.errors import Forbidden
from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.fleet import Desired, FleetMode
from stoker.model.live import LiveObject, LiveView
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.plan import Plan
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.snapshot import Snapshot
from stoker.objects import names
from stoker.objects.compare import compare, field_changes
from stoker.objects.conflicts import adoption_required
from stoker.objects.ignored import ignored_pointers
from stoker.objects.inventory import Inventory
from stoker.objects.kinds import apply_order
from stoker.objects.owned import schema_of

__all__ = ["diff"]


def diff(
    desired: Desired,
    sets: tuple[ManifestSet, ...],
    live: LiveView,
    inventory: Inventory,
    cluster: Cluster,
    fleet_id: str,
    memo: DiffMemo,
    *,
    plan: Plan | None = None,
    snapshot: Snapshot | None = None,
    verify: bool = False,
    audit: Audit | None = None,
    now_ms: int = 0,
    only: Collection[UnitRef] | None = None,
) -> ChangeSet:
    """Compare what is rendered with what is live, unit by unit, then judge what left Git.

    `plan` pairs new placements with those they replace; `snapshot` tells which replicas of
    services that left Git still serve. With `verify` creates and changes
    are dry-run too, so that a refusal is known before anything is written (`stoker diff`).
    Units come back sorted; those that left Git have only deletes and what is kept. `audit`
    says which Synced objects the API server is asked about all the same; None: no one.
    With `only` these units alone are compared, and nothing left Git since the last diff, which
    was about the same fleet (`narrow`).
    """
    if only is None or memo.ground is None:
        ground = ground_of(
            desired, sets, live, inventory, cluster, fleet_id, verify=verify, now_ms=now_ms
        )
        left = prune(ground)
        leaving = drained(left.changes, ground, snapshot)
    else:
        ground = memo.ground.again(desired, sets, live, inventory, now_ms)
        sets = tuple(found for found in sets if found.unit in only)
        left, leaving = Pruned(), Leaving()
    memo.ground = ground
    secrets = memo.learn(sets, {*ground.units, *desired.broken})
    sends = desired.fleet.mode is FleetMode.CORRECT
    dry_run = DryRun(cluster, ground.manager, memo, sends)
    units: dict[UnitRef, UnitChanges] = {}
    for found in sets:
        rendered = _rendered(found, ground, dry_run, plan, audit)
        gone = held_back(leaving.changes.get(found.unit, ()), rendered)
        units[found.unit] = UnitChanges(
            unit=found.unit,
            changes=(*rendered, *gone),
            retirements=found.retirements,
            coldest=found.coldest,
            findings=(*found.findings, *_empty_render(found, gone, ground)),
            complete=found.complete,
        )
    for unit, changes in leaving.changes.items():
        if unit not in units:
            going = leaving.retirements.get(unit, ())
            units[unit] = UnitChanges(unit=unit, changes=changes, retirements=going)
    if only is None and len(ground.sets) >= len(desired.units):
        memo.only(ground.claims)
    if secrets:
        units = {
            ref: replace(unit, changes=tuple(secrets.hide_in(c) for c in unit.changes))
            for ref, unit in units.items()
        }
    return ChangeSet(
        units=tuple(units[unit] for unit in sorted(units)),
        prune_hold=left.hold,
        forgotten=(*left.forgotten, *_left_alone(units, ground)),
        proven=tuple(sorted({*left.proven, *_proven(units, ground)})),
        wake_at_ms=leaving.wake_at_ms,
    )


def _rendered(
    found: ManifestSet,
    ground: Ground,
    dry_run: DryRun,
    plan: Plan | None,
    audit: Audit | None,
) -> tuple[Change, ...]:
    replaced = replaced_by(plan, found)
    manifests = sorted(found.manifests, key=lambda manifest: apply_order(manifest.ref))
    return tuple(
        _change(manifest, found.unit, ground, dry_run, replaced.get(manifest.ref), audit)
        for manifest in manifests
    )


def _change(
    manifest: Manifest,
    unit: UnitRef,
    ground: Ground,
    dry_run: DryRun,
    replaces: ObjectRef | None,
    audit: Audit | None,
) -> Change:
    try:
        here = pair(manifest, unit, ground)
    except StokerError as error:  # our own Secrets are read on demand
        return replace(refusal_of(manifest.ref, error), manifest=manifest)
    match here.action:
        case Action.CREATE:
            note = here.note or (_brought_first(manifest.ref, ground) if here.early else "")
            change = _create(manifest, note, ground, replaces)
            if not ground.verify:
                return change
            if here.early:  # the server answers after 50 ms of waiting, and knows no more
                return replace(change, note=f"{change.note}; {UNVERIFIED}")
            return verified(change, None, dry_run, force=False)
        case Action.CHANGE if here.live is not None:
            scaler = ground.live.scaler(manifest.ref)
            owner = ground.units.get(unit)
            adoption = Adoption.NOW if here.adopts else Adoption.NO
            if not here.adopts and ground.is_listed_adopted(here.live):
                adoption = Adoption.BEFORE
            objection = None if adoption is Adoption.NO else contested(here.live, ground, dry_run)
            if objection is not None:
                return replace(objection, manifest=manifest, live_uid=here.live.uid)
            ignored = ignored_pointers(ground.desired.fleet.ignore, manifest)
            change = judge(
                manifest,
                here.live,
                owner,
                scaler,
                dry_run,
                verify=ground.verify,
                adoption=adoption,
                ignored=ignored,
            )
            if (
                audit is None
                or change.action is not Action.UNCHANGED
                or not audit.takes(change.ref)
            ):
                return change
            return audited(
                change, manifest, here.live, owner, scaler, dry_run, audit, ignored=ignored
            )
        case Action.ERROR if here.live is not None:
            return _foreign(manifest, here.live, ground, dry_run.memo)
        case _:
            uid = here.live.uid if here.live is not None else ""
            return Change(
                manifest.ref,
                here.action,
                manifest=manifest,
                live_uid=uid,
                code=here.code,
                note=here.note,
            )


def _brought_first(ref: ObjectRef, ground: Ground) -> str:
    """What is not there yet and comes with this fleet, before the object itself."""
    if ref.namespace and not ground.live.namespace_phase(ref.namespace):
        return f"namespace {ref.namespace} does not exist yet and comes first"
    return f"the cluster does not serve {ref.kind} yet; its definition comes first"


def _foreign(manifest: Manifest, live: LiveObject, ground: Ground, memo: DiffMemo) -> Change:
    """Somebody else's object: read once for its owners, which caches do not hold."""
    key = ("foreign", live.uid, live.resource_version)
    known = memo.verdict(manifest.ref, key, manifest)
    if known is not None:
        return known
    body = live.body
    try:
        body = ground.cluster.get(manifest.ref)
    except StokerError as error:
        if not isinstance(error, Forbidden):
            return replace(refusal_of(manifest.ref, error), manifest=manifest)
    refusal = adoption_required(manifest.ref, body)
    change = Change(
        manifest.ref,
        Action.ERROR,
        manifest=manifest,
        live_uid=live.uid,
        code=refusal.code,
        note=f"{refusal.message} ({refusal.hint})",
    )
    memo.keep(manifest.ref, key, change)
    return change


def _create(manifest: Manifest, note: str, ground: Ground, replaces: ObjectRef | None) -> Change:
    """A new object; one that takes over from another shows in what the two differ."""
    payload = payload_of(manifest)
    change = Change(manifest.ref, Action.CREATE, manifest=manifest, payload=payload, note=note)
    if replaces is None:
        return change
    before = ground.live.get(replaces) if ground.live.known(replaces) else None
    if before is None:
        return replace(change, replaces=replaces)
    found = compare(payload, before.body, schema_of(payload))
    shown = tuple(d for d in found.differences if not _of_the_place(d.elements))
    marks = (before.body.get("metadata") or {}).get("annotations") or {}
    return replace(
        change,
        replaces=replaces,
        replaces_node=str(marks.get(names.NODE, "")),
        fields=field_changes(manifest.ref.kind, shown),
    )


def _of_the_place(elements: tuple[str, ...]) -> bool:
    """Names, marks and node of a placement differ always: they are not what changes."""
    if elements[0] == "f:metadata" or elements[:2] in _OF_THE_PLACE:
        return True
    inside = elements[2:] if elements[:2] == _TEMPLATE else ()
    return inside == _PLACEMENT or inside[:2] == ("f:spec", "f:affinity")


_OF_THE_PLACE = frozenset({("f:spec", "f:replicas"), ("f:spec", "f:selector")})
_TEMPLATE = ("f:spec", "f:template")
_PLACEMENT = ("f:metadata", "f:labels", f"f:{names.PLACEMENT_LABEL}")


def _empty_render(
    found: ManifestSet, left: tuple[Change, ...], ground: Ground
) -> tuple[Finding, ...]:
    """A render that shrank to nothing is an error: it is more often a mistake than a wish."""
    held = sum(change.code == "prune-held" for change in left)
    unit = ground.units.get(found.unit)
    if unit is None or not found.complete or found.manifests or not held:
        return ()
    message = f"renders nothing any more, and {held} of its objects stand; they are kept"
    return (Finding(unit.location, "render-empty", message, unit=str(found.unit)),)


def _proven(
    units: dict[UnitRef, UnitChanges], ground: Ground
) -> list[tuple[UnitRef, ObjectRef, str]]:
    """Rendered objects of ours whose UID or version the inventory lacks or has differently."""
    found = []
    for unit, changes in units.items():
        known = {ref: (ref.version, uid) for ref, uid in ground.inventory.objects(unit).items()}
        for change in changes.changes:
            if change.action not in {Action.UNCHANGED, Action.CHANGE} or not change.live_uid:
                continue
            if change.takes_over:
                continue  # not ours before the server has answered
            if known.get(change.ref) != (change.ref.version, change.live_uid):
                found.append((unit, change.ref, change.live_uid))
    return found


def _left_alone(
    units: dict[UnitRef, UnitChanges], ground: Ground
) -> list[tuple[UnitRef, ObjectRef]]:
    """Listed objects that Git leaves alone: with its entry goes the proof to delete one."""
    return [
        (unit, change.ref)
        for unit, changes in units.items()
        for change in changes.changes
        if change.code == "reconcile-disabled" and ground.inventory.names(unit, change.ref)
    ]

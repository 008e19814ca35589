"""Which units a pass looks at: those of which there is news since the last one, or all.

A pass costs what it compares and reports. Where everything that concerns the fleet as a whole
is as the last pass of this process left it, only units that changed in Git, were decided
about otherwise, have news in the cluster, or are not at rest are looked at; the others stand
in the report as they were. Anything else, and every ten minutes, is a whole pass. Called by
reconcile after check, and at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stoker.errors import Finding
from stoker.model.change import Action, ChangeSet, UnitChanges
from stoker.model.fleet import Desired
from stoker.model.manifest import ManifestSet
from stoker.model.outcome import Health, PassOutcome, Result, Sync, UnitOutcome
from stoker.model.plan import Plan, ServiceDecision
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.snapshot import ServiceState, Snapshot
from stoker.objects.inventory import Inventory
from stoker.observe import News
from stoker.report import PreviousStatus
from stoker.report.unit_report import UnitReport

__all__ = ["WHOLE_MS", "Looked", "Sight", "looked_after", "units_with_news"]

WHOLE_MS = 600_000
"""A whole pass at least this often: what no event told is found then."""

_FLEET_WIDE = frozenset(
    {
        ("", "Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)
"""Kinds whose every change concerns all units."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What one pass sees before it compares: everything that tells whom to look at."""

    desired: Desired
    sets: tuple[ManifestSet, ...]
    plan: Plan
    snapshot: Snapshot
    findings: tuple[Finding, ...] = ()
    handled: str = ""
    """The request for a pass that this one answers."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What the last pass left, when it ended well. `whole_at_ms`: when all were looked at."""

    whole_at_ms: int
    sight: Sight
    sets: Mapping[UnitRef, ManifestSet]
    claims: Mapping[ObjectRef, tuple[UnitRef, ...]]
    """Units that render an object or leave it to itself."""
    places: frozenset[tuple[str, str, str, str]]
    """Group, kind, version and namespace of these objects."""
    inventory: Inventory
    restless: frozenset[UnitRef]
    """Units of which more is to come: not Synced, written to, held, with errors, or due."""
    decisions: Mapping[UnitRef, ServiceDecision] = field(default_factory=dict)
    states: Mapping[UnitRef, ServiceState] = field(default_factory=dict)


def units_with_news(
    looked: Looked | None, sight: Sight, inventory: Inventory | None, news: News, now_ms: int
) -> frozenset[UnitRef] | None:
    """The units to look at; None: all of them.

    `inventory` is the one in force as far as it is known without being read.
    """
    if (
        looked is None
        or news.everything
        or inventory is not looked.inventory
        or now_ms - looked.whole_at_ms >= WHOLE_MS
        or not _is_same_fleet(looked.sight, sight)
    ):
        return None
    found = set(looked.restless)
    for set_ in sight.sets:
        before = looked.sets[set_.unit]
        if before is not set_:
            if not _grows(before, set_, looked):
                return None
            found.add(set_.unit)
    old_units = looked.sight.desired.units
    found.update(
        unit.ref
        for unit, old in zip(sight.desired.units, old_units, strict=True)
        if unit is not old and unit != old
    )
    found.update(d.ref for d in sight.plan.decisions if looked.decisions.get(d.ref) != d)
    found.update(s.ref for s in sight.snapshot.services if looked.states.get(s.ref) != s)
    concerned = _concerned(looked, news)
    return None if concerned is None else frozenset(found | concerned)


def looked_after(
    before: Looked | None,
    only: frozenset[UnitRef] | None,
    sight: Sight,
    changes: ChangeSet,
    outcome: PassOutcome,
    after: PreviousStatus,
    inventory: Inventory | None,
    now_ms: int,
) -> Looked | None:
    """What to remember of a pass that ended; None where the next one has to look at all."""
    known = {item.unit for item in sight.sets}
    if (
        inventory is None
        or outcome.failure is not None
        or outcome.pruned
        or changes.prune_hold
        or changes.forgotten
        or changes.wake_at_ms is not None
        or any(unit.unit not in known for unit in changes.units)
        or sight.snapshot.unknown
        or sight.desired.broken
        or not sight.desired.unit_set_known
    ):
        return None
    outcomes = {unit.unit: unit for unit in outcome.units}
    restless = {
        unit.unit
        for unit in changes.units
        if not _is_at_rest(unit, outcomes.get(unit.unit), after.units.get(unit.unit))
    }
    restless.update(held.unit for held in sight.desired.held)
    claims: Mapping[ObjectRef, tuple[UnitRef, ...]]
    if before is None or only is None:
        restless |= known - set(outcomes)
        claims = _claims(sight.sets)
        places = frozenset(map(_place, claims))
        whole_at_ms = now_ms
    else:
        changed = [item for item in sight.sets if item is not before.sets[item.unit]]
        claims = {**before.claims, **_claims(changed)} if changed else before.claims
        places, whole_at_ms = before.places, before.whole_at_ms
    return Looked(
        whole_at_ms=whole_at_ms,
        sight=sight,
        sets={item.unit: item for item in sight.sets},
        claims=claims,
        places=places,
        inventory=inventory,
        restless=frozenset(restless),
        decisions={decision.ref: decision for decision in sight.plan.decisions},
        states={state.ref: state for state in sight.snapshot.services},
    )


def _is_same_fleet(old: Sight, new: Sight) -> bool:
    """Whether everything that concerns more than one unit is as it was."""
    return (
        not new.snapshot.unknown
        and old.handled == new.handled
        and old.findings == new.findings
        and _same_desired(old.desired, new.desired)
        and _same_wishes(old.snapshot, new.snapshot)
        and len(old.sets) == len(new.sets)
    )


def _same_desired(old: Desired, new: Desired) -> bool:
    """All but the content of units; whose held ones are restless, the same or not."""
    if old is new:
        return True
    return (
        old.fleet == new.fleet
        and old.templates == new.templates
        and old.health == new.health
        and old.findings == new.findings
        and old.allow_delete == new.allow_delete
        and new.unit_set_known
        and not new.broken
        and len(old.units) == len(new.units)
        and all(a.ref == b.ref for a, b in zip(old.units, new.units, strict=True))
        and old.held == new.held
    )


def _same_wishes(old: Snapshot, new: Snapshot) -> bool:
    return (
        old.cluster_uid == new.cluster_uid
        and old.suspensions == new.suspensions
        and old.overrides == new.overrides
        and old.unread_overrides == new.unread_overrides
        and old.when_full_overrides == new.when_full_overrides
    )


def _concerned(looked: Looked, news: News) -> set[UnitRef] | None:
    """Units whose objects are news; None where news concerns all, or an object of ours that
    no unit claims.
    """
    found: set[UnitRef] = set()
    for ref in news.refs:
        if (ref.group, ref.kind) in _FLEET_WIDE:
            return None
        units = looked.claims.get(ref, ())
        if not units and ref in news.marked:
            return None
        found.update(units)
    return found


def _grows(before: ManifestSet, now: ManifestSet, looked: Looked) -> bool:
    """Whether a unit leaves out nothing that it had, and what is new is of a kind and in a
    place that are watched already.
    """
    old, new = _named(before), _named(now)
    added = new - old
    return (
        before.complete
        and now.complete
        and old <= new
        and all(_place(ref) in looked.places for ref, _ in added)
        and not any((ref.group, ref.kind) in _FLEET_WIDE for ref, _ in added)
        and not any(ref in looked.claims for ref, _ in added)
    )


def _named(found: ManifestSet) -> set[tuple[ObjectRef, str]]:
    """With the API version, which an ObjectRef does not tell apart."""
    refs = (*(manifest.ref for manifest in found.manifests), *found.kept)
    return {(ref, ref.version) for ref in refs}


def _place(ref: ObjectRef) -> tuple[str, str, str, str]:
    return ref.group, ref.kind, ref.version, ref.namespace


def _claims(sets: Iterable[ManifestSet]) -> dict[ObjectRef, tuple[UnitRef, ...]]:
    claims: dict[ObjectRef, tuple[UnitRef, ...]] = {}
    for found in sets:
        for ref in (*(m.ref for m in found.manifests), *found.kept):
            claims[ref] = (*claims.get(ref, ()), found.unit)
    return claims


def _is_at_rest(
    changes: UnitChanges, outcome: UnitOutcome | None, report: UnitReport | None
) -> bool:
    """Whether nothing more comes of the unit unless there is news.

    Its health follows from live objects and the snapshot, so a change of either is news.
    """
    return (
        report is not None
        and outcome is not None
        and outcome.applied
        and changes.complete
        and not changes.retirements
        and not changes.findings
        and all(change.action is Action.UNCHANGED for change in changes.changes)
        and all(item.result is Result.UNCHANGED for item in outcome.objects)
        and report.sync is Sync.SYNCED
        and report.health is not Health.UNKNOWN
        and report.due_ms is None
        and not report.errors
    )

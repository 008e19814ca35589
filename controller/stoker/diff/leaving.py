"""A service that left Git: its replicas drain before prune deletes them (design section 4).

Prune's changes and the snapshot come in; the changes go out with what must wait, beside
retirements that take traffic off, and the instant to look again. Called by diff after prune,
so every proof, cap and consent has been asked before the first pod loses its traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stoker.decide.retire import Departure, depart
from stoker.diff.ground import Ground
from stoker.model.change import Action, Change
from stoker.model.fleet import Drain
from stoker.model.plan import Retirement, RetireStage
from stoker.model.refs import UnitRef
from stoker.model.snapshot import LivePlacement, Snapshot
from stoker.model.workload import is_workload
from stoker.objects.kinds import pod_specs_of

__all__ = ["Leaving", "drained"]

_SYNC_MS = 15_000
"""The schema's default of drain.endpointSync: the service's own left Git with its file."""
_GRACE_SECONDS = 30
"""What the API server sets where a pod names no grace period."""
_CODE = "draining"
_LEFT_GIT = "the service left Git"


@dataclass(frozen=True, slots=True)
class Leaving:
    """Changes by unit, retirements by unit, and when to look at a draining pod again."""

    changes: Mapping[UnitRef, tuple[Change, ...]] = field(default_factory=dict, hash=False)
    retirements: Mapping[UnitRef, tuple[Retirement, ...]] = field(default_factory=dict, hash=False)
    wake_at_ms: int | None = None


def drained(
    changes: Mapping[UnitRef, tuple[Change, ...]], ground: Ground, snapshot: Snapshot | None
) -> Leaving:
    """Turn deletes of serving Deployments into the next step of their drain.

    What stands beside them (Service, budget, account) waits for the last of them. Without
    a snapshot nothing is known of pods and the changes stay as they are.
    """
    if snapshot is None:
        return Leaving(changes)
    found = dict(changes)
    retirements: dict[UnitRef, tuple[Retirement, ...]] = {}
    wakes: list[int] = []
    for unit, leaving in changes.items():
        if unit.kind != "ModelService" or unit in ground.units:
            continue
        steps = [_step(change, unit, ground, snapshot) for change in leaving]
        waiting = [step for step in steps if step is not None]
        if not waiting:
            continue
        found[unit] = tuple(_waits(c, s) for c, s in zip(leaving, steps, strict=True))
        retirements[unit] = tuple(
            step.retirement for step in waiting if step.retirement.stage is RetireStage.STOP_TRAFFIC
        )
        wakes += [step.wake_at_ms for step in waiting if step.wake_at_ms is not None]
    spaces = {unit.namespace for unit in retirements}
    for unit, leaving in found.items():
        found[unit] = tuple(_stays(change, spaces) for change in leaving)
    return Leaving(found, retirements, min(wakes, default=None))


def _step(change: Change, unit: UnitRef, ground: Ground, snapshot: Snapshot) -> Departure | None:
    """What its replicas need before the Deployment may go; None for nothing, or no delete."""
    if change.action is not Action.DELETE or not is_workload(change.ref):
        return None
    placement = next(
        (p for p in snapshot.service(unit).placements if p.uid == change.live_uid), None
    )
    if placement is None:
        return None
    if "pods" in dict(snapshot.unknown):
        return _unseen(placement)
    return depart(placement, _limits(change, ground), _LEFT_GIT, snapshot.taken_at_ms)


def _unseen(placement: LivePlacement) -> Departure:
    """Pods that could not be read may be serving."""
    reason = "its pods could not be read"
    retirement = Retirement(placement.name, placement.uid, RetireStage.DRAIN, reason)
    return Departure(retirement, placement.replicas, None)


def _limits(change: Change, ground: Ground) -> Drain:
    """As long as the pods' own grace period, which the template made of the service's drain."""
    live = ground.live.get(change.ref)
    pods = [] if live is None else pod_specs_of(live.body, change.ref.group, change.ref.kind)
    grace = pods[0].get("terminationGracePeriodSeconds") if pods else None
    grace_ms = int(_GRACE_SECONDS if grace is None else grace) * 1000
    sync_ms = min(_SYNC_MS, grace_ms)
    return Drain(endpoint_sync_ms=sync_ms, max_ms=grace_ms - sync_ms, shutdown_ms=0)


def _stays(change: Change, spaces: set[str]) -> Change:
    """A namespace in which replicas drain goes after them: it would take them along."""
    inhabited = (change.ref.group, change.ref.kind) == ("", "Namespace")
    if change.action is not Action.DELETE or not inhabited or change.ref.name not in spaces:
        return change
    return replace(change, action=Action.WAIT, code=_CODE, note="replicas drain in it")


def _waits(change: Change, step: Departure | None) -> Change:
    if change.action is not Action.DELETE:
        return change
    if step is not None:
        stage = step.retirement.stage
        note = step.retirement.reason
        if stage is RetireStage.STOP_TRAFFIC:
            note = "takes no new requests from now on; deleted once it has drained"
        elif note == _LEFT_GIT:
            note = "drains; deleted once no request is left, or its grace period is over"
        return replace(change, action=Action.WAIT, code=_CODE, note=note)
    if is_workload(change.ref):
        return change
    return replace(change, action=Action.WAIT, code=_CODE, note="goes after the service's replicas")

"""The observe stage: the cluster as it stands, at one instant.

The observer's caches and Desired come in; the Snapshot that decide reads and the live view
that diff reads go out. Called once a pass by reconcile. It reads again only what our own
writes left unknown, and asks draining engines for their load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from stoker.errors import StokerError
from stoker.model.fleet import Desired, ModelService
from stoker.model.flow import Suspension
from stoker.model.live import LiveView
from stoker.model.prefetch import LivePrefetch
from stoker.model.readings import ServiceReadings
from stoker.model.refs import UnitRef
from stoker.model.snapshot import Node, ServiceState, Snapshot
from stoker.model.workload import is_workload
from stoker.objects.inventory import Inventory
from stoker.observe.groups import group_keys
from stoker.observe.keys import (
    FLEETS,
    NODE_STATES,
    NODES,
    PODS,
    SERVICES,
    WatchKey,
    base_keys,
)
from stoker.observe.live import KindView
from stoker.observe.nodes import NodeFacts, StateFacts, nodes_from
from stoker.observe.observer import Observer
from stoker.observe.pods import PodFacts
from stoker.observe.prefetches import job_keys, prefetches_from
from stoker.observe.reflector import NO_SUCH_KIND
from stoker.observe.replicas import DeploymentFacts, services_from
from stoker.observe.scaling_asks import asks_from
from stoker.observe.store import Name
from stoker.observe.wishes import MirrorFacts, Wishes, wishes_of

__all__ = ["Observation", "observe"]

UNKNOWN_SCALER = "unknown (autoscalers could not be read)"
"""Stands for an owner of a count that may exist: unknown is not nobody."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one pass sees; both parts are of the same instant."""

    snapshot: Snapshot
    live: LiveView
    reconcile: str = ""
    """The newest request for a pass, as it stands on the Fleet's mirror."""


def observe(
    observer: Observer, desired: Desired, now_ms: int, owned: Inventory | None = None
) -> Observation:
    """Take a snapshot; nothing raises, what could not be read is named in `unknown`. `owned` is
    the inventory, as far as it was read: it tells of kinds that Git does not ask for any more.

    Nodes and services that could not be read are absent. Without pods every node says
    that its GPUs cannot be counted, and placements show no pods: ask `unknown` first.
    """
    observer.ensure(base_keys(unit.ref.namespace for unit in desired.units))
    observer.ensure((*job_keys(desired), *group_keys(desired, owned)))
    observer.settle()
    kinds = observer.kinds()
    unknown = {
        view.key.label: view.why_unknown
        for view in kinds
        if view.why_unknown and (view.why_unknown != NO_SUCH_KIND or view.key in {NODES, PODS})
    }
    cluster_uid = _cluster_uid(observer, unknown)
    if observer.history_went_back():
        unknown["history"] = "the cluster was restored to an older state"
    wishes = _wishes(observer, kinds)
    suspensions = (*wishes.suspensions, *_unread(kinds, desired.fleet.name))
    services = _services(observer, kinds, desired, now_ms)
    snapshot = Snapshot(
        taken_at_ms=now_ms,
        cluster_uid=cluster_uid,
        nodes=_nodes(observer, kinds, unknown, now_ms, signals=_reads_signals(desired)),
        services=services,
        unknown=tuple(sorted(unknown.items())),
        suspensions=suspensions,
        overrides=wishes.overrides,
        unread_overrides=wishes.unread_overrides,
        when_full_overrides=wishes.when_full_overrides,
        prefetches=_prefetches(kinds),
        readings=_readings(observer, kinds, desired, services, now_ms),
    )
    return Observation(snapshot, observer.live(kinds), wishes.reconcile)


def _prefetches(kinds: tuple[KindView, ...]) -> tuple[LivePrefetch, ...]:
    """Of every cache of Jobs, whoever asked for it: those of services that no longer fetch too."""
    jobs = (view for view in kinds if (view.key.group, view.key.kind) == ("batch", "Job"))
    return prefetches_from(facts for view in jobs for _, facts in _facts(kinds, view.key))


def _wishes(observer: Observer, kinds: tuple[KindView, ...]) -> Wishes:
    """What people ask of this fleet; while mirrors cannot be read, what they asked last."""
    mirrors = (
        entry.facts
        for view in kinds
        if view.key in {FLEETS, SERVICES}
        for entry in view.entries.values()
        if isinstance(entry.facts, MirrorFacts)
    )
    return wishes_of(mirrors, observer.fleet_id)


def _unread(kinds: tuple[KindView, ...], fleet: str) -> tuple[Suspension, ...]:
    """The fleet counts as suspended while a kind of mirrors was never read: unknown is not no.

    Where there is no right to read them, or no such kind, nobody can have asked for anything.
    """
    for view in kinds:
        why = view.why_unknown
        known = not why or why == NO_SUCH_KIND or why.startswith("forbidden")
        if view.key in {FLEETS, SERVICES} and not known and not view.entries:
            reason = f"whether it is suspended is unknown: {view.key.label}: {why}"
            return (Suspension(UnitRef("Fleet", "", fleet), reason, by_hand=False),)
    return ()


def _cluster_uid(observer: Observer, unknown: dict[str, str]) -> str:
    try:
        return observer.cluster.server().cluster_uid
    except StokerError as error:
        unknown["cluster"] = error.message
        return ""


def _reads_signals(desired: Desired) -> bool:
    """Whether some service is placed by what reporters measure."""
    return any(
        isinstance(unit.spec, ModelService) and unit.spec.placement_order.reads_signals
        for unit in desired.units
    )


def _nodes(
    observer: Observer,
    kinds: tuple[KindView, ...],
    unknown: Mapping[str, str],
    now_ms: int,
    *,
    signals: bool,
) -> tuple[Node, ...]:
    states = {
        name: facts
        for (_, name), facts in _facts(kinds, NODE_STATES)
        if isinstance(facts, StateFacts)
    }
    nodes, observer.notices_seen = nodes_from(
        [
            (name, facts)
            for (_, name), facts in _facts(kinds, NODES)
            if isinstance(facts, NodeFacts)
        ],
        [facts for _, facts in _facts(kinds, PODS) if isinstance(facts, PodFacts)],
        states,
        observer.notices_seen,
        now_ms,
        signals=signals,
    )
    if PODS.label in unknown:
        why = f"the pods could not be read ({unknown[PODS.label]})"
        return tuple(replace(node, gpu_unknown=why) for node in nodes)
    return nodes


def _services(
    observer: Observer, kinds: tuple[KindView, ...], desired: Desired, now_ms: int
) -> tuple[ServiceState, ...]:
    deployments = {
        view.key.ref(*place): facts
        for view in kinds
        if is_workload(view.key.ref("", ""))
        for place, facts in _facts(kinds, view.key)
        if isinstance(facts, DeploymentFacts) and facts.unit.kind == "ModelService"
    }
    scalers = observer.scalers.of(kinds)
    if scalers is None:
        scalers = dict.fromkeys(deployments, UNKNOWN_SCALER)
    return services_from(
        deployments.items(),
        ((place, facts) for place, facts in _facts(kinds, PODS) if isinstance(facts, PodFacts)),
        scalers,
        desired,
        observer.load_probe,
        now_ms,
    )


def _readings(
    observer: Observer,
    kinds: tuple[KindView, ...],
    desired: Desired,
    services: tuple[ServiceState, ...],
    now_ms: int,
) -> tuple[ServiceReadings, ...]:
    """What was measured last of services that scale, of the pods that stand now."""
    if observer.measures is None:
        return ()
    scales = any(isinstance(u.spec, ModelService) and u.spec.scaling for u in desired.units)
    pods = {
        place: facts.own
        for place, facts in (_facts(kinds, PODS) if scales else ())
        if isinstance(facts, PodFacts) and facts.own is not None
    }
    return observer.measures.latest(asks_from(desired, services, pods), now_ms)


def _facts(kinds: tuple[KindView, ...], key: WatchKey) -> Iterable[tuple[Name, object]]:
    """Facts of one cache by namespace and name, if it is known.

    Another cache of the same kind may hold the same objects (one namespace beside all), so
    kinds that are summed are read from one only.
    """
    for view in kinds:
        if view.key == key and not view.why_unknown:
            for place, entry in view.entries.items():
                yield place, entry.facts

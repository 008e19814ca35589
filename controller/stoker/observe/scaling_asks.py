"""What signals are wanted of the services that scale: their pods, and where these answer.

In: Desired and what stands. Out: an ask a service with `spec.scaling` in mode Stoker, sorted by
ref. Used by observe, which hands them to whoever measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from stoker.model.fleet import Desired, ModelService
from stoker.model.readings import PodTarget, ServiceReadings, SignalAsk
from stoker.model.refs import UnitRef
from stoker.model.snapshot import Replica, ReplicaPhase, ServiceState
from stoker.observe.pods import OwnPod, engine_address

__all__ = ["Measures", "asks_from"]


class Measures(Protocol):
    """Who measures: the poller of the long-running controller, or a single read."""

    def latest(self, asks: tuple[SignalAsk, ...], now_ms: int) -> tuple[ServiceReadings, ...]:
        """The latest readings, in the order of the asks; what was not read yet is absent."""
        ...


def asks_from(
    desired: Desired,
    services: Iterable[ServiceState],
    pods: Mapping[tuple[str, str], OwnPod],
) -> tuple[SignalAsk, ...]:
    """The asks; `pods` by namespace and name."""
    standing = {state.ref: state for state in services}
    found = []
    for unit in desired.units:
        spec = unit.spec
        if not isinstance(spec, ModelService) or spec.scaling is None:
            continue
        replicas = [
            pod
            for placement in standing.get(unit.ref, ServiceState(unit.ref)).placements
            for pod in placement.pods
            if pod.phase is not ReplicaPhase.TERMINATING
        ]
        targets = tuple(
            _target(replica, pods.get((unit.ref.namespace, replica.name)), spec.service_port)
            for replica in sorted(replicas, key=lambda each: each.name)
        )
        ask = SignalAsk(
            ref=unit.ref,
            scaling=spec.scaling,
            pods=targets,
            selector=_selector(unit.ref, targets),
            sources=desired.fleet.metric_sources,
        )
        found.append(ask)
    return tuple(sorted(found, key=lambda ask: ask.ref))


def _target(replica: Replica, pod: OwnPod | None, port: int) -> PodTarget:
    """A replica that takes traffic counts as Ready; one that is drained does not any more."""
    known = pod is not None and pod.uid == replica.uid
    ready = replica.phase is ReplicaPhase.READY and replica.traffic
    return PodTarget(
        name=replica.name,
        uid=replica.uid,
        address=engine_address(pod, port) if known and pod is not None else "",
        ready=ready,
        ready_ms=replica.since_ms if ready else 0,
    )


def _selector(ref: UnitRef, pods: tuple[PodTarget, ...]) -> str:
    """What `$pods` stands for: the Ready pods by name, as Prometheus' own discovery labels them.

    By name and not by pattern: the names of other services may begin alike, and a pod that is
    gone must not count while its last samples are still there.
    """
    ready = "|".join(pod.name.replace(".", "[.]") for pod in pods if pod.ready)
    return f'namespace="{ref.namespace}",pod=~"{ready}"' if ready else ""

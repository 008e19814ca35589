"""Looks at the cluster while a rehearsal plays, and notes what changed in the recording.

In: the Cluster port. Out: pods with their states, Ready counts, GPUs asked for of each node,
and the endpoint lists that clients choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stoker.model.ports import Cluster
from stoker.objects import names
from stoker.objects.quantity import parse_quantity
from stoker.rehearse.load import Endpoint
from stoker.rehearse.record import PodLife, PodState, Recording
from stoker.sim.endpoints import SERVICE_NAME_LABEL
from stoker.sim.pods import is_over, is_ready, requests_of, restarts_of
from stoker.sim.view import ENDPOINT_SLICE, NODE, POD, is_dying, labels_of, uid_of

__all__ = ["Watcher"]

GPU = "nvidia.com/gpu"
_BACK_OFFS = frozenset({"CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff"})

EndpointSink = Callable[[int, str, tuple[Endpoint, ...]], None]


class Watcher:
    """`look` as often as the ground can bear. `endpoints_to` gets each service's endpoints."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        services: Iterable[str],
        recording: Recording,
        endpoints_to: EndpointSink,
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._services = tuple(services)
        self._recording = recording
        self._endpoints_to = endpoints_to
        self.version: int | None = None
        """The cluster's at the last look, where it has one."""

    def look(self, now_ms: int) -> None:
        """Note what is otherwise than before."""
        listed = self._cluster.list(POD.group, POD.kind, self._namespace).items
        pods = {uid_of(pod): pod for pod in listed}
        for uid, pod in sorted(pods.items()):
            self._note(uid, pod, now_ms)
        for uid, life in self._recording.pods.items():
            if uid not in pods and life.last is not PodState.GONE:
                life.states.append((now_ms, PodState.GONE))
        self._note_ready(now_ms)
        self._note_bookings(pods.values())
        self._note_endpoints(pods, now_ms)

    def ready(self, service: str) -> int:
        """Replicas Ready and with traffic at the last look."""
        return sum(
            life.last is PodState.READY
            for life in self._recording.pods.values()
            if life.service == service
        )

    def _note(self, uid: str, pod: dict[str, Any], now_ms: int) -> None:
        service = labels_of(pod).get(names.SERVICE_LABEL, "")
        if service not in self._services:
            return
        life = self._recording.pods.get(uid)
        if life is None:
            gpus = requests_of(pod).device(GPU)
            life = PodLife(uid, pod["metadata"]["name"], service, gpus=gpus)
            self._recording.pods[uid] = life
        life.node = str(pod["spec"].get("nodeName") or life.node)
        state = _state(pod)
        if not life.states or life.last is not state:
            life.states.append((now_ms, state))

    def _note_ready(self, now_ms: int) -> None:
        for service in self._services:
            count = self.ready(service)
            known = self._recording.ready.setdefault(service, [])
            if not known or known[-1][1] != count:
                known.append((now_ms, count))

    def _note_bookings(self, pods: Iterable[dict[str, Any]]) -> None:
        asked: dict[str, int] = {}
        for pod in pods:
            node = pod["spec"].get("nodeName")
            if node and not is_over(pod):
                asked[node] = asked.get(node, 0) + requests_of(pod).device(GPU)
        for node in self._cluster.list(NODE.group, NODE.kind).items:
            name = node["metadata"]["name"]
            has = (node.get("status") or {}).get("allocatable") or {}
            beyond = asked.get(name, 0) - int(parse_quantity(has.get(GPU, 0)))
            self._recording.double_booked = max(self._recording.double_booked, beyond)

    def _note_endpoints(self, pods: dict[str, dict[str, Any]], now_ms: int) -> None:
        found: dict[str, list[Endpoint]] = {service: [] for service in self._services}
        listed = self._cluster.list(ENDPOINT_SLICE.group, ENDPOINT_SLICE.kind, self._namespace)
        for each in listed.items:
            service = labels_of(each).get(SERVICE_NAME_LABEL, "")
            if service not in found:
                continue
            for endpoint in each.get("endpoints") or ():
                uid = str((endpoint.get("targetRef") or {}).get("uid") or "")
                if not (endpoint.get("conditions") or {}).get("ready", True):
                    continue
                notes = (pods[uid]["metadata"].get("annotations") or {}) if uid in pods else {}
                node = str(endpoint.get("nodeName") or "")
                found[service].append(Endpoint(uid, node, notes.get(names.ADDRESS, "")))
        for service, endpoints in found.items():
            self._endpoints_to(now_ms, service, tuple(sorted(endpoints)))


def _state(pod: dict[str, Any]) -> PodState:
    if is_dying(pod):
        return PodState.DRAINING
    if not pod["spec"].get("nodeName"):
        return PodState.PENDING
    if is_ready(pod):
        serving = names.TRAFFIC_LABEL in labels_of(pod)
        return PodState.READY if serving else PodState.DRAINING
    waiting = {
        ((status.get("state") or {}).get("waiting") or {}).get("reason")
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
    }
    failing = bool(waiting & _BACK_OFFS) or restarts_of(pod) > 0
    return PodState.FAILING if failing else PodState.STARTING

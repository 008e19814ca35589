"""The LeaderWorkerSet controller for live tests: its own container cannot run here.

As the original (kubernetes-sigs/lws v1) it only makes StatefulSets, one of leaders and one of the
workers of each group; the cluster's own controllers make the pods, collect them, and count them for
budgets. Only what the tests need: sets of one group of two pods, which are never restarted whole.
"""

from __future__ import annotations

import threading
from typing import Any

from live.running import CLOCK
from stoker.errors import StokerError
from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.model.workload import GROUP_INDEX, GROUP_KIND, LWS_GROUP, LWS_KIND, WORKER_INDEX
from stoker.sim.controlplane import ControlPlane
from stoker.sim.pods import is_ready

__all__ = ["GroupController"]

MANAGER = "leaderworkerset"
PREFIX = "leaderworkerset.sigs.k8s.io"
LWS = (f"{LWS_GROUP}/v1", LWS_KIND)


class GroupController:
    """Looks at all sets several times a second, until it is closed."""

    def __init__(self, plane: ControlPlane) -> None:
        self._transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
        self._cluster = Client(self._transport, user_agent=MANAGER)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(10)
        self._transport.close()

    def _run(self) -> None:
        while not self._ended.wait(0.3):
            try:
                for body in self._cluster.list(*GROUP_KIND, "").items:
                    if not body["metadata"].get("deletionTimestamp"):
                        self._reconcile(body)
            except StokerError:
                continue  # as the original: it looks again

    def _reconcile(self, body: dict[str, Any]) -> None:
        name = body["metadata"]["name"]
        wanted = body["spec"].get("replicas", 1)
        self._apply(body, LWS, _service(name))
        self._apply(body, LWS, _stateful_set(body, name, 0, wanted))
        leader = self._pod(body, f"{name}-0")
        if leader is not None and not leader["metadata"].get("deletionTimestamp"):
            self._apply(leader, ("v1", "Pod"), _stateful_set(body, f"{name}-0", 1, 1))
        self._report(body, leader, self._pod(body, f"{name}-0-1"), wanted)

    def _pod(self, body: dict[str, Any], name: str) -> dict[str, Any] | None:
        try:
            return self._cluster.get(
                ObjectRef("", "Pod", body["metadata"]["namespace"], name, "v1")
            )
        except NotFound:
            return None

    def _apply(self, owner: dict[str, Any], kind: tuple[str, str], made: dict[str, Any]) -> None:
        meta = owner["metadata"]
        reference = {
            "apiVersion": kind[0],
            "kind": kind[1],
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        place = {"namespace": meta["namespace"], "ownerReferences": [reference]}
        self._cluster.apply({**made, "metadata": {**made["metadata"], **place}}, manager=MANAGER)

    def _report(
        self,
        body: dict[str, Any],
        leader: dict[str, Any] | None,
        worker: dict[str, Any] | None,
        wanted: int,
    ) -> None:
        ready = int(all(pod is not None and is_ready(pod) for pod in (leader, worker)))
        status = {
            "replicas": int(leader is not None),
            "readyReplicas": ready,
            "updatedReplicas": int(leader is not None),
            "hpaPodSelector": f"{PREFIX}/name={body['metadata']['name']},{WORKER_INDEX}=0",
            "observedGeneration": body["metadata"]["generation"],
        }
        before = body.get("status") or {}
        if any(before.get(key) != value for key, value in status.items()):
            whole = ready >= wanted
            at = rfc3339(CLOCK.now_ms())
            status["conditions"] = [
                {
                    "type": kind,
                    "status": "True" if holds else "False",
                    "reason": reason,
                    "message": "",
                    "lastTransitionTime": at,
                }
                for kind, holds, reason in (
                    ("Available", whole, "AllGroupsReady"),
                    ("Progressing", not whole, "GroupsProgressing"),
                )
            ]
            ref = ObjectRef(
                *GROUP_KIND, body["metadata"]["namespace"], body["metadata"]["name"], "v1"
            )
            patch = {"status": status}
            self._cluster.patch(ref, "merge", patch, manager=MANAGER, subresource="status")


def _service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {f"{PREFIX}/name": name},
        },
    }


def _stateful_set(body: dict[str, Any], name: str, first: int, replicas: int) -> dict[str, Any]:
    """Of leaders (`first` is 0), or of the worker of the first group."""
    whole = body["metadata"]["name"]
    inside = body["spec"]["leaderWorkerTemplate"]
    assert inside["size"] == 2
    template = inside["workerTemplate" if first else "leaderTemplate"]
    labels = {f"{PREFIX}/name": whole, GROUP_INDEX: "0", WORKER_INDEX: str(first)}
    meta = template.get("metadata") or {}
    told = {
        "LWS_LEADER_ADDRESS": f"{whole}-0.{whole}.{body['metadata']['namespace']}",
        "LWS_GROUP_SIZE": "2",
        "LWS_WORKER_INDEX": str(first),
    }
    env = [{"name": key, "value": value} for key, value in told.items()]
    spec = dict(template["spec"])
    spec["containers"] = [{**c, "env": [*env, *(c.get("env") or [])]} for c in spec["containers"]]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": whole,
            "podManagementPolicy": "Parallel",
            "ordinals": {"start": first},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}},
                "spec": spec,
            },
        },
    }

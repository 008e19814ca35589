"""Binding and eviction of pods.

In: Calls on pods/binding and pods/eviction. Out: a Status of success, or why not: a pod that
is bound already, a disruption budget in the way. Used by the in-memory API server.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from stoker.kube.memory_call import Call
from stoker.kube.memory_commit import Commits
from stoker.kube.memory_delete import Deletes
from stoker.kube.memory_errors import StatusAnswer, conflict, not_found
from stoker.kube.memory_store import Store, Stored
from stoker.kube.memory_validate_kinds import selector_matches

__all__ = ["Pods"]

Json = dict[str, Any]

_SUCCESS: Json = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
_BUDGETS = "policy/poddisruptionbudgets"


class Pods:
    """What pods have beyond other kinds."""

    def __init__(self, store: Store, commits: Commits, deletes: Deletes) -> None:
        self._store = store
        self._commits = commits
        self._deletes = deletes

    def bind(self, call: Call) -> Json:
        """POST pods/binding: put the pod on a node."""
        live = self._live(call)
        node = (call.json_body().get("target") or {}).get("name", "")
        held = live.manifest["spec"].get("nodeName")
        if held:
            text = f'pod {call.name} is already assigned to node "{held}"'
            raise conflict(call.resource, call.name, text, "pods/binding")
        if call.dry_run:
            return _SUCCESS
        status = live.manifest.get("status") or {}
        others = [c for c in status.get("conditions") or () if c["type"] != "PodScheduled"]
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": self._commits.now(),
        }
        new = {
            **live.manifest,
            "spec": {**live.manifest["spec"], "nodeName": node},
            "status": {**status, "conditions": [*others, scheduled]},
        }
        self._store.put(call.resource.key, call.namespace, call.name, new)
        return _SUCCESS

    def evict(self, call: Call) -> Json:
        """POST pods/eviction: delete the pod if no disruption budget forbids it."""
        live = self._live(call)
        body = call.json_body()
        options = body.get("deleteOptions") or {}
        if call.dry_run:
            options = {**options, "dryRun": ["All"]}
        call = replace(call, dry_run=bool(options.get("dryRun")))
        status = live.manifest.get("status") or {}
        metadata = live.manifest["metadata"]
        over = status.get("phase") in {"Succeeded", "Failed", "Pending"}
        if not over and not metadata.get("deletionTimestamp"):
            self._charge_budget(call, live)
        request = replace(call.request, body=json.dumps(options).encode())
        self._deletes.delete(replace(call, request=request))
        return _SUCCESS

    def _live(self, call: Call) -> Stored:
        live = self._store.get(call.resource.key, call.namespace, call.name)
        if live is None:
            raise not_found(call.resource, call.name)
        return live

    def _charge_budget(self, call: Call, live: Stored) -> None:
        labels = live.manifest["metadata"].get("labels") or {}
        found = [
            (key, stored)
            for key, stored in self._store.items(_BUDGETS, call.namespace)
            if (selector := (stored.manifest.get("spec") or {}).get("selector")) is not None
            and selector_matches(selector, labels)
        ]
        if not found:
            return
        if len(found) > 1:
            text = (
                "This pod has more than one PodDisruptionBudget, which the eviction subresource"
                " does not support."
            )
            raise StatusAnswer(500, "InternalError", text)
        (_, name), stored = found[0]
        budget = stored.manifest
        status = budget.get("status") or {}
        if not _is_ready(live.manifest) and _spares_unready(budget, status):
            return
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            self._refuse(f"The disruption budget {name} is still being processed by the server.")
        allowed = status.get("disruptionsAllowed", 0)
        if allowed <= 0:
            needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
            self._refuse(
                f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
            )
        if call.dry_run:
            return
        disrupted = {**(status.get("disruptedPods") or {}), call.name: self._commits.now()}
        status = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
        self._commits.server_status(_BUDGETS, call.namespace, name, stored, status)

    @staticmethod
    def _refuse(why: str) -> None:
        text = "Cannot evict pod as it would violate the pod's disruption budget."
        causes = [{"reason": "DisruptionBudget", "message": why}]
        raise StatusAnswer(429, "TooManyRequests", text, {"causes": causes})


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _spares_unready(budget: Json, status: Json) -> bool:
    """Whether an unready pod may go whatever the budget allows."""
    policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy")
    if policy == "AlwaysAllow":
        return True
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(healthy >= desired > 0)

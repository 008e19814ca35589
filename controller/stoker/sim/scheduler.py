"""The scheduler of the in-memory cluster: which node a waiting pod is bound to.

In: a view. Out: pods bound, or an Unschedulable condition that says why, as the real one words
it. Filters: cordon, taints, node selector, required affinity (labels and metadata.name),
resources with extended ones and the number of pods. Score: preferred affinity, then
PreferNoSchedule taints, then the emptiest node, then the name.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from stoker.model.ports import Cluster
from stoker.model.shape import Resources
from stoker.model.times import rfc3339
from stoker.sim.pod_calls import PodCalls
from stoker.sim.pods import condition, is_over, requests_of, resources_from_map
from stoker.sim.view import NODE, POD, View, Writer, is_dying, labels_of, selects, uid_of

__all__ = ["MANAGER", "Scheduler", "taken_by_others"]

MANAGER = "kube-scheduler"
DEFAULT_SCHEDULER = "default-scheduler"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


class Scheduler:
    """The loop `schedule`, with the call that binds."""

    def __init__(self, calls: PodCalls) -> None:
        self._calls = calls

    def schedule(self, view: View, cluster: Cluster, now_ms: int) -> int:
        """One round over all waiting pods, most important and oldest first; gives the writes."""
        writer = Writer(cluster, MANAGER)
        nodes = [n for n in view.of(NODE) if not is_dying(n)]
        free = _free(nodes, view.of(POD))
        waiting = [p for p in view.of(POD) if _waits(p)]
        bound = [p for p in view.of(POD) if p["spec"].get("nodeName") and not is_over(p)]
        for pod in sorted(waiting, key=_queue_order):
            requests = requests_of(pod)
            chosen, reasons = _choose(pod, requests, nodes, free, taken_by_others(pod, bound))
            if not chosen:
                _say_unschedulable(pod, reasons, len(nodes), writer, now_ms)
            elif self._calls.bind(POD.ref(pod), uid_of(pod), chosen):
                writer.writes += 1
                free[chosen] = free[chosen].plus(requests, -1)
                bound.append({**pod, "spec": {**pod["spec"], "nodeName": chosen}})
        return writer.writes


def _choose(
    pod: dict[str, Any],
    requests: Resources,
    nodes: list[dict[str, Any]],
    free: dict[str, Resources],
    apart: frozenset[str],
) -> tuple[str, Counter[str]]:
    """The best node by name, empty with the reasons where there is none."""
    reasons: Counter[str] = Counter()
    best: tuple[tuple[int, ...], str] | None = None
    for node in nodes:
        name = node["metadata"]["name"]
        reason = _obstacle(pod, node, requests, free[name])
        if not reason and name in apart:
            reason = "node(s) didn't match pod anti-affinity rules"
        if reason:
            reasons[reason] += 1
            continue
        # Nodes come sorted by name: only a better score displaces an earlier one.
        score = _score(pod, node, free[name])
        if best is None or score > best[0]:
            best = (score, name)
    return ("" if best is None else best[1]), reasons


def taken_by_others(pod: dict[str, Any], bound: list[dict[str, Any]]) -> frozenset[str]:
    """Nodes that required anti-affinity over kubernetes.io/hostname keeps the pod away from."""
    rules = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    terms = [
        term.get("labelSelector")
        for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        if term.get("topologyKey") == "kubernetes.io/hostname"
    ]
    if not terms:
        return frozenset()
    space = pod["metadata"]["namespace"]
    return frozenset(
        each["spec"]["nodeName"]
        for each in bound
        if each["metadata"]["namespace"] == space
        and any(selects(term, labels_of(each)) for term in terms)
    )


def _waits(pod: dict[str, Any]) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not is_dying(pod)
        and not is_over(pod)
        and not spec.get("schedulingGates")
        and (spec.get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
    )


def _queue_order(pod: dict[str, Any]) -> tuple[Any, ...]:
    meta = pod["metadata"]
    created = meta.get("creationTimestamp") or ""
    return (-int(pod["spec"].get("priority") or 0), created, meta["namespace"], meta["name"])


def _free(nodes: list[dict[str, Any]], pods: tuple[dict[str, Any], ...]) -> dict[str, Resources]:
    """Allocatable minus every bound pod that isn't over, dying ones included."""
    free = {}
    for node in nodes:
        status = node.get("status") or {}
        amounts = status.get("allocatable") or status.get("capacity") or {}
        free[node["metadata"]["name"]] = resources_from_map(amounts)
    for pod in pods:
        name = pod["spec"].get("nodeName") or ""
        if name in free and not is_over(pod):
            free[name] = free[name].plus(requests_of(pod), -1)
    return free


def _obstacle(
    pod: dict[str, Any], node: dict[str, Any], requests: Resources, free: Resources
) -> str:
    """Why the pod can't go there, empty when it can."""
    tolerations = pod["spec"].get("tolerations") or ()
    cordon = {"key": _UNSCHEDULABLE, "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not _tolerated(cordon, tolerations):
        return "node(s) were unschedulable"
    for taint in node["spec"].get("taints") or ():
        if taint.get("effect") in _HARD_EFFECTS and not _tolerated(taint, tolerations):
            return "node(s) had untolerated taint(s)"
    if not _admitted(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    if requests.pods > free.pods:
        return "Too many pods"
    if requests.cpu_millis > free.cpu_millis:
        return "Insufficient cpu"
    if requests.memory_bytes > free.memory_bytes:
        return "Insufficient memory"
    for name, count in requests.extended:
        if count > free.device(name):
            return f"Insufficient {name}"
    return ""


def _tolerated(taint: dict[str, Any], tolerations: Any) -> bool:
    for each in tolerations:
        if each.get("effect") and each["effect"] != taint.get("effect"):
            continue
        if each.get("operator") == "Exists":
            if not each.get("key") or each["key"] == taint["key"]:
                return True
        elif each.get("key") == taint["key"] and (each.get("value") or "") == (
            taint.get("value") or ""
        ):
            return True
    return False


def _admitted(pod: dict[str, Any], node: dict[str, Any]) -> bool:
    labels = labels_of(node)
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    required = _node_affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_matches(t, node) for t in required.get("nodeSelectorTerms") or ())


def _node_affinity(pod: dict[str, Any]) -> dict[str, Any]:
    affinity: dict[str, Any] = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return affinity


def _term_matches(term: dict[str, Any], node: dict[str, Any]) -> bool:
    """All expressions and fields hold; an empty term matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    names = {"metadata.name": node["metadata"]["name"]}
    return all(_holds(e, labels_of(node)) for e in expressions) and all(
        _holds(e, names) for e in fields
    )


def _holds(expression: dict[str, Any], values: dict[str, str]) -> bool:
    value = values.get(expression["key"])
    listed: list[str] = expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in listed
        case "NotIn":
            return value not in listed
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if value is None or not value.lstrip("-").isdigit():
            return False
        case "Gt":
            return int(value or 0) > int(listed[0])
        case "Lt":
            return int(value or 0) < int(listed[0])
        case _:
            return False


def _score(pod: dict[str, Any], node: dict[str, Any], free: Resources) -> tuple[int, ...]:
    preferred = _node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    weight = sum(int(p["weight"]) for p in preferred if _term_matches(p["preference"], node))
    tolerations = pod["spec"].get("tolerations") or ()
    soft = [t for t in node["spec"].get("taints") or () if t.get("effect") == "PreferNoSchedule"]
    shunned = sum(not _tolerated(taint, tolerations) for taint in soft)
    devices = sum(count for _, count in free.extended)
    return (weight, -shunned, devices, free.cpu_millis, free.memory_bytes)


def _say_unschedulable(
    pod: dict[str, Any], reasons: Counter[str], nodes: int, writer: Writer, now_ms: int
) -> None:
    found = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    message = f"0/{nodes} nodes are available: {found or 'no nodes'}."
    made = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    before = condition(pod, "PodScheduled") or {}
    if any(before.get(key) != value for key, value in made.items()):
        _set_condition(pod, made, writer, now_ms)


def _set_condition(pod: dict[str, Any], made: dict[str, Any], writer: Writer, now_ms: int) -> None:
    status = pod.get("status") or {}
    others = [c for c in status.get("conditions") or () if c.get("type") != made["type"]]
    conditions = [*others, {**made, "lastTransitionTime": rfc3339(now_ms)}]
    patch = {"phase": status.get("phase") or "Pending", "conditions": conditions}
    writer.patch(POD.ref(pod), {"status": patch}, subresource="status")

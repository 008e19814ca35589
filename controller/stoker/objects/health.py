"""Health of one live object, by kstatus' rules in Argo CD's words.

In: a live manifest as the API server gave it. Out: a verdict with a reason. Called by
report for every object of a unit, and by apply where it waits for one. Pure: rules that
need the time (deadlines of a model start) are observe's, see `health_of_phase`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker.model.outcome import Health
from stoker.objects import health_kinds, health_workloads
from stoker.objects.health_fields import (
    HealthVerdict,
    condition,
    degraded,
    healthy,
    integer,
    mapping,
    progressing,
    text,
)

__all__ = ["ABSENT", "HealthVerdict", "health_of", "worst"]

ABSENT = HealthVerdict(Health.MISSING, "Missing", "")
"""The verdict on an object that is known to be absent. Not known is Health.UNKNOWN."""

Rule = Callable[[dict[str, Any]], HealthVerdict]

_RULES: dict[tuple[str, str], Rule] = {
    ("", "Pod"): health_workloads.pod,
    ("", "PersistentVolumeClaim"): health_kinds.claim,
    ("", "Service"): health_kinds.service,
    ("", "Namespace"): health_kinds.namespace,
    ("apps", "Deployment"): health_workloads.deployment,
    ("apps", "StatefulSet"): health_workloads.stateful_set,
    ("apps", "DaemonSet"): health_workloads.daemon_set,
    ("apps", "ReplicaSet"): health_workloads.replica_set,
    ("batch", "Job"): health_kinds.job,
    ("autoscaling", "HorizontalPodAutoscaler"): health_kinds.autoscaler,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): health_kinds.definition,
}


def health_of(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge one live object; a kind without rules and without a Ready condition is healthy.

    The order is kstatus': on its way out, not yet seen by its controller, Reconciling,
    Stalled, the rule of the kind, the Ready condition.
    """
    general = _general(manifest)
    if general is not None:
        return general
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    rule = _RULES.get((group, str(manifest.get("kind") or "")))
    return rule(manifest) if rule is not None else _by_ready(manifest)


_FROM_BEST = tuple(Health)


def worst(verdicts: tuple[HealthVerdict, ...]) -> HealthVerdict:
    """The worst verdict, the first of equals; an empty tuple is healthy."""
    found = healthy()
    for verdict in verdicts:
        if _FROM_BEST.index(verdict.status) > _FROM_BEST.index(found.status):
            found = verdict
    return found


def _general(manifest: dict[str, Any]) -> HealthVerdict | None:
    metadata = mapping(manifest, "metadata")
    if metadata.get("deletionTimestamp"):
        return progressing("Terminating", "waits for its finalizers")
    generation = integer(metadata, "generation", 0)
    observed = integer(mapping(manifest, "status"), "observedGeneration", generation)
    if observed < generation:
        return progressing("NotObserved", f"generation {generation}, controller saw {observed}")
    reconciling = condition(manifest, "Reconciling")
    if text(reconciling, "status") == "True":
        return progressing(text(reconciling, "reason", "Reconciling"), text(reconciling, "message"))
    stalled = condition(manifest, "Stalled")
    if text(stalled, "status") == "True":
        return degraded(text(stalled, "reason", "Stalled"), text(stalled, "message"))
    return None


def _by_ready(manifest: dict[str, Any]) -> HealthVerdict:
    ready = condition(manifest, "Ready")
    if text(ready, "status", "True") == "True":
        return healthy()
    return progressing(text(ready, "reason", "NotReady"), text(ready, "message"))

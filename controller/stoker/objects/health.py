"""Health of one live object, by kstatus' rules in Argo CD's words.

In: a live manifest as the API server gave it. Out: a verdict with a reason. Called by
report for every object of a unit, and by apply where it waits for one. Pure: rules that
need the time (deadlines of a model start) are observe's, see `health_of_phase`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker.model.outcome import Health
from stoker.objects import health_api, health_kinds, health_workloads
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
from stoker.objects.health_rules import HealthRules
from stoker.objects.kinds import is_builtin_group

__all__ = ["ABSENT", "HealthVerdict", "badness", "health_of", "not_settled", "worst"]

ABSENT = HealthVerdict(Health.MISSING, "Missing", "")
"""The verdict on an object that is known to be absent. Not known is Health.UNKNOWN."""

Rule = Callable[[dict[str, Any]], HealthVerdict]

_RULES: dict[tuple[str, str], Rule] = {
    ("", "Pod"): health_workloads.pod,
    ("", "ReplicationController"): health_workloads.replica_set,
    ("", "PersistentVolume"): health_kinds.volume,
    ("", "PersistentVolumeClaim"): health_kinds.claim,
    ("", "Service"): health_kinds.service,
    ("", "Namespace"): health_kinds.namespace,
    ("apps", "Deployment"): health_workloads.deployment,
    ("apps", "StatefulSet"): health_workloads.stateful_set,
    ("apps", "DaemonSet"): health_workloads.daemon_set,
    ("apps", "ReplicaSet"): health_workloads.replica_set,
    ("batch", "Job"): health_kinds.job,
    ("batch", "CronJob"): health_kinds.cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): health_api.autoscaler,
    ("policy", "PodDisruptionBudget"): health_api.budget,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): health_api.definition,
    ("apiregistration.k8s.io", "APIService"): health_api.api_service,
}

_MIGRATION_GROUP = "storagemigration.k8s.io"
"""The API server's own as well, but its kinds are not among those that we compare exactly."""


def health_of(manifest: dict[str, Any], rules: HealthRules | None = None) -> HealthVerdict:
    """Judge one live object.

    In this order: on its way out or not yet seen by its controller; a health file of the
    fleet; the rule of a built-in kind; a shipped health file; what kstatus says of any
    kind (Reconciling, Stalled, Ready). An object of a custom kind whose status has none of
    these is Unknown; one without a status has nothing to wait for.
    """
    early = not_settled(manifest)
    if early is not None:
        return early
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    kind = str(manifest.get("kind") or "")
    if rules is not None and (check := rules.own(group, kind)) is not None:
        return rules.judge(check, manifest)
    if (rule := _RULES.get((group, kind))) is not None:
        return _by_conditions(manifest) or rule(manifest)
    if is_builtin_group(group) or group == _MIGRATION_GROUP:
        # A kind of the API server's own without a rule is well as soon as it is there.
        return _by_conditions(manifest) or _by_ready(manifest) or healthy()
    if rules is not None and (check := rules.shipped(group, kind)) is not None:
        return rules.judge(check, manifest)
    return _by_conditions(manifest) or _by_ready(manifest) or _nothing_known(manifest)


_FROM_BEST = tuple(Health)


def badness(status: Health) -> int:
    """0 for the best status, more for each worse one."""
    return _FROM_BEST.index(status)


def worst(verdicts: tuple[HealthVerdict, ...]) -> HealthVerdict:
    """The worst verdict, the first of equals; an empty tuple is healthy."""
    found = healthy()
    for verdict in verdicts:
        if badness(verdict.status) > badness(found.status):
            found = verdict
    return found


def not_settled(manifest: dict[str, Any]) -> HealthVerdict | None:
    """The verdict on an object whose status is not about what it is now; None for others."""
    metadata = mapping(manifest, "metadata")
    if metadata.get("deletionTimestamp"):
        return progressing("Terminating", "waits for its finalizers")
    generation = integer(metadata, "generation", 0)
    observed = integer(mapping(manifest, "status"), "observedGeneration", generation)
    if observed < generation:
        return progressing("NotObserved", f"generation {generation}, controller saw {observed}")
    return None


def _by_conditions(manifest: dict[str, Any]) -> HealthVerdict | None:
    """What kstatus asks of every kind before its own rule."""
    reconciling = condition(manifest, "Reconciling")
    if text(reconciling, "status") == "True":
        return progressing(text(reconciling, "reason", "Reconciling"), text(reconciling, "message"))
    stalled = condition(manifest, "Stalled")
    if text(stalled, "status") == "True":
        return degraded(text(stalled, "reason", "Stalled"), text(stalled, "message"))
    return None


def _by_ready(manifest: dict[str, Any]) -> HealthVerdict | None:
    ready = condition(manifest, "Ready")
    if not ready:
        return None
    if text(ready, "status", "True") == "True":
        return healthy()
    return progressing(text(ready, "reason", "NotReady"), text(ready, "message"))


def _nothing_known(manifest: dict[str, Any]) -> HealthVerdict:
    """A custom kind that no rule speaks of: its status may say anything.

    One that has Reconciling or Stalled, neither of them True, is as kstatus wants it.
    """
    said = set(mapping(manifest, "status")) - {"observedGeneration"}
    if not said or condition(manifest, "Reconciling") or condition(manifest, "Stalled"):
        return healthy()
    return HealthVerdict(
        Health.UNKNOWN,
        "NoHealthCheck",
        "its status has no condition Ready; say in policies/health/ how to read it",
    )

"""Health of autoscalers, disruption budgets, CRDs and API services.

Called by health after its general rules.
"""

from __future__ import annotations

from typing import Any

from stoker.objects.health_fields import (
    HealthVerdict,
    condition,
    degraded,
    healthy,
    progressing,
    text,
)

__all__ = ["api_service", "autoscaler", "budget", "definition"]


def autoscaler(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a HorizontalPodAutoscaler: able to scale, and its metrics readable."""
    able = condition(manifest, "AbleToScale")
    active = condition(manifest, "ScalingActive")
    if not able and not active:
        return progressing("NotObserved", "has not looked at its target yet")
    if text(able, "status") == "False":
        return degraded(text(able, "reason", "UnableToScale"), text(able, "message"))
    if text(active, "status") != "False":
        return healthy()
    reason = text(active, "reason", "ScalingInactive")
    if reason == "ScalingDisabled":
        return healthy("ScalingDisabled", "its target stands at 0")
    return degraded(reason, text(active, "message"))


def definition(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a CustomResourceDefinition: names accepted and served."""
    names = condition(manifest, "NamesAccepted")
    if text(names, "status") == "False":
        return degraded(text(names, "reason", "NamesRefused"), text(names, "message"))
    if text(condition(manifest, "Established"), "status") == "True":
        return healthy("Established")
    return progressing("Installing", "not served yet")


def budget(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a PodDisruptionBudget: well unless its controller cannot count its pods.

    One that allows no disruption does what it is for; the pods' own workload says why.
    """
    allowed = condition(manifest, "DisruptionAllowed")
    if text(allowed, "reason") == "SyncFailed":
        return degraded("SyncFailed", text(allowed, "message"))
    return healthy()


def api_service(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge an APIService: available, which the API server finds out by asking."""
    available = condition(manifest, "Available")
    match text(available, "status"):
        case "True":
            return healthy("Available")
        case "False":
            return degraded(text(available, "reason", "Unavailable"), text(available, "message"))
        case _:
            return progressing("NotObserved", "nobody has asked it yet")

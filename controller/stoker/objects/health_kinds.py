"""Health of the other built-in kinds: Job, claim, Service, Namespace, autoscaler, CRD.

Called by health after its general rules.
"""

from __future__ import annotations

from typing import Any

from stoker.model.outcome import Health
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

__all__ = ["autoscaler", "claim", "definition", "job", "namespace", "service"]


def job(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a Job: done only when Complete (kstatus says so once it has started).

    A Job that its TTL removed is absent, and counts as done by apply (row 85).
    """
    failed = condition(manifest, "Failed")
    if text(failed, "status") == "True":
        return degraded(text(failed, "reason", "JobFailed"), text(failed, "message"))
    if text(condition(manifest, "Complete"), "status") == "True":
        return healthy("Completed")
    spec, status = mapping(manifest, "spec"), mapping(manifest, "status")
    if spec.get("suspend") is True:
        return HealthVerdict(Health.SUSPENDED, "Suspended", "spec.suspend is set")
    wanted = integer(spec, "completions", 1)
    return progressing("Running", f"{integer(status, 'succeeded', 0)} of {wanted} completions")


def claim(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a PersistentVolumeClaim by its phase."""
    match text(mapping(manifest, "status"), "phase"):
        case "Bound":
            return healthy("Bound")
        case "Lost":
            return degraded("Lost", "its volume is gone")
        case phase:
            return progressing(phase or "Pending", "not bound to a volume yet")


def service(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a Service: a load balancer needs its cluster address, as kstatus says.

    Its outer address is not waited for: a cluster may have nobody who gives one.
    """
    spec = mapping(manifest, "spec")
    if text(spec, "type") == "LoadBalancer" and not text(spec, "clusterIP"):
        return progressing("NoClusterIP", "no cluster address yet")
    return healthy()


def namespace(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a Namespace by its phase."""
    if text(mapping(manifest, "status"), "phase") == "Terminating":
        return progressing("Terminating", "its content is being deleted")
    return healthy("Active")


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

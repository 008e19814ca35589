"""Health of Jobs, volumes, Services and Namespaces.

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
    items,
    mapping,
    progressing,
    text,
)

__all__ = ["claim", "cron_job", "job", "namespace", "service", "volume"]


def job(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a Job: done only when Complete (kstatus says so once it has started).

    A Job that its TTL removed is absent, and counts as done by apply (row 85).
    """
    failed = condition(manifest, "Failed")
    if text(failed, "status") == "True":
        return degraded(text(failed, "reason", "JobFailed"), text(failed, "message"))
    if text(condition(manifest, "Complete"), "status") == "True":
        return healthy("Completed")
    failing = condition(manifest, "FailureTarget")
    if text(failing, "status") == "True":
        return degraded(text(failing, "reason", "JobFailing"), text(failing, "message"))
    spec, status = mapping(manifest, "spec"), mapping(manifest, "status")
    if spec.get("suspend") is True:
        return HealthVerdict(Health.SUSPENDED, "Suspended", "spec.suspend is set")
    wanted = integer(spec, "completions", 1)
    return progressing("Running", f"{integer(status, 'succeeded', 0)} of {wanted} completions")


def cron_job(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a CronJob: well, or suspended; its Jobs are not its health."""
    if mapping(manifest, "spec").get("suspend") is True:
        return HealthVerdict(Health.SUSPENDED, "Suspended", "spec.suspend is set")
    return healthy()


def volume(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a PersistentVolume by its phase; free and released ones are well."""
    status = mapping(manifest, "status")
    match text(status, "phase"):
        case "Failed":
            return degraded(text(status, "reason", "Failed"), text(status, "message"))
        case "Available" | "Bound" | "Released" as phase:
            return healthy(phase)
        case phase:
            return progressing(phase or "Pending", "not made yet")


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

    Its outer address is told of and not waited for: a cluster may have nobody who gives
    one. A port that the balancer refuses is wrong for good.
    """
    spec = mapping(manifest, "spec")
    if text(spec, "type") != "LoadBalancer":
        return healthy()
    if not text(spec, "clusterIP"):
        return progressing("NoClusterIP", "no cluster address yet")
    refused = condition(manifest, "LoadBalancerPortsError")
    if text(refused, "status") == "True":
        return degraded(text(refused, "reason", "PortsRefused"), text(refused, "message"))
    outer = items(mapping(mapping(manifest, "status"), "loadBalancer"), "ingress")
    for port in (port for entry in outer for port in items(entry, "ports")):
        if text(port, "error"):
            return degraded("PortRefused", f"port {port.get('port')}: {text(port, 'error')}")
    if not outer:
        return healthy("NoOuterAddress", "nobody has given the load balancer an address yet")
    return healthy()


def namespace(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a Namespace by its phase."""
    if text(mapping(manifest, "status"), "phase") == "Terminating":
        return progressing("Terminating", "its content is being deleted")
    return healthy("Active")

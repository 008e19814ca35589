"""Endpoints of the in-memory cluster, simplified: one EndpointSlice a Service.

In: a view. Out: a slice `<service>-sim` with the addresses of the selected pods, Ready or not,
as the API server would list them: sorted by address, dying pods not ready but still serving.
"""

from __future__ import annotations

from typing import Any

from stoker.model.ports import Cluster
from stoker.sim.deployments import MANAGER
from stoker.sim.pods import is_over, is_ready
from stoker.sim.view import (
    ENDPOINT_SLICE,
    POD,
    SERVICE,
    View,
    Writer,
    is_dying,
    labels_of,
    owner_reference,
    uid_of,
)

__all__ = ["SERVICE_NAME_LABEL", "endpoints"]

SERVICE_NAME_LABEL = "kubernetes.io/service-name"


def endpoints(view: View, cluster: Cluster, _now_ms: int) -> int:
    """One round over all Services with a selector; gives the number of writes."""
    writer = Writer(cluster, MANAGER)
    slices = {ENDPOINT_SLICE.ref(s): s for s in view.of(ENDPOINT_SLICE)}
    for service in view.of(SERVICE):
        selector = (service.get("spec") or {}).get("selector")
        if not selector or is_dying(service):
            continue
        made = _slice(service, selector, view)
        ref = ENDPOINT_SLICE.ref(made)
        before = slices.get(ref)
        if before is None:
            writer.create(made)
        elif _told(before) != _told(made):
            body = {"metadata": {"uid": uid_of(before)}}
            writer.patch(ref, {**body, "endpoints": made["endpoints"], "ports": made["ports"]})
    return writer.writes


def _told(body: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Addresses and ports; the API server keeps no empty list."""
    return body.get("endpoints") or [], body.get("ports") or []


def _slice(service: dict[str, Any], selector: dict[str, str], view: View) -> dict[str, Any]:
    meta = service["metadata"]
    found = []
    for pod in view.of(POD, meta["namespace"]):
        address = (pod.get("status") or {}).get("podIP")
        if address and not is_over(pod) and selector.items() <= labels_of(pod).items():
            found.append((address, _endpoint(pod, address)))
    ports = [
        {
            "name": port.get("name") or "",
            "port": _target(port),
            "protocol": port.get("protocol") or "TCP",
        }
        for port in service["spec"].get("ports") or ()
    ]
    return {
        "apiVersion": ENDPOINT_SLICE.api_version,
        "kind": ENDPOINT_SLICE.kind,
        "metadata": {
            "name": f"{meta['name']}-sim",
            "namespace": meta["namespace"],
            "labels": {SERVICE_NAME_LABEL: meta["name"]},
            "ownerReferences": [owner_reference(SERVICE, service)],
        },
        "addressType": "IPv4",
        "endpoints": [endpoint for _, endpoint in sorted(found, key=lambda pair: pair[0])],
        "ports": ports,
    }


def _endpoint(pod: dict[str, Any], address: str) -> dict[str, Any]:
    ready, dying = is_ready(pod), is_dying(pod)
    meta = pod["metadata"]
    return {
        "addresses": [address],
        "conditions": {"ready": ready and not dying, "serving": ready, "terminating": dying},
        "nodeName": pod["spec"].get("nodeName"),
        "targetRef": {
            "kind": "Pod",
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": uid_of(pod),
        },
    }


def _target(port: dict[str, Any]) -> int:
    """The port on the pod; a named one stands for the Service's own number."""
    target = port.get("targetPort")
    return target if isinstance(target, int) else int(port["port"])

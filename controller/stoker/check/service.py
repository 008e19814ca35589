"""What must hold for the pods of a ModelService, whatever template and podTemplate made them.

Called by check for the Deployments of each ModelService.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stoker.errors import Finding, Severity
from stoker.model.cache import CacheType
from stoker.model.fleet import ModelService, Unit
from stoker.model.manifest import Manifest
from stoker.objects.kinds import pod_specs_of

__all__ = ["check_service"]

MAIN_CONTAINER = "engine"
DEFAULT_GRACE_SECONDS = 30
"""What the API server sets where a pod names no grace period."""
LEAST_GRACE_SECONDS = 1
"""With 0 the kubelet kills without telling the process: a notice whose deadline is past, an
eviction and our own deletes would all end answers in the middle (design 4)."""
_DEV_MODE = "VLLM_SERVER_DEV_MODE"


def check_service(unit: Unit, spec: ModelService, manifests: tuple[Manifest, ...]) -> list[Finding]:
    """Findings about the pod template; once, however many Deployments share it."""
    findings: list[Finding] = []
    for manifest in manifests:
        if not manifest.frozen_template:
            continue
        for pod in pod_specs_of(manifest.body, manifest.ref.group, manifest.ref.kind):
            found = _pod_findings(unit, spec, pod)
            findings.extend(finding for finding in found if finding not in findings)
    return findings


def _pod_findings(unit: Unit, spec: ModelService, pod: Mapping[str, Any]) -> Iterator[Finding]:
    containers = [c for c in pod.get("containers") or () if isinstance(c, dict)]
    engine = next((c for c in containers if c.get("name") == MAIN_CONTAINER), None)
    if engine is None:
        message = f"the pod has no container called {MAIN_CONTAINER}"
        location = unit.line_of("spec.podTemplate")
        yield Finding(location, "engine-container-missing", message, field="spec.podTemplate")
    else:
        yield from _dev_mode(unit, engine)
        yield from _engine_gpus(unit, spec, engine)
    yield from _grace(unit, spec, pod)
    init_containers = [c for c in pod.get("initContainers") or () if isinstance(c, dict)]
    yield from _devices(unit, [*init_containers, *containers])
    yield from _disk(unit, spec, pod, init_containers)


def _grace(unit: Unit, spec: ModelService, pod: Mapping[str, Any]) -> Iterator[Finding]:
    """A pod that is killed before its requests are done loses them."""
    grace = pod.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    drain = spec.drain
    needed_ms = drain.endpoint_sync_ms + drain.max_ms + drain.shutdown_ms
    if isinstance(grace, int) and max(needed_ms, LEAST_GRACE_SECONDS * 1000) <= grace * 1000:
        return
    message = (
        f"drain.endpointSync + max + shutdown take {-(-needed_ms // 1000)} s, "
        f"and the pod is killed after {grace} s"
    )
    if not needed_ms:
        message = f"the pod is killed after {grace} s, before its engine hears of it"
    field = "spec.podTemplate.spec.terminationGracePeriodSeconds"
    hint = "raise terminationGracePeriodSeconds or shorten drain"
    yield Finding(unit.line_of(field), "drain-exceeds-grace", message, field=field, hint=hint)


def _disk(
    unit: Unit,
    spec: ModelService,
    pod: Mapping[str, Any],
    init_containers: Iterable[Mapping[str, Any]],
) -> Iterator[Finding]:
    """A folder that nobody looks at before the engine writes there may fill the node's disk."""
    if spec.cache.type is not CacheType.HOST_PATH:
        return
    folders = {
        volume.get("name")
        for volume in pod.get("volumes") or ()
        if isinstance(volume, dict)
        and (volume.get("hostPath") or {}).get("path") == spec.cache.path
    }
    looked_at = {
        mount.get("name")
        for container in init_containers
        for mount in container.get("volumeMounts") or ()
    }
    if not folders - looked_at:
        return
    message = (
        f"nobody looks whether a disk is mounted at {spec.cache.path} before weights come there: "
        "without one they fill the node's root disk"
    )
    hint = "render.template vllm/v2 looks, and so does cache.rootDisk; each is a new rev"
    location = unit.line_of("spec.cache")
    yield Finding(location, "root-disk-unchecked", message, "spec.cache", hint, Severity.WARNING)


def _devices(unit: Unit, containers: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Devices can't be overcommitted: the API server refuses a request that is not the limit."""
    for container in containers:
        resources = container.get("resources") or {}
        requests = resources.get("requests") or {}
        limits = resources.get("limits") or {}
        for name in sorted(key for key in {*requests, *limits} if "/" in key):
            asked, allowed = requests.get(name, limits.get(name)), limits.get(name)
            if str(asked) == str(allowed):
                continue
            message = (
                f"container {container.get('name')} requests {asked} {name} "
                f"with a limit of {allowed}; the two must be equal"
            )
            location = unit.line_of("spec.podTemplate")
            yield Finding(location, "device-limit-differs", message, field="spec.podTemplate")


def _engine_gpus(unit: Unit, spec: ModelService, engine: Mapping[str, Any]) -> Iterator[Finding]:
    """Placement counts what the pod asks for, the engine uses what gpu.count says."""
    limits = (engine.get("resources") or {}).get("limits") or {}
    found = limits.get(spec.gpu_resource, 0)
    if str(found) == str(spec.gpu_count):
        return
    message = (
        f"gpu.count is {spec.gpu_count}, but the engine's limit is {found} {spec.gpu_resource}"
    )
    yield Finding(unit.line_of("spec.gpu.count"), "gpu-count-differs", message, field="spec.gpu")


def _dev_mode(unit: Unit, engine: Mapping[str, Any]) -> Iterator[Finding]:
    """Development endpoints (sleep, weights, RPC) would be served to everyone beside the API."""
    for variable in engine.get("env") or ():
        if not isinstance(variable, dict) or variable.get("name") != _DEV_MODE:
            continue
        if "valueFrom" in variable or str(variable.get("value", "0")) not in {"", "0"}:
            message = f"{_DEV_MODE} opens endpoints that put engines to sleep or run code"
            location = unit.line_of("spec.podTemplate")
            yield Finding(location, "dev-mode-exposed", message, field="spec.podTemplate")

"""The Job that fetches image and weights to one node ahead of a start; pure.

The neutral workload of a service and one decided prefetch come in, the Job goes out. Its pod
is that of the service with the engine's arguments, GPUs, probes and side containers left out:
image, environment, volumes and tolerations are what a replica would have. Called by render.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.cache import CacheType, RootDisk
from stoker.model.fleet import ModelService
from stoker.model.plan import Placement
from stoker.model.prefetch import Prefetch, weights_ahead
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects import names
from stoker.render.bake import filled, object_labels
from stoker.render.fetch_program import FETCH_PROGRAM, IMAGE_PROGRAM
from stoker.render.pod_shape import MAIN_CONTAINER

__all__ = ["job_ref", "prefetch_job"]

_RETRIES = 3
_LONGEST_SECONDS = 6 * 3600
"""A fetch that takes longer than this has hung."""
_REQUESTS = {"cpu": "250m", "memory": "512Mi"}
_NO_GPUS = (
    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
    {"name": "CUDA_VISIBLE_DEVICES", "value": ""},
)
"""Engine images ask the NVIDIA runtime for all GPUs of the node; this pod must see none."""
_POD_FIELDS = (
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "imagePullSecrets",
    "nodeSelector",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccountName",
    "tolerations",
)
_CONTAINER_FIELDS = ("imagePullPolicy", "securityContext")
_FETCH = ["python3", "-c", FETCH_PROGRAM]
"""How the program is run, by a Job and by the init container of the shipped templates."""


def job_ref(namespace: str, name: str) -> ObjectRef:
    """The Job of that name."""
    return ObjectRef("batch", "Job", namespace, name)


def prefetch_job(
    workload: Mapping[str, Any],
    spec: ModelService,
    prefetch: Prefetch,
    unit: UnitRef,
    fleet: str,
    source_path: str,
) -> dict[str, Any]:
    """The Job, without owner mark. `workload` is the neutral Deployment and is not changed."""
    place = Placement(prefetch.name, "", prefetch.node, prefetch.node_uid, "", 0)
    body = filled(workload, place)
    marks = {
        names.NODE: prefetch.node,
        names.NODE_UID: prefetch.node_uid,
        names.SOURCE: source_path,
    }
    weights = weights_ahead(spec)
    if weights is not None:
        marks[names.PREFETCH_MODEL] = "@".join(weights)
    labels = {
        **object_labels(fleet, unit, {}),
        names.PREFETCH_LABEL: unit.name,
    }
    pod_labels = {names.FLEET_LABEL: fleet, names.PREFETCH_LABEL: unit.name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": prefetch.name,
            "namespace": body["metadata"].get("namespace") or unit.namespace,
            "labels": labels,
            "annotations": marks,
        },
        "spec": {
            "backoffLimit": _RETRIES,
            "activeDeadlineSeconds": _LONGEST_SECONDS,
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": _pod(body["spec"]["template"]["spec"], spec, prefetch.node),
            },
        },
    }


def _pod(pod: Mapping[str, Any], spec: ModelService, node: str) -> dict[str, Any]:
    engine = next(each for each in pod["containers"] if each["name"] == MAIN_CONTAINER)
    container: dict[str, Any] = {
        "name": "fetch",
        "image": engine["image"],
        **{name: engine[name] for name in _CONTAINER_FIELDS if name in engine},
        "command": ["python3", "-c", IMAGE_PROGRAM],
        "env": list(_NO_GPUS),
        "resources": {"requests": dict(_REQUESTS)},
    }
    made = {
        **{name: pod[name] for name in _POD_FIELDS if name in pod},
        "restartPolicy": "Never",
        "affinity": _only_on(node),
        "containers": [container],
    }
    if weights_ahead(spec) is not None:
        mounts = engine.get("volumeMounts") or []
        mounted = {each.get("name") for each in mounts}
        volumes = [each for each in pod.get("volumes") or [] if each["name"] in mounted]
        if spec.cache.type is CacheType.IMAGE:
            volumes = [each for each in volumes if "image" in each]
            shown = {each["name"] for each in volumes}
            mounts = [each for each in mounts if each.get("name") in shown]
        else:
            container["command"] = [*_FETCH, *_arguments(spec, pod)]
            hidden = {each["name"] for each in _NO_GPUS}
            own = [each for each in engine.get("env") or [] if each.get("name") not in hidden]
            container["env"] = [*own, *_NO_GPUS]
            container |= {name: engine[name] for name in ("envFrom",) if name in engine}
        container["volumeMounts"], made["volumes"] = mounts, volumes
    return made


def _arguments(spec: ModelService, pod: Mapping[str, Any]) -> list[str]:
    """What the replica's own init container is told, where it has one, so that both refuse the
    same disk; else what the file says.
    """
    for each in pod.get("initContainers") or ():
        command = list(each.get("command") or ())
        if command[: len(_FETCH)] == _FETCH:
            return command[len(_FETCH) :]
    cache = spec.cache
    said = RootDisk.REFUSE if cache.refuses_root_disk else RootDisk.ALLOW
    most = "" if cache.max_size_bytes is None else str(cache.max_size_bytes)
    return [spec.model_uri.removeprefix("hf://"), spec.model_revision, str(said), most]


def _only_on(node: str) -> dict[str, Any]:
    """That node and no other, by its name: the label kubernetes.io/hostname may differ."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

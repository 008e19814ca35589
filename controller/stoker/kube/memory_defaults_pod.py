"""Defaults of pods and pod templates, and the two functions all defaults are written with.

In: specs as Go types hold them. Out: specs with defaults, sharing what did not change. Used
by memory_defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Json", "each", "fill", "pod_defaults", "put", "template_defaults"]

Json = dict[str, Any]


def fill(target: Json, **values: Any) -> Json:
    """The dict with those keys it lacks; the same one if it lacks none."""
    missing = {key: value for key, value in values.items() if target.get(key) is None}
    return {**target, **missing} if missing else target


def put(target: Json, key: str, value: Any) -> Json:
    """The dict with that value; the same one if it already holds that very object."""
    return target if target.get(key) is value else {**target, key: value}


def each(target: Json, key: str, change: Callable[[Json], Json]) -> Json:
    """The dict with every item of a list of dicts changed; nothing where there is no list."""
    items = target.get(key)
    if not items:
        return target
    changed = [change(item) for item in items]
    same = all(a is b for a, b in zip(items, changed, strict=True))
    return target if same else {**target, key: changed}


def template_defaults(template: Json) -> Json:
    """Defaults of a pod template."""
    return put(template, "spec", _spec(template.get("spec") or {}))


def pod_defaults(spec: Json) -> Json:
    """Defaults of a pod itself: a template's, requests from limits, host ports."""
    spec = fill(_spec(spec), enableServiceLinks=True)
    for key in ("containers", "initContainers"):
        spec = each(spec, key, _requests_from_limits)
        if spec.get("hostNetwork"):
            spec = each(spec, key, lambda c: each(c, "ports", _host_port))
    return spec


def _host_port(port: Json) -> Json:
    return fill(port, hostPort=port.get("containerPort", 0))


def _requests_from_limits(container: Json) -> Json:
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return container
    requests = resources.get("requests") or {}
    merged = {**limits, **requests}
    if merged == requests:
        return container
    return put(container, "resources", {**resources, "requests": merged})


def _spec(spec: Json) -> Json:
    for key in ("containers", "initContainers", "ephemeralContainers"):
        spec = each(spec, key, _container)
    return fill(
        each(spec, "volumes", _volume),
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )


def _container(container: Json) -> Json:
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(key)
        if probe is not None:
            container = put(container, key, _probe(probe))
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for key in ("postStart", "preStop"):
            if lifecycle.get(key):
                lifecycle = put(lifecycle, key, _action(lifecycle[key]))
        container = put(container, "lifecycle", lifecycle)
    container = each(container, "ports", lambda port: fill(port, protocol="TCP"))
    container = each(container, "env", _variable)
    return fill(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy=_pull_policy(str(container.get("image") or "")),
    )


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _probe(probe: Json) -> Json:
    return fill(
        _action(probe),
        timeoutSeconds=1,
        periodSeconds=10,
        successThreshold=1,
        failureThreshold=3,
    )


def _action(action: Json) -> Json:
    if action.get("httpGet") is not None:
        action = put(action, "httpGet", fill(action["httpGet"], path="/", scheme="HTTP"))
    if action.get("grpc") is not None:
        action = put(action, "grpc", fill(action["grpc"], service=""))
    return action


def _variable(variable: Json) -> Json:
    source = variable.get("valueFrom") or {}
    if source.get("fieldRef") is None:
        return variable
    return put(
        variable, "valueFrom", put(source, "fieldRef", fill(source["fieldRef"], apiVersion="v1"))
    )


def _volume(volume: Json) -> Json:
    if len(volume) == 1:
        return {**volume, "emptyDir": {}}
    for key in ("secret", "configMap", "projected", "downwardAPI"):
        source = volume.get(key)
        if source is not None:
            source = each(source, "items", _downward_item)
            source = each(source, "sources", _projected_source)
            volume = put(volume, key, fill(source, defaultMode=420))
    if volume.get("hostPath") is not None:
        volume = put(volume, "hostPath", fill(volume["hostPath"], type=""))
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim:
        spec = fill(claim.get("spec") or {}, volumeMode="Filesystem")
        volume = put(volume, "ephemeral", {"volumeClaimTemplate": put(claim, "spec", spec)})
    return volume


def _downward_item(item: Json) -> Json:
    if item.get("fieldRef") is None:
        return item
    return put(item, "fieldRef", fill(item["fieldRef"], apiVersion="v1"))


def _projected_source(source: Json) -> Json:
    token = source.get("serviceAccountToken")
    if token is not None:
        source = put(source, "serviceAccountToken", fill(token, expirationSeconds=3600))
    downward = source.get("downwardAPI")
    if downward is not None:
        source = put(source, "downwardAPI", each(downward, "items", _downward_item))
    return source

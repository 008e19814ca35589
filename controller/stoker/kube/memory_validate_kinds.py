"""What the server refuses about the kinds Stoker meets, on create and on update.

In: manifests with defaults. Out: FieldErrors in the server's words, empty when it would
accept. Only the rules that ssa-facts, the demo and the stories run into. Used by memory_write.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any, Final

from stoker.kube.memory_errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    unsupported,
)
from stoker.kube.memory_validate import label_errors
from stoker.kube.memory_validate_pod import template_errors

__all__ = ["kind_errors", "selector_matches"]

Json = dict[str, Any]

MAX_CONFIG_BYTES: Final = 1_048_576
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PERCENT: Final = re.compile(r"[0-9]+%")


def kind_errors(kind: str, manifest: Json) -> list[FieldError]:
    """Everything wrong with a built-in kind's own fields."""
    check = _BY_KIND.get(kind)
    return check(manifest) if check else []


def selector_matches(selector: Json | None, labels: Json | None) -> bool:
    """Whether a label selector matches labels; an empty one matches everything."""
    labels = labels or {}
    selector = selector or {}
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for term in selector.get("matchExpressions") or ():
        value = labels.get(term["key"])
        values = term.get("values") or ()
        match term["operator"]:
            case "In" if value is None or value not in values:
                return False
            case "NotIn" if value is not None and value in values:
                return False
            case "Exists" if value is None:
                return False
            case "DoesNotExist" if value is not None:
                return False
    return True


def _workload(kind: str) -> Callable[[Json], list[FieldError]]:
    def check(manifest: Json) -> list[FieldError]:
        spec = manifest["spec"]
        errors = _at_least_zero(spec, "spec", ("replicas", "minReadySeconds"))
        selector = spec.get("selector")
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if selector is None:
            errors.append(required("spec.selector"))
        elif not selector:
            text = f"empty selector is invalid for {kind}"
            errors.append(invalid_value("spec.selector", selector, text))
        if selector is None or not selector_matches(selector, labels):
            text = "`selector` does not match template `labels`"
            errors.append(invalid_value("spec.template.metadata.labels", labels, text))
        if kind == "deployment":
            errors += _strategy(spec)
        elif kind == "statefulset":
            strategy = spec["updateStrategy"]
            rolling = strategy.get("rollingUpdate")
            if strategy["type"] != "RollingUpdate" and rolling is not None:
                text = "only allowed for updateStrategy 'RollingUpdate'"
                path = "spec.updateStrategy.rollingUpdate"
                errors.append(invalid_value(path, rolling, text))
        return errors + template_errors(spec["template"], "spec.template", always=True)

    return check


def _strategy(spec: Json) -> list[FieldError]:
    strategy = spec["strategy"]
    path = "spec.strategy"
    rolling = strategy.get("rollingUpdate")
    errors: list[FieldError] = []
    if strategy["type"] == "Recreate":
        if rolling is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden_field(f"{path}.rollingUpdate", text))
    elif strategy["type"] != "RollingUpdate":
        errors.append(unsupported(f"{path}.type", strategy["type"], ("Recreate", "RollingUpdate")))
    elif rolling and _is_zero(rolling["maxUnavailable"]) and _is_zero(rolling["maxSurge"]):
        text = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid_value(f"{path}.rollingUpdate.maxUnavailable", 0, text))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        text = "must be greater than minReadySeconds"
        errors.append(invalid_value("spec.progressDeadlineSeconds", deadline, text))
    return errors


def _is_zero(value: Any) -> bool:
    return value in {0, "0%", "0"}


def _at_least_zero(spec: Json, path: str, keys: tuple[str, ...]) -> list[FieldError]:
    text = "must be greater than or equal to 0"
    return [
        invalid_value(f"{path}.{key}", spec[key], text)
        for key in keys
        if isinstance(spec.get(key), int) and spec[key] < 0
    ]


def _pod(manifest: Json) -> list[FieldError]:
    return template_errors(manifest, "", always=False)


def _job(manifest: Json) -> list[FieldError]:
    spec = manifest["spec"]
    errors = _at_least_zero(spec, "spec", ("parallelism", "completions", "backoffLimit"))
    return errors + template_errors(spec["template"], "spec.template", always=False)


def _service(manifest: Json) -> list[FieldError]:
    spec = manifest["spec"]
    ports = spec.get("ports") or []
    errors: list[FieldError] = []
    types = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    if spec["type"] not in types:
        return [unsupported("spec.type", spec["type"], types)]
    if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        errors.append(required("spec.ports"))
    text = "must be between 1 and 65535, inclusive"
    seen: set[tuple[Any, Any]] = set()
    names: set[Any] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name")
        if not name and len(ports) > 1:
            errors.append(required(f"{path}.name"))
        elif name and name in names:
            text = f'Duplicate value: "{name}"'
            errors.append(FieldError("FieldValueDuplicate", f"{path}.name", text))
        names.add(name)
        for key in ("port", "targetPort"):
            if isinstance(port[key], int) and not 1 <= port[key] <= 65535:
                errors.append(invalid_value(f"{path}.{key}", port[key], text))
        number = (port["port"], port["protocol"])
        if number in seen:
            shown = json.dumps({"port": port["port"], "protocol": port["protocol"]})
            errors.append(FieldError("FieldValueDuplicate", path, f"Duplicate value: {shown}"))
        seen.add(number)
    if spec.get("selector") and len(spec.get("ipFamilies") or ()) > 1:
        text = "this cluster is not configured for dual-stack services"
        errors.append(invalid_value("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text))
        text = "not configured on this cluster"
        errors.append(invalid_value("spec.ipFamilies[1]", spec["ipFamilies"][1], text))
    return errors + label_errors(spec.get("selector"), "spec.selector")


def _config_map(manifest: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for field in ("data", "binaryData"):
        for key, value in sorted((manifest.get(field) or {}).items()):
            size += len(key.encode()) + len(value.encode())
            if not _CONFIG_KEY.fullmatch(key):
                text = (
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                    " (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation"
                    " is '[-._a-zA-Z0-9]+')"
                )
                errors.append(invalid_value(f"{field}[{key}]", key, text))
    if size > MAX_CONFIG_BYTES:
        errors.append(too_long("[]", f"may not be more than {MAX_CONFIG_BYTES} bytes"))
    return errors


def _budget(manifest: Json) -> list[FieldError]:
    spec = manifest.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid_value("spec", spec, text))
    for key in ("minAvailable", "maxUnavailable"):
        value = spec.get(key)
        path = f"spec.{key}"
        if isinstance(value, int) and value < 0:
            errors.append(invalid_value(path, value, "must be greater than or equal to 0"))
        elif isinstance(value, str) and not _PERCENT.fullmatch(value):
            text = (
                "a valid percent string must be a numeric string followed by an ending '%'"
                " (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            )
            errors.append(invalid_value(path, value, text))
        elif isinstance(value, str) and int(value[:-1]) > 100:
            errors.append(invalid_value(path, value, "must not be greater than 100%"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    allowed = ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in allowed:
        errors.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, allowed))
    return errors


def _autoscaler(manifest: Json) -> list[FieldError]:
    spec = manifest["spec"]
    target = spec["scaleTargetRef"]
    errors: list[FieldError] = []
    for key in ("kind", "name"):
        if not target.get(key):
            errors.append(required(f"spec.scaleTargetRef.{key}"))
    if not target.get("apiVersion"):
        path = "spec.scaleTargetRef.apiVersion"
        errors.append(invalid_value(path, "", "apiVersion must specify API group"))
    most, least = spec["maxReplicas"], spec["minReplicas"]
    if most < least:
        text = "must be greater than or equal to `minReplicas`"
        errors.append(invalid_value("spec.maxReplicas", most, text))
    if most == 0:
        errors.append(required("spec.maxReplicas"))
    return errors


_LOOPBACK: Final = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
_LINK_LOCAL: Final = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"


def _endpoint_slice(manifest: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    kinds = ("FQDN", "IPv4", "IPv6")
    kind = manifest.get("addressType") or ""
    if kind not in kinds:
        errors.append(unsupported("addressType", kind, kinds) if kind else required("addressType"))
    for number, endpoint in enumerate(manifest.get("endpoints") or []):
        for index, address in enumerate(endpoint.get("addresses") or []):
            path = f"endpoints[{number}].addresses[{index}]"
            if kind == "FQDN":
                continue
            try:
                parsed = ipaddress.ip_address(address)
            except ValueError:
                text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
                errors.append(invalid_value(path, address, text))
                continue
            if parsed.is_loopback:
                errors.append(invalid_value(path, address, _LOOPBACK))
            elif parsed.is_link_local:
                errors.append(invalid_value(path, address, _LINK_LOCAL))
    return errors


def _crd(manifest: Json) -> list[FieldError]:
    spec = manifest["spec"]
    names = spec["names"]
    name = manifest["metadata"].get("name", "")
    errors: list[FieldError] = []
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        text = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid_value("metadata.name", name, text))
    if not spec.get("scope"):
        errors.append(required("spec.scope"))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", spec.get("versions"), text))
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            errors.append(required(f"spec.names.{key}"))
    return errors


def _claim(manifest: Json) -> list[FieldError]:
    spec = manifest["spec"]
    errors: list[FieldError] = []
    if not spec.get("accessModes"):
        text = "at least 1 access mode is required"
        errors.append(required("spec.accessModes", text))
    if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        errors.append(required("spec.resources[storage]"))
    return errors


def _role(manifest: Json) -> list[FieldError]:
    return [
        required(f"rules[{index}].verbs")
        for index, rule in enumerate(manifest.get("rules") or [])
        if not rule.get("verbs")
    ]


_BY_KIND: Final[dict[str, Callable[[Json], list[FieldError]]]] = {
    "Deployment": _workload("deployment"),
    "ReplicaSet": _workload("replicaset"),
    "StatefulSet": _workload("statefulset"),
    "DaemonSet": _workload("daemonset"),
    "Job": _job,
    "Pod": _pod,
    "Service": _service,
    "ConfigMap": _config_map,
    "Secret": _config_map,
    "PodDisruptionBudget": _budget,
    "HorizontalPodAutoscaler": _autoscaler,
    "EndpointSlice": _endpoint_slice,
    "CustomResourceDefinition": _crd,
    "PersistentVolumeClaim": _claim,
    "Role": _role,
    "ClusterRole": _role,
}

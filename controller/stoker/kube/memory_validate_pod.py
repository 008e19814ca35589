"""What the server refuses about pods and pod templates.

In: pods or templates with defaults. Out: FieldErrors in the server's words. Used by
memory_validate_kinds.
"""

from __future__ import annotations

from typing import Any

from stoker.kube.memory_errors import FieldError, invalid_value, required, unsupported
from stoker.kube.memory_validate import DNS_LABEL_TEXT, is_dns_label, label_errors
from stoker.objects.quantity import parse_quantity

__all__ = ["template_errors"]

Json = dict[str, Any]


def template_errors(template: Json, path: str, *, always: bool) -> list[FieldError]:
    """Errors of a pod (path empty) or template; `always` requires restartPolicy Always."""
    dot = f"{path}." if path else ""
    metadata = template.get("metadata") or {}
    errors = label_errors(metadata.get("labels"), f"{dot}metadata.labels") if path else []
    spec = template["spec"]
    base = f"{dot}spec"
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or []):
        at = f"{base}.volumes[{index}].name"
        errors += _unique_name(volume.get("name", ""), at, volumes)
    containers = spec.get("containers") or []
    if not containers:
        errors.append(required(f"{base}.containers"))
    names: set[str] = set()
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or []):
            errors += _container(container, f"{base}.{kind}[{index}]", names, volumes)
    policies = ("Always", "OnFailure", "Never")
    policy = spec.get("restartPolicy", "Always")
    if policy not in policies:
        errors.append(unsupported(f"{base}.restartPolicy", policy, policies))
    if always and policy != "Always":
        errors.append(unsupported(f"{base}.restartPolicy", policy, ("Always",)))
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        text = "must be greater than or equal to 0"
        errors.append(invalid_value(f"{base}.terminationGracePeriodSeconds", grace, text))
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    errors += _node_affinity(affinity, f"{base}.affinity.nodeAffinity")
    for index, toleration in enumerate(spec.get("tolerations") or []):
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            text = "value must be empty when `operator` is 'Exists'"
            at = f"{base}.tolerations[{index}].operator"
            errors.append(invalid_value(at, toleration["value"], text))
    return errors


def _unique_name(name: str, path: str, seen: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    if not name:
        errors.append(required(path))
    elif not is_dns_label(name):
        errors.append(invalid_value(path, name, DNS_LABEL_TEXT))
    if name in seen:
        errors.append(FieldError("FieldValueDuplicate", path, f'Duplicate value: "{name}"'))
    seen.add(name)
    return errors


def _container(container: Json, path: str, names: set[str], volumes: set[str]) -> list[FieldError]:
    errors = _unique_name(container.get("name", ""), f"{path}.name", names)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    ports: set[str] = set()
    for index, port in enumerate(container.get("ports") or []):
        name = port.get("name")
        if name and name in ports:
            at = f"{path}.ports[{index}].name"
            errors.append(FieldError("FieldValueDuplicate", at, f'Duplicate value: "{name}"'))
        ports.add(name)
        number = port.get("containerPort", 0)
        if not 1 <= number <= 65535:
            text = "must be between 1 and 65535, inclusive"
            errors.append(invalid_value(f"{path}.ports[{index}].containerPort", number, text))
    for index, variable in enumerate(container.get("env") or []):
        at = f"{path}.env[{index}]"
        if not variable.get("name"):
            errors.append(required(f"{at}.name"))
        if variable.get("value") and variable.get("valueFrom") is not None:
            text = "may not be specified when `value` is not empty"
            errors.append(invalid_value(f"{at}.valueFrom", "", text))
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            at = f"{path}.volumeMounts[{index}].name"
            text = f'Not found: "{mount.get("name")}"'
            errors.append(FieldError("FieldValueNotFound", at, text))
    return errors + _resources(container.get("resources") or {}, f"{path}.resources")


def _resources(resources: Json, path: str) -> list[FieldError]:
    limits = resources.get("limits") or {}
    errors: list[FieldError] = []
    for name, value in sorted((resources.get("requests") or {}).items()):
        extended = "/" in name and not name.startswith("kubernetes.io/")
        limit = limits.get(name)
        if limit is None:
            if extended:
                text = "Limit must be set for non overcommitable resources"
                errors.append(required(f"{path}.limits", text))
        elif extended and parse_quantity(value) != parse_quantity(limit):
            text = f"must be equal to {name} limit of {limit}"
            errors.append(invalid_value(f"{path}.requests", value, text))
        elif parse_quantity(value) > parse_quantity(limit):
            text = f"must be less than or equal to {name} limit of {limit}"
            errors.append(invalid_value(f"{path}.requests", value, text))
    return errors


def _node_affinity(affinity: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    hard = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if hard is not None:
        at = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        terms = hard.get("nodeSelectorTerms") or []
        if not terms:
            errors.append(required(at, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            errors += _match_fields(term, f"{at}[{index}]")
    soft = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    for index, item in enumerate(soft):
        at = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
        errors += _match_fields(item.get("preference") or {}, at)
    return errors


def _match_fields(term: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, field in enumerate(term.get("matchFields") or []):
        at = f"{path}.matchFields[{index}]"
        if len(field.get("values") or []) != 1:
            text = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            errors.append(required(f"{at}.values", text))
        if field.get("key") != "metadata.name":
            text = "not a valid field selector key"
            errors.append(invalid_value(f"{at}.key", field.get("key"), text))
    return errors

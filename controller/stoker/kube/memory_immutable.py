"""What may not change once an object exists, kind by kind.

In: the new and the old manifest. Out: FieldErrors in the server's words. Used by
memory_write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stoker.kube.memory_errors import FieldError, forbidden_field, invalid_value
from stoker.kube.memory_validate import same

__all__ = ["update_errors"]

Json = dict[str, Any]


def update_errors(kind: str, new: Json, old: Json) -> list[FieldError]:
    """Forbidden changes of a built-in kind."""
    check = _BY_KIND.get(kind)
    return check(new, old) if check else []


_IMMUTABLE: Final = "field is immutable"


def _fixed(*keys: str) -> Callable[[Json, Json], list[FieldError]]:
    """Fields of spec that may not change."""

    def check(new: Json, old: Json) -> list[FieldError]:
        return [
            invalid_value(f"spec.{key}", new["spec"].get(key), _IMMUTABLE)
            for key in keys
            if not same(new["spec"].get(key), old["spec"].get(key))
        ]

    return check


_STATEFUL_MUTABLE: Final = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "serviceName",
        "selector",
        "podManagementPolicy",
    }
)


def _stateful_set(new: Json, old: Json) -> list[FieldError]:
    errors = _fixed("serviceName", "selector", "podManagementPolicy")(new, old)
    fixed = (set(new["spec"]) | set(old["spec"])) - _STATEFUL_MUTABLE
    if any(not same(new["spec"].get(key), old["spec"].get(key)) for key in sorted(fixed)):
        text = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals',"
            " 'template', 'updateStrategy', 'revisionHistoryLimit',"
            " 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.append(forbidden_field("spec", text))
    return errors


def _job(new: Json, old: Json) -> list[FieldError]:
    errors = _fixed("completions", "selector", "completionMode")(new, old)
    if not same(new["spec"].get("template"), old["spec"].get("template")):
        errors.append(invalid_value("spec.template", new["spec"]["template"], _IMMUTABLE))
    return errors


def _service(new: Json, old: Json) -> list[FieldError]:
    before, after = old["spec"].get("clusterIPs"), new["spec"].get("clusterIPs")
    kept = before and old["spec"]["type"] != "ExternalName"
    if kept and new["spec"]["type"] != "ExternalName" and not same(before, after):
        return [invalid_value("spec.clusterIPs[0]", after, "may not change once set")]
    return []


def _config(new: Json, old: Json) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    errors = [] if new.get("immutable") else [forbidden_field("immutable", text)]
    for key in ("data", "binaryData"):
        if not same(new.get(key), old.get(key)):
            errors.append(forbidden_field(key, text))
    return errors


def _secret(new: Json, old: Json) -> list[FieldError]:
    errors = _config(new, old)
    if new.get("type") != old.get("type"):
        errors.insert(0, invalid_value("type", new.get("type"), _IMMUTABLE))
    return errors


def _role_binding(new: Json, old: Json) -> list[FieldError]:
    if same(new.get("roleRef"), old.get("roleRef")):
        return []
    return [invalid_value("roleRef", new.get("roleRef"), _IMMUTABLE)]


def _claim(new: Json, old: Json) -> list[FieldError]:
    mutable = {"resources", "volumeAttributesClassName", "volumeName"}
    keys = (set(new["spec"]) | set(old["spec"])) - mutable
    if all(same(new["spec"].get(key), old["spec"].get(key)) for key in sorted(keys)):
        return []
    text = (
        "spec is immutable after creation except resources.requests and"
        " volumeAttributesClassName for bound claims"
    )
    return [forbidden_field("spec", text)]


_POD_TEXT: Final = (
    "pod updates may not change fields other than"
    " `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _pod(new: Json, old: Json) -> list[FieldError]:
    if same(_pod_fixed(new["spec"]), _pod_fixed(old["spec"])):
        return []
    return [forbidden_field("spec", _POD_TEXT)]


def _pod_fixed(spec: Json) -> Json:
    mutable = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"}
    fixed = {key: value for key, value in spec.items() if key not in mutable}
    for key in ("containers", "initContainers"):
        if key in fixed:
            fixed[key] = [{**container, "image": ""} for container in fixed[key]]
    return fixed


def _priority_class(new: Json, old: Json) -> list[FieldError]:
    if new.get("value") == old.get("value"):
        return []
    return [forbidden_field("value", "may not be changed in an update.")]


def _endpoint_slice(new: Json, old: Json) -> list[FieldError]:
    if new.get("addressType") == old.get("addressType"):
        return []
    return [invalid_value("addressType", None, _IMMUTABLE)]


def _crd(new: Json, old: Json) -> list[FieldError]:
    errors = _fixed("group", "scope")(new, old)
    for key in ("plural", "kind"):
        now = new["spec"]["names"].get(key)
        if now != old["spec"]["names"].get(key):
            errors.append(invalid_value(f"spec.names.{key}", now, _IMMUTABLE))
    return errors


_BY_KIND: Final[dict[str, Callable[[Json, Json], list[FieldError]]]] = {
    "Deployment": _fixed("selector"),
    "DaemonSet": _fixed("selector"),
    "ReplicaSet": _fixed("selector"),
    "StatefulSet": _stateful_set,
    "Job": _job,
    "Service": _service,
    "ConfigMap": _config,
    "Secret": _secret,
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
    "PriorityClass": _priority_class,
    "EndpointSlice": _endpoint_slice,
    "CustomResourceDefinition": _crd,
}

"""Strategic merge of a pod template, as `kubectl patch` does it for pods.

A template and the user's `podTemplate` come in, a new template goes out; neither is
changed. Lists merge by the key that Kubernetes declares for them (the patchMergeKey of
each list in the API types of core/v1), others are replaced. Called by neutral.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.errors import BadInput, Finding, SourceLocation

__all__ = ["MERGE_KEYS", "merge_pod_template"]

MERGE_KEYS: dict[tuple[str, str], str] = {
    ("spec", "containers"): "name",
    ("spec", "ephemeralContainers"): "name",
    ("spec", "hostAliases"): "ip",
    ("spec", "imagePullSecrets"): "name",
    ("spec", "initContainers"): "name",
    ("spec", "resourceClaims"): "name",
    ("spec", "schedulingGates"): "name",
    ("spec", "topologySpreadConstraints"): "topologyKey",
    ("spec", "volumes"): "name",
    ("container", "env"): "name",
    ("container", "ports"): "containerPort",
    ("container", "volumeDevices"): "devicePath",
    ("container", "volumeMounts"): "mountPath",
}
"""(parent, list) to merge key. Tolerations have none: Kubernetes replaces them as a whole."""

_CONTAINER_LISTS = frozenset({"containers", "ephemeralContainers", "initContainers"})
_ONE_SOURCE_LIST = "volumes"
_ORDER = "$setElementOrder/"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"
_PATCH = "$patch"


def merge_pod_template(
    template: Mapping[str, Any], patch: Mapping[str, Any], location: SourceLocation
) -> dict[str, Any]:
    """The template with the patch laid over it.

    Null removes a field, `$patch: delete` a list item, `$patch: replace` a whole map or
    list. Raises BadInput `invalid-pod-template` at `location`.
    """
    return _merge_map(template, patch, ("podTemplate",), location)


def _merge_map(
    base: Mapping[str, Any], patch: Mapping[str, Any], path: tuple[str, ...], at: SourceLocation
) -> dict[str, Any]:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise _bad(path, at, f"$patch is {directive!r}, not merge, replace or delete")
    merged = dict(base)
    for key, value in patch.items():
        if key == _PATCH or key.startswith(_ORDER):
            continue
        if key == _RETAIN or key.startswith(_DELETE_FROM):
            raise _bad((*path, key), at, "this directive is not supported")
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(merged.get(key), value, (*path, key), at)
    return _one_volume_source(merged, patch, path)


def _merge_value(base: Any, value: Any, path: tuple[str, ...], at: SourceLocation) -> Any:
    if isinstance(value, Mapping):
        return _merge_map(base if isinstance(base, Mapping) else {}, value, path, at)
    if isinstance(value, list):
        merge_key = MERGE_KEYS.get((_parent_kind(path), path[-1]))
        if merge_key is not None:
            return _merge_list(base if isinstance(base, list) else [], value, (path, merge_key), at)
    return value


def _parent_kind(path: tuple[str, ...]) -> str:
    """`container` inside any list of containers, else the parent's own name."""
    parent = path[-2].partition("[")[0]
    return "container" if parent in _CONTAINER_LISTS and parent != path[-2] else parent


def _merge_list(
    base: list[Any], patch: list[Any], keyed: tuple[tuple[str, ...], str], at: SourceLocation
) -> list[Any]:
    """Items of the same key are merged in place, new ones come after, as kubectl orders them."""
    path, merge_key = keyed
    if any(isinstance(item, Mapping) and item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, Mapping) and _PATCH in item)]
    merged = list(base)
    for item in patch:
        if not isinstance(item, Mapping):
            raise _bad(path, at, "every item must be a map")
        if merge_key not in item:
            raise _bad(path, at, f"an item lacks {merge_key!r}, by which this list is merged")
        name = item[merge_key]
        index = next((i for i, old in enumerate(merged) if _same(old, merge_key, name)), None)
        inside = (*path[:-1], f"{path[-1]}[{name}]")
        if item.get(_PATCH) == "delete":
            if index is not None:
                del merged[index]
        elif index is None:
            merged.append(_merge_map({}, item, inside, at))
        else:
            merged[index] = _merge_map(merged[index], item, inside, at)
    return merged


def _same(item: Any, merge_key: str, name: Any) -> bool:
    return isinstance(item, Mapping) and item.get(merge_key) == name


def _one_volume_source(
    merged: dict[str, Any], patch: Mapping[str, Any], path: tuple[str, ...]
) -> dict[str, Any]:
    """A volume given another source loses the old one (kubectl's retainKeys strategy)."""
    if not path[-1].startswith(f"{_ONE_SOURCE_LIST}["):
        return merged
    sources = {key for key, value in patch.items() if key not in {"name", _PATCH} and value}
    if not sources:
        return merged
    return {key: value for key, value in merged.items() if key == "name" or key in sources}


def _bad(path: tuple[str, ...], at: SourceLocation, message: str) -> BadInput:
    spelled = ".".join(("spec", *path))
    return BadInput((Finding(at, "invalid-pod-template", message, field=spelled),))

"""What a pod template asks of a node, and the hash that names its revision.

A neutral pod template (raw) comes in; `PodShape` and `rev` go out. Called by neutral.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stoker.errors import BadInput, Finding, SourceLocation
from stoker.model.codec import canonical_json, digest
from stoker.model.fleet import Requirement
from stoker.model.shape import PodShape, Toleration
from stoker.objects.quantity import parse_quantity
from stoker.objects.requests import requests_of_spec

__all__ = [
    "MAIN_CONTAINER",
    "containers_of",
    "rev_of",
    "rev_of_group",
    "shape_of",
    "shape_of_group",
]

MAIN_CONTAINER = "engine"

_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_REV_DIGITS = 8

_UNORDERED: dict[str, str] = {
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "ports": "containerPort",
    "tolerations": "",
    "topologySpreadConstraints": "",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists whose order means nothing, and the key to sort by; empty = the whole item.

Not `initContainers`, which run in order. Not `env` where a value uses `$(...)`.
"""


def rev_of(template: Mapping[str, Any]) -> str:
    """8 hex digits of the template without labels, annotations and order."""
    bare = {"spec": _unordered(template.get("spec") or {})}
    return digest(bare)[:_REV_DIGITS]


def rev_of_group(leader: Mapping[str, Any], worker: Mapping[str, Any], size: int) -> str:
    """The same of both templates of a group and the number of its pods."""
    return digest({"leader": rev_of(leader), "worker": rev_of(worker), "size": size})[:_REV_DIGITS]


def shape_of_group(
    leader: Mapping[str, Any], worker: Mapping[str, Any], location: SourceLocation
) -> PodShape:
    """What any pod of a group asks of its node: the leader's, or the worker's where that is more.

    Raises BadInput as `shape_of` does.
    """
    first, other = shape_of(leader, location), shape_of(worker, location)
    return replace(first, requests=first.requests.most(other.requests))


def shape_of(template: Mapping[str, Any], location: SourceLocation) -> PodShape:
    """Read what decides where the pod can run.

    Raises BadInput at `location`: `invalid-manifest` for quantities and types that are
    wrong, `not-implemented-yet` for affinities that placement does not understand.
    """
    try:
        return _shape(template, location)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"the pod template is malformed: {error}"
        raise _bad(location, "invalid-manifest", message, "spec.template.spec") from error


def containers_of(
    template: Mapping[str, Any], kind: str = "containers"
) -> tuple[dict[str, Any], ...]:
    """The containers that are maps; anything else is left to the API server to refuse."""
    spec = template.get("spec")
    found = spec.get(kind) if isinstance(spec, dict) else None
    return tuple(item for item in found or () if isinstance(item, dict))


def _shape(template: Mapping[str, Any], location: SourceLocation) -> PodShape:
    spec: Mapping[str, Any] = template.get("spec") or {}
    engine = next((c for c in containers_of(template) if c.get("name") == MAIN_CONTAINER), {})
    return PodShape(
        requests=requests_of_spec(dict(spec)),
        tolerations=tuple(sorted(_toleration(item) for item in spec.get("tolerations") or ())),
        node_selector=tuple(
            sorted((str(k), str(v)) for k, v in (spec.get("nodeSelector") or {}).items())
        ),
        node_affinity=_node_affinity(spec, location),
        priority_class=str(spec.get("priorityClassName") or ""),
        image=str(engine.get("image") or ""),
    )


def _toleration(item: Mapping[str, Any]) -> Toleration:
    return Toleration(
        key=str(item.get("key") or ""),
        operator=str(item.get("operator") or "Equal"),
        value=str(item.get("value") or ""),
        effect=str(item.get("effect") or ""),
    )


def _node_affinity(
    spec: Mapping[str, Any], location: SourceLocation
) -> tuple[tuple[Requirement, ...], ...]:
    node: Mapping[str, Any] = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[tuple[Requirement, ...]] = []
    for term in required.get("nodeSelectorTerms") or ():
        if term.get("matchFields"):
            raise _unsupported(location, "matchFields")
        terms.append(tuple(sorted(_requirement(e, location) for e in term["matchExpressions"])))
    return tuple(sorted(terms))


def _requirement(expression: Mapping[str, Any], location: SourceLocation) -> Requirement:
    operator = str(expression["operator"])
    if operator not in _OPERATORS:
        raise _unsupported(location, f"the operator {operator}")
    values = tuple(sorted(str(value) for value in expression.get("values") or ()))
    return Requirement(str(expression["key"]), operator, values)


def _unsupported(location: SourceLocation, what: str) -> BadInput:
    message = f"placement does not understand {what} in a required node affinity"
    return _bad(location, "not-implemented-yet", message, "spec.template.spec.affinity")


def _bad(location: SourceLocation, code: str, message: str, field: str) -> BadInput:
    return BadInput((Finding(location, code, message, field=field),))


def _unordered(value: Any, key: str = "") -> Any:
    """The value with lists sorted where order means nothing, and quantities in one spelling."""
    if isinstance(value, Mapping):
        if key in {"limits", "requests"}:
            return {name: _amount(amount) for name, amount in value.items()}
        return {name: _unordered(item, name) for name, item in value.items()}
    if not isinstance(value, list):
        return _amount(value) if key == "sizeLimit" else value
    items = [_unordered(item) for item in value]
    if key not in _UNORDERED or (key == "env" and "$(" in canonical_json(items)):
        return items
    return sorted(items, key=_sort_key(_UNORDERED[key]))


def _sort_key(name: str) -> Callable[[Any], tuple[str, str]]:
    def key(item: Any) -> tuple[str, str]:
        first = str(item.get(name, "")) if name and isinstance(item, Mapping) else ""
        return first, canonical_json(item)

    return key


def _amount(value: Any) -> Any:
    try:
        return str(parse_quantity(value).normalize())
    except (ValueError, TypeError):
        return value

"""Bakes a placement into the neutral Deployment of a ModelService; pure.

The neutral workload and one `Placement` come in, the Deployment as it is sent goes out:
name, replicas, selector, labels, annotations, and the affinity to pool and node. Called by
render, once for each placement.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from stoker.decide.eligible import MEMORY_LABEL, MEMORY_TOLERANCE_PERCENT, MIB, PRODUCT_LABEL
from stoker.model.fleet import ModelService, Pin, Pool, Requirement
from stoker.model.plan import Placement
from stoker.model.refs import UnitRef
from stoker.objects import names
from stoker.render.service import PLACEHOLDERS

__all__ = [
    "NODE_WEIGHT",
    "PREFERRED",
    "REQUIRED",
    "Site",
    "bake",
    "baked_metadata",
    "filled",
    "leftover_placeholder",
    "object_labels",
    "pod_template",
]

NODE_WEIGHT = 100
"""Outweighs every other preference a pod template can hold (the API allows 1 to 100)."""
_APP_NAME = "app.kubernetes.io/name"
_APP_VERSION = "app.kubernetes.io/version"
"""The engine's version as the file names it; a label, so naming it restarts nothing."""
_MANAGER = "stoker"
_PLACEHOLDER = "stoker-decides-"
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Site:
    """What a placement is baked for. `pools` are those the pods may run in, in order.

    `fleet` is the fleet's name.
    """

    fleet: str
    unit: UnitRef
    spec: ModelService
    pools: tuple[Pool, ...]
    source_path: str


def bake(workload: Mapping[str, Any], placement: Placement, site: Site) -> dict[str, Any]:
    """The Deployment of this placement, without owner mark. `workload` is not changed."""
    service = site.unit.name
    value = names.placement_label(service, placement.node, placement.rev)
    body = filled(workload, placement)
    spec = body["spec"]
    return {
        **body,
        "metadata": baked_metadata(body["metadata"], placement, site, value),
        "spec": {
            **spec,
            "replicas": placement.count,
            "selector": {"matchLabels": {names.PLACEMENT_LABEL: value}},
            "template": pod_template(spec["template"], placement, site, value),
        },
    }


def baked_metadata(
    metadata: Mapping[str, Any], placement: Placement, site: Site, value: str
) -> dict[str, Any]:
    """Name, namespace, labels and annotations of the workload of a placement."""
    return {
        **metadata,
        "name": placement.name,
        "namespace": metadata.get("namespace") or site.unit.namespace,
        "labels": {
            **(metadata.get("labels") or {}),
            **object_labels(site.fleet, site.unit, metadata.get("labels") or {}),
            names.PLACEMENT_LABEL: value,
        },
        "annotations": {
            **(metadata.get("annotations") or {}),
            **_annotations(placement, site),
        },
    }


def filled(workload: Mapping[str, Any], placement: Placement) -> dict[str, Any]:
    """The workload with the placement's values where placeholders stand."""
    body: dict[str, Any] = _filled(workload, _replacements(placement))
    return body


def object_labels(fleet: str, unit: UnitRef, own: Mapping[str, Any]) -> dict[str, str]:
    """Labels of every object of a ModelService; the application name only where none is given."""
    return {
        names.FLEET_LABEL: fleet,
        names.SERVICE_LABEL: unit.name,
        names.MANAGED_BY: _MANAGER,
        _APP_NAME: own.get(_APP_NAME) or unit.name,
    }


def leftover_placeholder(value: Any) -> bool:
    """Whether some text still holds a placeholder: a template changed its spelling."""
    if isinstance(value, str):
        return _PLACEHOLDER in value.lower()
    if isinstance(value, Mapping):
        return any(leftover_placeholder(k) or leftover_placeholder(v) for k, v in value.items())
    return isinstance(value, list) and any(map(leftover_placeholder, value))


def _annotations(placement: Placement, site: Site) -> dict[str, str]:
    marks = {names.REV: placement.rev, names.SOURCE: site.source_path}
    if site.spec.adopt:
        marks[names.ADOPT] = "enabled"
    if placement.node:
        marks[names.NODE] = placement.node
    if placement.node_uid:
        marks[names.NODE_UID] = placement.node_uid
    return marks


def _node(placement: Placement) -> str:
    """The decided node; empty where any of the pool will do."""
    return "" if names.pool_of_place(placement.node) else placement.node


def _replacements(placement: Placement) -> dict[str, str]:
    return {
        PLACEHOLDERS["name"]: placement.name,
        PLACEHOLDERS["node"]: _node(placement),
        PLACEHOLDERS["node_uid"]: placement.node_uid,
        PLACEHOLDERS["pool"]: placement.pool,
    }


def _filled(value: Any, replacements: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        if _PLACEHOLDER in value:
            for placeholder, decided in replacements.items():
                value = value.replace(placeholder, decided)
        return value
    if isinstance(value, Mapping):
        return {
            _filled(key, replacements): _filled(item, replacements) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_filled(item, replacements) for item in value]
    return value


def pod_template(
    template: Mapping[str, Any],
    placement: Placement,
    site: Site,
    value: str,
    *,
    traffic: bool = True,
) -> dict[str, Any]:
    """A pod template with labels and affinity; `value` is its placement's label."""
    metadata = template.get("metadata") or {}
    own = metadata.get("labels") or {}
    labels = {
        **own,
        _APP_NAME: own.get(_APP_NAME) or site.unit.name,
        names.FLEET_LABEL: site.fleet,
        names.SERVICE_LABEL: site.unit.name,
        names.PLACEMENT_LABEL: value,
    }
    if traffic:
        labels[names.TRAFFIC_LABEL] = "true"
    if site.spec.model_revision:
        labels[names.MODEL_REVISION_LABEL] = _label_value(site.spec.model_revision)
    if site.spec.engine_version:
        labels[_APP_VERSION] = _label_value(site.spec.engine_version)
    spec = dict(template.get("spec") or {})
    affinity = _affinity(spec.get("affinity") or {}, placement, site)
    if affinity:
        spec["affinity"] = affinity
    return {**template, "metadata": {**metadata, "labels": labels}, "spec": spec}


def _label_value(text: str) -> str:
    """The text if it can be a label value, else a hash of it."""
    if _LABEL_VALUE.fullmatch(text):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _affinity(own: Mapping[str, Any], placement: Placement, site: Site) -> dict[str, Any]:
    """The user's affinity, and the pool, the GPU and the node on top.

    The node is named by `matchFields`, since the label kubernetes.io/hostname may differ
    from the node's name. Preferred, pods find another node of the pool by themselves.
    """
    node_affinity = dict(own.get("nodeAffinity") or {})
    node = _node(placement)
    pinned = bool(node) and any(pool.pin is Pin.REQUIRED for pool in site.pools)
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    everywhere: dict[str, Any] = {"matchExpressions": _gpu_expressions(site.spec)}
    if pinned:
        everywhere["matchFields"] = fields
    required = [_joined(term, everywhere) for term in _required_terms(node_affinity, site.pools)]
    required = [term for term in required if term]
    if required:
        node_affinity[REQUIRED] = {"nodeSelectorTerms": required}
    if node and not pinned:
        preferred = {"weight": NODE_WEIGHT, "preference": {"matchFields": fields}}
        node_affinity[PREFERRED] = [preferred, *(node_affinity.get(PREFERRED) or [])]
    if not node_affinity:
        return dict(own)
    return {**own, "nodeAffinity": node_affinity}


def _required_terms(
    node_affinity: Mapping[str, Any], pools: tuple[Pool, ...]
) -> Iterator[dict[str, Any]]:
    """Every user's term with every pool's: terms are alternatives, so both must hold in each.

    A pool without a selector holds every node and adds nothing.
    """
    users: list[dict[str, Any]] = (node_affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or [
        {}
    ]
    by_pool = [{"matchExpressions": expressions} for expressions in map(_expressions, pools)]
    if not by_pool or not all(term["matchExpressions"] for term in by_pool):
        by_pool = [{"matchExpressions": []}]
    for user, pool in product(users, by_pool):
        yield _joined(user, pool)


def _joined(term: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both terms at once; empty lists are left out."""
    lists = {
        key: [*(term.get(key) or []), *(more.get(key) or [])]
        for key in ("matchExpressions", "matchFields")
    }
    return {key: value for key, value in lists.items() if value}


def _expressions(pool: Pool) -> list[dict[str, Any]]:
    labels = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in sorted(pool.match_labels)
    ]
    return [*labels, *(_expression(item) for item in sorted(pool.match_expressions))]


def _gpu_expressions(spec: ModelService) -> list[dict[str, Any]]:
    """What gpu.products and gpu.minMemory ask of a node, by the labels that decide reads."""
    found: list[dict[str, Any]] = []
    if spec.gpu_products:
        products = sorted(spec.gpu_products)
        found.append({"key": PRODUCT_LABEL, "operator": "In", "values": products})
    if spec.gpu_min_memory_bytes is not None:
        share = 100 - MEMORY_TOLERANCE_PERCENT
        least = -(-spec.gpu_min_memory_bytes * share // (100 * MIB))
        found.append({"key": MEMORY_LABEL, "operator": "Gt", "values": [str(least - 1)]})
    return found


def _expression(requirement: Requirement) -> dict[str, Any]:
    expression: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    if requirement.values:
        expression["values"] = list(requirement.values)
    return expression

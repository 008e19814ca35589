"""Bakes a placement into the neutral LeaderWorkerSet of a ModelService; pure.

As bake does for Deployments: the neutral workload and one `Placement` come in, the object as it
is sent goes out. All pods of a group stay in one domain of one pool, one a node; the leader goes
to the first of the decided nodes, workers to the others. Called by render.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.model.fleet import Pin, PlacementMode
from stoker.model.plan import Placement
from stoker.objects import names
from stoker.render.bake import (
    NODE_WEIGHT,
    PREFERRED,
    REQUIRED,
    Site,
    baked_metadata,
    filled,
    pod_template,
)

__all__ = ["EXCLUSIVE_TOPOLOGY", "bake_group"]

EXCLUSIVE_TOPOLOGY = "leaderworkerset.sigs.k8s.io/exclusive-topology"
"""Its controller keeps each group in one domain of this label, and each domain for one group."""
_HOSTNAME = "kubernetes.io/hostname"


def bake_group(workload: Mapping[str, Any], placement: Placement, site: Site) -> dict[str, Any]:
    """The LeaderWorkerSet of this placement, without owner mark. `workload` is not changed."""
    value = names.placement_label(site.unit.name, placement.node, placement.rev, grouped=True)
    body = filled(workload, placement)
    spec = body["spec"]
    inside = spec["leaderWorkerTemplate"]
    metadata = baked_metadata(body["metadata"], placement, site, value)
    if placement.nodes:
        metadata["annotations"][names.NODES] = ",".join(placement.nodes)
        metadata["annotations"][names.DOMAIN] = placement.domain
    if site.spec.placement_mode is PlacementMode.SCHEDULER:
        metadata["annotations"][EXCLUSIVE_TOPOLOGY] = site.spec.group_key
    leads, works = inside["leaderTemplate"], inside["workerTemplate"]
    lead = _template(leads, placement, site, value, placement.nodes[:1], traffic=True)
    work = _template(works, placement, site, value, placement.nodes[1:], traffic=False)
    return {
        **body,
        "metadata": metadata,
        "spec": {
            **spec,
            "replicas": placement.count,
            "leaderWorkerTemplate": {**inside, "leaderTemplate": lead, "workerTemplate": work},
        },
    }


def _template(
    template: Mapping[str, Any],
    placement: Placement,
    site: Site,
    value: str,
    nodes: tuple[str, ...],
    *,
    traffic: bool,
) -> dict[str, Any]:
    """One of the two pod templates, for pods on these nodes; only leaders take traffic."""
    anywhere = replace(placement, node="")
    baked = pod_template(template, anywhere, site, value, traffic=traffic)
    spec = dict(baked["spec"])
    affinity = dict(spec.get("affinity") or {})
    affinity["podAntiAffinity"] = _apart(affinity.get("podAntiAffinity") or {}, value)
    own = affinity.get("nodeAffinity") or {}
    if node_affinity := _node_affinity(own, site, placement.domain, nodes):
        affinity["nodeAffinity"] = node_affinity
    return {**baked, "spec": {**spec, "affinity": affinity}}


def _apart(own: Mapping[str, Any], value: str) -> dict[str, Any]:
    """The user's rules, and one pod of the group a node."""
    term = {
        "labelSelector": {"matchLabels": {names.PLACEMENT_LABEL: value}},
        "topologyKey": _HOSTNAME,
    }
    return {**own, REQUIRED: [*(own.get(REQUIRED) or []), term]}


def _node_affinity(
    own: Mapping[str, Any], site: Site, domain: str, nodes: tuple[str, ...]
) -> dict[str, Any]:
    """What stands there for the pools, in the domain, on the decided nodes or near them.

    The API takes one name in each matchFields: several nodes are several terms.
    """
    found = dict(own)
    terms: list[dict[str, Any]] = (found.get(REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    inside = {"key": site.spec.group_key, "operator": "In", "values": [domain]}
    if domain:
        terms = [
            {**term, "matchExpressions": [*(term.get("matchExpressions") or []), inside]}
            for term in terms
        ]
    fields = [[{"key": "metadata.name", "operator": "In", "values": [node]}] for node in nodes]
    if fields and any(pool.pin is Pin.REQUIRED for pool in site.pools):
        terms = [{**term, "matchFields": field} for term in terms for field in fields]
    elif fields:
        found[PREFERRED] = [
            *({"weight": NODE_WEIGHT, "preference": {"matchFields": field}} for field in fields),
            *(found.get(PREFERRED) or []),
        ]
    if any(terms):
        found[REQUIRED] = {"nodeSelectorTerms": terms}
    return found

"""Who owns spec.replicas: arbitrated by facts, not by managedFields (design section 5).

A payload, its live object and who scales it come in; the payload with the count that may
be sent goes out, and what is left to others. A live autoscaler or `scaling.mode: External`
keeps the live value, zero included; a bare `kubectl scale` is drift. Called by verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker.model.fleet import ModelService, PlacementMode, Unit
from stoker.model.live import LiveObject
from stoker.model.scaling import ScalingMode
from stoker.objects import names
from stoker.objects.compare import dotted, value_at
from stoker.objects.conflicts import REPLICAS, drop, rivals_of
from stoker.objects.owned import our_fields
from stoker.objects.schema_table import ListSchema

__all__ = ["UNKNOWN_SCALER", "Arbitrated", "arbitrate", "count_owner"]

UNKNOWN_SCALER = "unknown (autoscalers could not be read)"
"""Stands for an owner that may exist: unknown is not nobody."""


@dataclass(frozen=True, slots=True)
class Arbitrated:
    """What may be sent, and `left`: (path, why) of the count where it is not Git's."""

    payload: dict[str, Any] = field(hash=False)
    left: tuple[tuple[str, str], ...] = ()


def count_owner(payload: dict[str, Any], unit: Unit | None, scaler: str | None) -> str:
    """Name who owns the count of a workload, empty for Git.

    `scaler` is the autoscaler that targets it, empty for none, None when that could not be
    read. Deployments of mode Nodes are never left to others: whoever scales a service
    scales the ModelService.
    """
    spec = unit.spec if unit is not None else None
    metadata = payload.get("metadata") or {}
    if isinstance(spec, ModelService) and names.PLACEMENT_LABEL in (metadata.get("labels") or {}):
        if spec.placement_mode is PlacementMode.NODES:
            return ""
        if spec.scaling_mode is ScalingMode.EXTERNAL:
            return scaler or "scaling.mode External"
    return UNKNOWN_SCALER if scaler is None else scaler


def arbitrate(
    payload: dict[str, Any], live: LiveObject, owner: str, manager: str, schema: ListSchema
) -> Arbitrated:
    """Take the count out of what is sent, or send the live one, where it is not Git's.

    A field that another manager owns is left out. As its sole owner we send the live value,
    for leaving it out would remove it (ssa-facts 15, 39). Where nobody owns it (after a
    scale to 0) it is left out too: that changes nothing, and cannot bring back a count that
    the autoscaler has just changed (ssa-facts 41, 42).
    """
    standing = value_at(live.body, REPLICAS, schema.root) if owner else None
    if standing is None:
        return Arbitrated(payload)
    wanted = value_at(payload, REPLICAS, schema.root)
    ours = REPLICAS in our_fields(live.body, manager)
    if wanted is None and not ours:
        return Arbitrated(payload)
    shared = any(REPLICAS in rival.fields for rival in rivals_of(live.body, manager))
    if ours and not shared:
        settled = {**payload, "spec": {**(payload.get("spec") or {}), "replicas": standing}}
    else:
        settled = drop(payload, REPLICAS, schema.root)
    git = "nothing" if wanted is None else wanted
    why = f"live {standing}, Git {git}: {owner} owns it"
    return Arbitrated(settled, ((dotted(REPLICAS), why),))

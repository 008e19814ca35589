"""A ModelService as templates see it, and the placeholders for what is not decided yet.

A unit comes in, plain data goes out. Called by neutral (placeholders) and by render (the
decided counts).
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from stoker.model.fleet import ModelService, Unit

__all__ = [
    "NEUTRAL_DECISION",
    "PLACEHOLDERS",
    "PROBE_DECISION",
    "decision_data",
    "service_data",
]

PLACEHOLDERS = {
    "name": "stoker-decides-name",
    "node": "stoker-decides-node",
    "node_uid": "stoker-decides-uid",
    "pool": "stoker-decides-pool",
}
"""What `placement.…` prints before it is decided; bake puts the real values in their place.

No one is the beginning of another, so that they can be replaced in any order.
"""

_NOT_SHOWN = frozenset({"pod_template"})


def decision_data(replicas: int, floor: int) -> dict[str, int]:
    """What `decision` holds: the wanted count, the least Ready, and how many may be away."""
    away = max(0, replicas - floor)
    return {"replicas": replicas, "floor": floor, "max_unavailable": away}


NEUTRAL_DECISION = decision_data(1, 1)
PROBE_DECISION = decision_data(7, 3)
"""Another count, to see whether a pod template depends on it."""


def service_data(unit: Unit, spec: ModelService) -> dict[str, Any]:
    """Every field of the spec in snake case, and what follows from them.

    `model` is what the engine loads (a hub id or a path), `from_hub` whether that is a
    hub, `served_name` a name that requests can use.
    """
    data: dict[str, Any] = {
        field.name: _plain(getattr(spec, field.name))
        for field in dataclasses.fields(spec)
        if field.name not in _NOT_SHOWN
    }
    model = spec.model_uri
    from_hub = model.startswith("hf://") or not ("://" in model or model.startswith("/"))
    model = model.removeprefix("hf://").removeprefix("file://")
    data |= {
        "name": unit.ref.name,
        "namespace": unit.ref.namespace,
        "model": model,
        "from_hub": from_hub,
        "served_name": spec.served_names[0] if spec.served_names else model,
    }
    return data


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value

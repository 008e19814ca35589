"""Who else owns counts of replicas: autoscalers that target a workload.

Raw HPAs and ScaledObjects come in from the projection, their targets are kept; replicas
and the live view ask who scales an object. While such an owner exists its count is kept,
zero included, whatever managedFields say (design section 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.model.refs import ObjectRef
from stoker.objects.health_fields import mapping, text

__all__ = ["ScaleTarget", "scale_target", "scalers_by_target"]


@dataclass(frozen=True, slots=True, order=True)
class ScaleTarget:
    """One autoscaler and the workload whose count it owns."""

    group: str
    kind: str
    namespace: str
    name: str
    scaler: str
    """`HorizontalPodAutoscaler/x` or `ScaledObject/x`."""


def scale_target(raw: dict[str, Any]) -> ScaleTarget | None:
    """What a raw HPA or ScaledObject scales; None when it names nothing.

    A ScaledObject's target is an apps/v1 Deployment unless it says otherwise (KEDA).
    """
    metadata = mapping(raw, "metadata")
    target = mapping(mapping(raw, "spec"), "scaleTargetRef")
    keda = raw.get("kind") == "ScaledObject"
    name = text(target, "name")
    kind = text(target, "kind", "Deployment" if keda else "")
    api_version = text(target, "apiVersion", "apps/v1" if keda else "")
    if not name or not kind:
        return None
    return ScaleTarget(
        group=api_version.rpartition("/")[0],
        kind=kind,
        namespace=text(metadata, "namespace"),
        name=name,
        scaler=f"{raw.get('kind')}/{text(metadata, 'name')}",
    )


def scalers_by_target(targets: Iterable[ScaleTarget]) -> Mapping[ObjectRef, str]:
    """Who owns the count of each workload; a ScaledObject is named rather than its own HPA."""
    found: dict[ObjectRef, str] = {}
    for target in sorted(targets, key=lambda item: (item.scaler.startswith("Horizontal"), item)):
        ref = ObjectRef(target.group, target.kind, target.namespace, target.name)
        found.setdefault(ref, target.scaler)
    return found

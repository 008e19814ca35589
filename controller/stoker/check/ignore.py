"""An ignore rule never covers what Stoker decides: the count and the place of our services.

The fleet's rules and the rendered sets come in, findings by unit go out. What is decided and
then ignored would be computed, shown and never done.
"""

from __future__ import annotations

from stoker.errors import Finding
from stoker.model.fleet import Desired, ModelService, PlacementMode
from stoker.model.ignore_rule import IgnoreRule
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.refs import UnitRef
from stoker.objects.ignored import pointer_parts, targets

__all__ = ["find_covered"]

_COUNT = ("spec", "replicas")
_PLACE = ("spec", "template", "spec", "affinity", "nodeAffinity")


def find_covered(desired: Desired, sets: tuple[ManifestSet, ...]) -> dict[UnitRef, list[Finding]]:
    """Findings `ignore-covers-decision`, in the Fleet file, for each service that is concerned."""
    rules = desired.fleet.ignore
    if not rules:
        return {}
    found: dict[UnitRef, list[Finding]] = {}
    for item in sets:
        unit = desired.unit(item.unit)
        if unit is None or not isinstance(unit.spec, ModelService):
            continue
        decided = _decided(unit.spec)
        for number, rule in enumerate(rules):
            for manifest in item.manifests:
                if manifest.ref.kind == "Deployment" and targets(rule, manifest):
                    found.setdefault(item.unit, []).extend(
                        _findings(desired, number, rule, manifest, decided)
                    )
    return found


def _decided(spec: ModelService) -> tuple[tuple[str, ...], ...]:
    """Where the decisions about a service stand in its Deployments."""
    if spec.placement_mode is PlacementMode.NODES:
        return (_COUNT, _PLACE)
    return () if spec.scaling_mode is not None else (_COUNT,)


def _findings(
    desired: Desired,
    number: int,
    rule: IgnoreRule,
    manifest: Manifest,
    decided: tuple[tuple[str, ...], ...],
) -> list[Finding]:
    found = []
    for place, path in enumerate(rule.paths):
        parts = pointer_parts(path)
        for field in decided:
            shared = min(len(parts), len(field))
            if parts[:shared] == field[:shared]:
                message = f"{path} covers what is decided for {manifest.ref}: /{'/'.join(field)}"
                found.append(
                    Finding(
                        desired.fleet.location,
                        "ignore-covers-decision",
                        message,
                        field=f"spec.ignore[{number}].paths[{place}]",
                        hint="narrow the target or the path",
                    )
                )
    return found[:1]

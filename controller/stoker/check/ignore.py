"""An ignore rule never covers what Stoker decides: the count and the place of our services.

The fleet's rules and the rendered sets come in, findings by unit go out. What is decided and
then ignored would be computed, shown and never done.
"""

from __future__ import annotations

from stoker.errors import Finding
from stoker.model.fleet import Desired, ModelService, PlacementMode
from stoker.model.ignore_rule import IgnoreRule
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.workload import is_workload
from stoker.objects.ignored import pointer_parts, targets
from stoker.objects.kinds import pod_template_paths

__all__ = ["find_covered"]

_COUNT = ("spec", "replicas")
_PLACE = ("spec", "affinity", "nodeAffinity")
"""Inside a pod template."""


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
        for number, rule in enumerate(rules):
            for manifest in item.manifests:
                if is_workload(manifest.ref) and targets(rule, manifest):
                    decided = _decided(unit.spec, manifest.ref)
                    found.setdefault(item.unit, []).extend(
                        _findings(desired, number, rule, manifest, decided)
                    )
    return found


def _decided(spec: ModelService, ref: ObjectRef) -> tuple[tuple[str, ...], ...]:
    """Where the decisions about a service stand in its workloads."""
    if spec.placement_mode is PlacementMode.NODES:
        paths = pod_template_paths(ref.group, ref.kind)
        return (_COUNT, *((*path, *_PLACE) for path in paths))
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

"""The Fleet file: its schema, and its conversion into model.fleet.Fleet.

Fields of the design that are not obeyed yet are not here; refused.py names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from stoker.errors import SourceLocation, Stalled
from stoker.git.refs import check_ref
from stoker.model.fleet import (
    DeletionPolicy,
    Fleet,
    FleetMode,
    SnapshotDetail,
    StatusSettings,
)
from stoker.model.ignore_rule import IgnoreRule
from stoker.model.prune import MaxUnits, PruneMode, PruneSettings
from stoker.objects.ignored import pointer_parts
from stoker.objects.selectors import parse_selector
from stoker.source.places import Field as FieldPath
from stoker.source.schema import ApiVersion, Duration, LabelName, Line, Percentage, Strict
from stoker.source.schema_flow import (
    ChangeWindowBlock,
    PaceSpec,
    pace_problems,
    window_problems,
    windows_of,
)
from stoker.source.schema_moves import FleetDisruptionBlock, disruption_of
from stoker.source.schema_pools import PoolBlock, pool_problems, pools_of
from stoker.source.schema_sources import MetricSourceBlock, source_problems, sources_of

__all__ = ["FleetFile", "fleet_from_file", "fleet_problems"]


class FleetMetadata(Strict):
    """Name of the fleet."""

    name: LabelName
    """Name of the fleet; part of its status branch."""


class ClusterBlock(Strict):
    """Which cluster this fleet is for."""

    uid: Annotated[Line, Field(max_length=128)]
    """UID of namespace kube-system; checked before anything else is done."""


class PruneBlock(Strict):
    """How objects that left Git are deleted."""

    mode: Literal["Auto", "Confirm", "Never"] = "Auto"
    """Auto deletes up to `maxUnits`, Confirm waits for a commit trailer, Never keeps."""
    max_units: Percentage = (None, 10)
    """Most units deleted at once: a count, or a percentage rounded up, at least 1."""


class StatusBlock(Strict):
    """Status that goes back to Git."""

    branch: str = ""
    """Branch; without it stoker-status/<fleet>."""
    flush_interval: Duration = 60_000
    """How long changes are collected before a status commit."""
    heartbeat: Duration = 3_600_000
    """A status commit at least this often, so that silence means dead."""
    snapshot: Literal["Full", "Hashed", "None"] = "Full"
    """How much of the cluster the data ref records."""


class PrefetchBudgetBlock(Strict):
    """What fetching ahead of starts may take, for all services together."""

    max_concurrent: Annotated[int, Field(ge=0)] = 2
    """Most nodes that fetch image and weights ahead at once."""


class DefaultsBlock(Strict):
    """What units need not repeat."""

    namespace: LabelName | None = None
    """Namespace of units that name none."""
    model_service: dict[str, Any] = Field(default_factory=dict)
    """Merged under the spec of each ModelService; the service wins."""


class PatchTargetBlock(Strict):
    """Which units a patch changes."""

    kind: Literal["ModelService", "Bundle"]
    """Kind of the unit."""
    name: LabelName
    """Name of the unit."""
    namespace: LabelName | None = None
    """Namespace of the unit; without it any."""


class PatchBlock(Strict):
    """A merge patch on a unit."""

    spec: dict[str, Any]
    """Merged over the unit's spec; null deletes a field."""


class UnitPatchBlock(Strict):
    """One change to units of this fleet, so that fleets can share unit files."""

    target: PatchTargetBlock
    """Which units."""
    patch: PatchBlock
    """What changes."""


class IgnoreTargetBlock(Strict):
    """Which objects a rule is about; parts that are left out fit all."""

    kind: Line | None = None
    """Kind of the object, as in its manifest."""
    name: Line | None = None
    """Name of the object."""
    namespace: Line | None = None
    """Namespace of the object."""
    label_selector: Line | None = None
    """Labels that Git gives the object, as kubectl's -l: `a=b,c in (d,e),!f`."""
    annotation_selector: Line | None = None
    """The same for its annotations."""


class IgnoreBlock(Strict):
    """Fields that others write: neither compared nor sent."""

    target: IgnoreTargetBlock = Field(default_factory=IgnoreTargetBlock)
    """Which objects."""
    paths: Annotated[list[Line], Field(min_length=1)]
    """JSON pointers: /spec/replicas, /metadata/annotations/example.org~1checksum."""


class FleetSpec(PaceSpec):
    """What the fleet is."""

    cluster: ClusterBlock
    """Which cluster this fleet is for."""
    mode: Literal["Observe", "Correct"] = "Observe"
    """Observe computes and reports, Correct also changes the cluster."""
    include: Annotated[list[Line], Field(min_length=1)]
    """Unit files: patterns relative to this file; a leading / is the repository root."""
    defaults: DefaultsBlock = Field(default_factory=DefaultsBlock)
    """What units need not repeat."""
    unit_patches: list[UnitPatchBlock] = Field(default_factory=list)
    """Changes to single units, in order; one that matches no unit is an error."""
    pools: list[PoolBlock] = Field(default_factory=list)
    """Classes of nodes."""
    metric_sources: list[MetricSourceBlock] = Field(default_factory=list)
    """Servers that are asked for readings."""
    max_gpus: Annotated[int | None, Field(alias="maxGPUs", ge=1)] = None
    """Most GPUs of all replicas of the fleet; services of higher priority have them first."""
    prune: PruneBlock = Field(default_factory=PruneBlock)
    """How objects that left Git are deleted."""
    ignore: list[IgnoreBlock] = Field(default_factory=list)
    """Fields of objects that are left to whoever writes them, in diff and apply alike."""
    disruption: FleetDisruptionBlock = Field(default_factory=FleetDisruptionBlock)
    """What voluntary moves of all services may cost at once; notices are outside."""
    change_windows: list[ChangeWindowBlock] = Field(default_factory=list)
    """When new revisions are applied; repairs, moves and counts go on outside."""
    prefetch: PrefetchBudgetBlock = Field(default_factory=PrefetchBudgetBlock)
    """What fetching ahead of starts (cache.prefetch) may take."""
    templates: list[Line] = Field(default_factory=list)
    """Folders with own templates, relative to this file; found before the shipped ones."""
    status: StatusBlock = Field(default_factory=StatusBlock)
    """Status that goes back to Git."""
    deletion_policy: Literal["Orphan", "Delete"] = "Orphan"
    """What happens to workloads when the fleet itself is removed."""


class FleetFile(Strict):
    """A fleet: one cluster, its pools, and which units run there."""

    api_version: ApiVersion
    """Always stoker.dev/v1alpha1."""
    kind: Literal["Fleet"]
    """Always Fleet."""
    metadata: FleetMetadata
    """Name of the fleet."""
    spec: FleetSpec
    """What the fleet is."""


def fleet_from_file(
    file: FleetFile, location: SourceLocation, template_folders: tuple[str, ...]
) -> Fleet:
    """The Fleet of a file without problems. `template_folders` count from the root."""
    spec = file.spec
    branch = spec.status.branch.removeprefix("refs/heads/")
    count, percent = spec.prune.max_units
    return Fleet(
        name=file.metadata.name,
        cluster_uid=spec.cluster.uid,
        mode=FleetMode(spec.mode),
        location=location,
        pools=pools_of(spec.pools),
        prune=PruneSettings(PruneMode(spec.prune.mode), MaxUnits(count, percent)),
        status=StatusSettings(
            branch=branch,
            flush_interval_ms=spec.status.flush_interval,
            heartbeat_ms=spec.status.heartbeat,
            snapshot=SnapshotDetail(spec.status.snapshot),
        ),
        template_paths=template_folders,
        ignore=tuple(_ignore_rule(block) for block in spec.ignore),
        deletion_policy=DeletionPolicy(spec.deletion_policy),
        suspend=spec.suspend,
        change_windows=windows_of(spec.change_windows),
        disruption=disruption_of(spec.disruption),
        most_prefetches=spec.prefetch.max_concurrent,
        metric_sources=sources_of(spec.metric_sources),
        max_gpus=spec.max_gpus,
    )


def fleet_problems(file: FleetFile, tracked_ref: str) -> Iterator[tuple[FieldPath, str, str, str]]:
    """What single fields cannot show: field, code, message and hint of each problem.

    `tracked_ref` is the branch the fleet is read from: status must go elsewhere.
    """
    yield from pace_problems(file.spec)
    yield from window_problems(file.spec.change_windows)
    yield from source_problems(file.spec.metric_sources)
    yield from pool_problems(file.spec.pools)
    yield from _ignore_problems(file)
    branch = file.spec.status.branch.removeprefix("refs/heads/")
    where = ("spec", "status", "branch")
    if branch:
        try:
            check_ref(branch)
        except Stalled as error:
            yield where, error.code, error.message, ""
    effective = branch or f"stoker-status/{file.metadata.name}"
    if effective == tracked_ref.removeprefix("refs/heads/"):
        message = "status would be committed to the branch that the fleet is read from"
        yield where, "status-branch-is-source", message, "name another branch"
    for name in ("flushInterval", "heartbeat"):
        value = getattr(file.spec.status, "heartbeat" if name == "heartbeat" else "flush_interval")
        if value < 1000:
            yield ("spec", "status", name), "invalid-value", "must be at least 1s", ""


def _ignore_problems(file: FleetFile) -> Iterator[tuple[FieldPath, str, str, str]]:
    for index, block in enumerate(file.spec.ignore):
        at: FieldPath = ("spec", "ignore", index)
        for number, path in enumerate(block.paths):
            try:
                pointer_parts(path)
            except ValueError as error:
                yield (*at, "paths", number), "invalid-value", str(error), ""
        target = block.target
        for name, text in (
            ("labelSelector", target.label_selector),
            ("annotationSelector", target.annotation_selector),
        ):
            try:
                parse_selector(text or "")
            except ValueError as error:
                yield (*at, "target", name), "invalid-value", str(error), ""


def _ignore_rule(block: IgnoreBlock) -> IgnoreRule:
    target = block.target
    return IgnoreRule(
        paths=tuple(sorted(set(block.paths))),
        kind=target.kind or "",
        name=target.name or "",
        namespace=target.namespace or "",
        label_selector=target.label_selector or "",
        annotation_selector=target.annotation_selector or "",
    )

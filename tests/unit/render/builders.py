"""Inputs of the render stages that show only what a test is about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from stoker.errors import SourceLocation, Stalled
from stoker.model.codec import digest, to_data
from stoker.model.fleet import (
    Blob,
    Bundle,
    Desired,
    Fleet,
    FleetMode,
    ModelService,
    PlacementMode,
    Pool,
    Unit,
)
from stoker.model.plan import CountReason, Placement, Plan, Retirement, ServiceDecision
from stoker.model.refs import SourceRevision, UnitRef
from stoker.objects import names
from stoker.render.shape import Shapes

FLEET_ID = "f1ee7000"
COMMIT = "9be0a17c5d2e8f4016ab73d90c1e5f2b48a6d7e3"
POOL = Pool("l4-od", match_labels=(("pool", "l4"),))


@dataclass
class FakeRepo:
    """Files of one commit, by path; counts how often it is read."""

    files: dict[str, bytes] = field(default_factory=dict)
    reads: int = 0
    too_large: frozenset[str] = frozenset()

    def add(self, path: str, text: str | bytes) -> Blob:
        raw = text.encode() if isinstance(text, str) else text
        self.files[path] = raw
        return Blob(path, hashlib.sha1(path.encode() + raw).hexdigest())

    def read(self, blobs: tuple[Blob, ...]) -> tuple[bytes, ...]:
        self.reads += 1
        for blob in blobs:
            if blob.path in self.too_large:
                raise Stalled(f"{blob.path} is too large", code="blob-too-large")
        return tuple(self.files[blob.path] for blob in blobs)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"render has no business with Repo.{name}")


def unit(
    spec: ModelService | Bundle, name: str = "web", *, namespace: str = "llm", path: str = ""
) -> Unit:
    kind = type(spec).__name__
    path = path or f"fleet/{name}.yaml"
    return Unit(
        UnitRef(kind, namespace, name),
        spec,
        SourceLocation(path, 1, 1),
        digest([to_data(spec), name, namespace]),
    )


def service(**changes: Any) -> ModelService:
    fields: dict[str, Any] = {
        "model_uri": "hf://Qwen/Qwen2.5-7B-Instruct",
        "model_revision": "a09a35458c702b33eeacc393d103063234e8bc28",
        "served_names": ("qwen-7b",),
        "engine_image": "registry.example/vllm@sha256:" + "ab" * 32,
        "gpu_count": 1,
        "pools": ("l4-od",),
    }
    return ModelService(**(fields | changes))


def desired(
    *units: Unit,
    templates: tuple[Blob, ...] = (),
    pools: tuple[Pool, ...] = (POOL,),
    commit: str = COMMIT,
) -> Desired:
    fleet = Fleet(
        name="prod-eu",
        cluster_uid="6a0c1f0e",
        mode=FleetMode.CORRECT,
        location=SourceLocation("fleet.yaml", 1, 1),
        pools=pools,
        template_paths=("templates",),
    )
    ordered = tuple(sorted(units, key=lambda item: item.ref))
    return Desired(SourceRevision("main", commit), fleet, ordered, templates=templates)


def placement(shapes: Shapes, ref: UnitRef, node: str = "l4-od-1", **changes: Any) -> Placement:
    rev = next(item.rev for item in shapes.shapes if item.ref == ref)
    fields: dict[str, Any] = {
        "name": names.deployment_name(ref.name, node, rev),
        "rev": rev,
        "node": node,
        "node_uid": f"uid-of-{node}" if node else "",
        "pool": "l4-od",
        "count": 1,
    }
    return Placement(**(fields | changes))


def decision(
    ref: UnitRef,
    *placements: Placement,
    replicas: int | None = None,
    floor: int = 1,
    mode: PlacementMode = PlacementMode.NODES,
    retirements: tuple[Retirement, ...] = (),
    untouched: tuple[str, ...] = (),
    known: bool = True,
) -> ServiceDecision:
    wanted = sum(item.count for item in placements) if replicas is None else replicas
    return ServiceDecision(
        ref=ref,
        mode=mode,
        rev=placements[0].rev if placements else "",
        replicas=wanted if known else None,
        count=CountReason("Git"),
        floor=floor,
        placements=placements,
        retirements=retirements,
        untouched=untouched,
    )


def plan(*decisions: ServiceDecision, now_ms: int = 0) -> Plan:
    return Plan(now_ms, tuple(sorted(decisions, key=lambda item: item.ref)))

"""Rendered objects of one unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker.errors import Finding, SourceLocation
from stoker.model.plan import Retirement
from stoker.model.refs import ObjectRef, UnitRef

__all__ = ["Manifest", "ManifestSet"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object as it should be sent, with owner mark. Treat `body` as read-only.

    `digest` is the sha256 of the canonical JSON of `body`. `source` is the file and
    line it came from. `frozen_template` marks a workload whose live pod template must be
    re-sent as it is while its rev stands (design section 4).
    """

    ref: ObjectRef
    body: dict[str, Any] = field(hash=False)
    digest: str
    source: SourceLocation = field(default_factory=SourceLocation)
    frozen_template: bool = False


@dataclass(frozen=True, slots=True)
class ManifestSet:
    """All objects of one unit, sorted in apply order, and what must be left standing.

    `kept` are objects of the unit that are not rendered but must not be pruned (leaving
    or older Deployments, Jobs that fetch ahead); `over` are such Jobs that are done with and
    leave whatever the fleet says of pruning. `complete` is False when the render failed: then `manifests` is
    empty, `findings` says why, and nothing of the unit is changed or pruned.
    """

    unit: UnitRef
    manifests: tuple[Manifest, ...] = ()
    kept: tuple[ObjectRef, ...] = ()
    retirements: tuple[Retirement, ...] = ()
    coldest: tuple[str, ...] = ()
    """Pods that leave with a lower count, the coldest first."""
    over: tuple[ObjectRef, ...] = ()
    complete: bool = True
    findings: tuple[Finding, ...] = ()

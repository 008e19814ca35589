"""What the shape stage gives: decide reads `shapes`, render the neutral manifests inside.

Made by shape; the renderer remembers the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.errors import Finding
from stoker.model.refs import UnitRef
from stoker.model.shape import UnitShape
from stoker.render.neutral import NeutralUnit
from stoker.render.unit_jobs import Workshop

__all__ = ["Shapes"]


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes of all ModelServices that render, sorted by ref, and what is wrong with others.

    Every finding names its `unit`; a unit with one has no shape and no manifests.
    """

    shapes: tuple[UnitShape, ...] = ()
    findings: tuple[Finding, ...] = ()
    neutral: Mapping[UnitRef, NeutralUnit] = field(default_factory=dict, hash=False, repr=False)
    workshop: Workshop | None = field(default=None, compare=False, repr=False)

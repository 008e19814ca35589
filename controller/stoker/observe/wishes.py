"""What people ask of us by annotations on mirrors: which of them are for this fleet.

Raw Fleets and ModelServices come in from the projection, their annotations are kept;
observe makes the suspensions and overrides of the snapshot of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.model.flow import Override, Suspension, UnreadOverride, WhenFullOverride
from stoker.model.refs import UnitRef
from stoker.objects.health_fields import mapping, text
from stoker.objects.names import FLEET_ID
from stoker.objects.wishes import (
    OVERRIDE,
    RECONCILE,
    SUSPEND,
    WHEN_FULL,
    override_from,
    suspension_from,
    when_full_from,
)

__all__ = ["MirrorFacts", "Wishes", "mirror_facts", "wishes_of"]

_READ = (SUSPEND, OVERRIDE, WHEN_FULL, RECONCILE)


@dataclass(frozen=True, slots=True)
class MirrorFacts:
    """The annotations of one mirror that ask for something, and whose mirror it is."""

    ref: UnitRef
    fleet_id: str
    asks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Wishes:
    """Everything asked of one fleet, sorted. `reconcile` is the newest request as it stands
    on the Fleet, empty for none.
    """

    suspensions: tuple[Suspension, ...] = ()
    overrides: tuple[Override, ...] = ()
    unread_overrides: tuple[UnreadOverride, ...] = ()
    when_full_overrides: tuple[WhenFullOverride, ...] = ()
    reconcile: str = ""


def mirror_facts(raw: dict[str, Any]) -> MirrorFacts:
    """What is kept of a raw mirror."""
    metadata = mapping(raw, "metadata")
    annotations = mapping(metadata, "annotations")
    ref = UnitRef(str(raw.get("kind", "")), text(metadata, "namespace"), text(metadata, "name"))
    asks = tuple((key, str(annotations[key])) for key in _READ if key in annotations)
    return MirrorFacts(ref, text(annotations, FLEET_ID), asks)


def wishes_of(mirrors: Iterable[MirrorFacts], fleet_id: str) -> Wishes:
    """What is asked of the fleet of that id."""
    suspensions: list[Suspension] = []
    overrides: list[Override] = []
    when_full: list[WhenFullOverride] = []
    unread: list[UnreadOverride] = []
    reconcile = ""
    for facts in mirrors:
        if facts.fleet_id != fleet_id or not facts.asks:
            continue
        asks = dict(facts.asks)
        suspension = suspension_from(facts.ref, asks)
        if facts.ref.kind == "Fleet":
            reconcile = asks.get(RECONCILE, reconcile)
        else:
            for override in (override_from(facts.ref, asks), when_full_from(facts.ref, asks)):
                if isinstance(override, Override):
                    overrides.append(override)
                elif isinstance(override, WhenFullOverride):
                    when_full.append(override)
                elif override is not None:
                    unread.append(override)
        if suspension is not None:
            suspensions.append(suspension)
    return Wishes(
        tuple(sorted(suspensions, key=lambda wish: wish.ref)),
        tuple(sorted(overrides, key=lambda wish: wish.ref)),
        tuple(sorted(unread)),
        tuple(sorted(when_full, key=lambda wish: wish.ref)),
        reconcile,
    )

"""What the kinds of learned starts are called, for people: a kind itself is only a digest.

In: what decide was given. Out: the words for each kind that some service has on some class of
nodes now. Called by report for the copy on the data ref.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stoker.decide.case import case_from
from stoker.decide.estimates import Estimates, node_class
from stoker.decide.ready_in import estimate
from stoker.decide.slow_starts import PATHS
from stoker.model.fleet import Desired, ModelService
from stoker.model.shape import UnitShape
from stoker.model.snapshot import Snapshot
from stoker.model.start_samples import Starts

__all__ = ["StartKind", "start_kinds"]


@dataclass(frozen=True, slots=True, order=True)
class StartKind:
    """`service` is one that starts so, `where` its class of nodes, `held` what they held."""

    service: str
    where: str
    held: str


def start_kinds(
    desired: Desired, shapes: Iterable[UnitShape], snapshot: Snapshot, starts: Starts
) -> dict[str, StartKind]:
    """By the key of a ring, sorted; of services of one kind the first by name."""
    keys = {key for key, _ in starts.rings}
    shape_of = {shape.ref: shape for shape in shapes}
    classes: dict[str, Mapping[str, str]] = {}
    for node in snapshot.nodes:
        of_node = dict(node.labels)
        classes.setdefault(node_class(of_node), of_node)
    found: dict[str, StartKind] = {}
    estimates = Estimates(starts)
    for unit in desired.units if keys else ():
        if not isinstance(unit.spec, ModelService) or unit.ref not in shape_of:
            continue
        state = snapshot.service(unit.ref)
        case = case_from(unit.ref, unit.spec, shape_of[unit.ref], desired.fleet, state)
        for where, labels in sorted(classes.items()):
            for facts in PATHS:
                key = estimates.key(case, facts, labels)
                if key in keys:
                    held = estimate(unit.spec, facts).facts
                    found.setdefault(key, StartKind(unit.ref.short, where, held))
    return dict(sorted(found.items()))

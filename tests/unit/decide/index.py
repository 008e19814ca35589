"""An index of nodes and a service that asks it, for tests of the choice of a node."""

from __future__ import annotations

from builders import (
    IMAGE,
    MODEL_REVISION,
    NOW_MS,
    a_desired,
    a_node,
    a_pool,
    a_shape,
    a_snapshot,
    a_unit,
)
from stoker.decide.case import case_from
from stoker.decide.place import Index
from stoker.model.snapshot import ServiceState
from stoker.model.start_samples import NO_STARTS

POOLS = (a_pool("l4"), a_pool("h100"))


def a_case(unit=None, state=None, pools=POOLS, **shape):
    unit = unit if unit is not None else a_unit(pools=("l4", "h100"))
    desired = a_desired(unit, pools=pools)
    state = state if state is not None else ServiceState(unit.ref)
    return case_from(unit.ref, unit.spec, a_shape(unit, **shape), desired.fleet, state)


def an_index(*nodes, cases=(), services=(), starts=NO_STARTS):
    snapshot = a_snapshot(*nodes, services=services)
    cases = cases or (a_case(),)
    shapes = {case.ref: case.shape for case in cases}
    return Index(snapshot.nodes, snapshot.services, cases, shapes, NOW_MS, starts)


def chosen(*nodes, urgent=False, own=(), barred=None, case=None):
    case = case if case is not None else a_case()
    choice = an_index(*nodes, cases=(case,)).pick(
        case, urgent=urgent, own=set(own), barred=barred or {}
    )
    return choice.node.name if choice is not None else None


def warm(name, **fields):
    return a_node(name, weights=(MODEL_REVISION,), images=(IMAGE,), **fields)

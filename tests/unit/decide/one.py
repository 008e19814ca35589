"""Decide about one service and look at the answer in short words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from builders import (
    NOW_MS,
    REV,
    a_desired,
    a_node,
    a_placement,
    a_pool,
    a_replica,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
)
from stoker.decide import decide
from stoker.model.history import History
from stoker.model.plan import Plan, ServiceDecision
from stoker.model.snapshot import LivePlacement, Node

OLD = "00000000"
"""A rev that is not the wanted one."""


def planned(
    *placements: LivePlacement,
    nodes: Iterable[Node] = (),
    unknown: dict[str, str] | None = None,
    history: History | None = None,
    now_ms: int = NOW_MS,
    rev: str = REV,
    fleet_pools: Iterable[Any] = (),
    **service: Any,
) -> Plan:
    """The plan for service `qwen` of 2 replicas; `nodes` default to n1, n2, n3 of one GPU."""
    service.setdefault("replicas", 2)
    unit = a_unit(**service)
    found = tuple(nodes) or tuple(a_node(f"n{number}", gpus=1) for number in (1, 2, 3))
    snapshot = a_snapshot(*found, services=[a_state(*placements)], unknown=unknown)
    desired = a_desired(unit, pools=tuple(fleet_pools) or (a_pool("l4"),))
    shapes = (a_shape(unit, rev=rev),)
    return decide(desired, shapes, snapshot, history or History(), now_ms)


def decided(*placements: LivePlacement, **fields: Any) -> ServiceDecision:
    """The decision about it."""
    return planned(*placements, **fields).decisions[0]


def kept(decision: ServiceDecision) -> dict[str, int]:
    """Count by node of the Deployments that stand already and stay, `old:` before old revs."""
    return {
        ("old:" if p.rev == OLD else "") + p.node: p.count for p in decision.placements if p.exists
    }


def created(decision: ServiceDecision) -> dict[str, int]:
    """Count by node of new Deployments."""
    return {p.node: p.count for p in decision.placements if not p.exists}


def leaving(decision: ServiceDecision) -> list[tuple[str, tuple[str, ...], int]]:
    """Stage, pods and kept count of each retirement."""
    return [(r.stage.value, r.pods, r.keep) for r in decision.retirements]


def held(decision: ServiceDecision) -> list[str]:
    """Codes of the holds."""
    return [hold.code for hold in decision.holds]


def old(node="n1", *pods, **fields):
    return a_placement(node, *(pods or (a_replica(f"old-{node}", node),)), rev=OLD, **fields)


def ready(node="n1", **fields):
    return a_placement(node, a_replica(f"p-{node}", node), **fields)


def warming(node="n1", **fields):
    return a_placement(node, a_replica(f"p-{node}", node, "Starting", **fields))


def stuck(node="n1", **fields):
    fields.setdefault("reason", "CrashLoopBackOff")
    return a_placement(node, a_replica(f"p-{node}", node, "Stuck", **fields))


def homeless(node="n1"):
    """A pod that no node takes."""
    return a_placement(node, a_replica(f"p-{node}", "", "Stuck", reason="Unschedulable"))


def one_gpu(*names, **fields):
    return [a_node(name, gpus=1, **fields) for name in names]

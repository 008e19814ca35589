"""Nodes that were turned away, counted by rule. Made by place, told by holds and explain."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.decide.booking import Need, Room
from stoker.decide.eligible import FIT_RULES, RULES
from stoker.model.snapshot import Node

__all__ = ["LIMIT_RULES", "RULE_ORDER", "SHORTAGES", "Tally", "shortage"]

LIMIT_RULES = ("pool-base", "spot-share")
"""Rules by which a service shares its replicas out; asked by place, between RULES and FIT_RULES.
`topology-spread`, the third, is among RULES, for nodes without the label."""
RULE_ORDER = {
    rule: place
    for place, rule in enumerate(
        [name for name, _ in RULES] + [*LIMIT_RULES, *FIT_RULES, "group-domain"]
    )
}
SHORTAGES = {
    "leaving-here": "a replica of this service is still leaving",
    "failed-here": "a replica of this service is stuck",
    "quarantined": "starts failed here",
    "devices": "too few free devices",
    "cpu": "too little free CPU",
    "memory": "too little free memory",
    "pods": "no room for one more pod",
}


@dataclass(frozen=True, slots=True)
class Tally:
    """How many nodes of a pool one rule turned away, with one of them as the example."""

    rule: str
    count: int
    node: str
    reason: str
    pool: str = ""


def shortage(rule: str, node: Node, room: Room, need: Need) -> str:
    """The words for one node that a room rule turned away."""
    if rule == "gpus":
        total = node.allocatable.device(need.gpu_resource)
        free = max(0, room.device(need.gpu_resource))
        return f"{free} of {total} GPUs free, a replica needs {need.gpus}"
    return SHORTAGES[rule]

"""Nodes that were turned away, counted by rule. Made by place, told by holds and explain."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.decide.eligible import FIT_RULES, RULES

__all__ = ["RULE_ORDER", "SHORTAGES", "Tally"]

RULE_ORDER = {rule: place for place, rule in enumerate([name for name, _ in RULES] + [*FIT_RULES])}
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

"""The place that was chosen for one start. Made by place and groups, read by transition."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.plan import Readiness
from stoker.model.snapshot import Node

__all__ = ["Choice"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A node that was chosen by `rule`, and how many of its GPUs were free before.

    `beyond` says which limits of the service it goes beyond for the floor, or which pools left
    alone for now; empty for none.
    """

    node: Node
    pool: str
    readiness: Readiness
    free_gpus: int
    beyond: str = ""
    rule: str = ""
    others: tuple[str, ...] = ()
    """Of a group: the nodes of its workers; `free_gpus` is the least of them all."""
    domain: str = ""
    """Of a group: the value of its topology label."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node that is taken, its leader's first."""
        return (self.node.name, *self.others)

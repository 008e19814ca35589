"""What one start may not use although rules and room would let it: whole pools and domains.

Made by limits for each start, read by place and holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from stoker.decide.eligible import Labels

__all__ = ["NOTHING_CLOSED", "Closed", "Skip"]


@dataclass(frozen=True, slots=True)
class Closed:
    """Closed pools: name, rule and reason of each, in the order of the service's pools. Closed
    domains: values of the node label `key`, sorted, each with the reason.
    """

    pools: tuple[tuple[str, str, str], ...] = ()
    key: str = ""
    domains: tuple[tuple[str, str], ...] = ()

    def pool(self, name: str) -> tuple[str, str] | None:
        """Rule and reason by which that pool is closed; None while it is open."""
        for closed, rule, reason in self.pools:
            if closed == name:
                return rule, reason
        return None

    def domain(self, labels: Labels) -> str:
        """Why the domain of a node with these labels is closed; empty while it is open."""
        if not self.domains:
            return ""
        own = labels.get(self.key)
        return next((reason for domain, reason in self.domains if domain == own), "")


NOTHING_CLOSED = Closed()


@dataclass(frozen=True, slots=True)
class Skip:
    """Names of nodes that a search of whole classes leaves out, asked one by one: a closed
    domain may have half the nodes of the fleet.
    """

    own: Collection[str]
    barred: Collection[str]
    closed: Closed
    labels: Mapping[str, Labels]

    def __contains__(self, name: object) -> bool:
        if name in self.own or name in self.barred:
            return True
        return isinstance(name, str) and bool(self.closed.domain(self.labels[name]))

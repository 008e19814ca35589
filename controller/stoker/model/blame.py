"""What a service remembers of starts that failed: of nodes, and of the rev that fails anywhere.

Part of `UnitHistory`, so an input and a result of decide. Bounded in entries and so in bytes;
what is lost or unreadable is forgotten: failures count anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker.model.codec import from_data

__all__ = ["MAX_BAD_NODES", "NO_FAILURES", "BadNode", "BadRev", "Failures"]

MAX_BAD_NODES = 12
"""Of one service: the newest. About 190 bytes each, so half of what a unit's history may hold."""


@dataclass(frozen=True, slots=True, order=True)
class BadNode:
    """A node, by UID, on which starts of the service failed.

    `made_ms` is the creation of the newest pod that was counted, `at_ms` when that was seen.
    `strikes` are failed starts in a row, 0 for a node that is cleared and kept only so that the
    same pods are not counted again. No start goes there before `until_ms`, 0 for no quarantine.
    `rev` is the rev that the failure speaks against too, empty for none.
    """

    uid: str
    made_ms: int
    at_ms: int
    strikes: int = 0
    until_ms: int = 0
    reason: str = ""
    rev: str = ""


@dataclass(frozen=True, slots=True)
class BadRev:
    """A rev that is to blame: nothing more is started of it. `nodes` are up to three examples."""

    rev: str
    since_ms: int
    reason: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failures:
    """All of it, nodes sorted by UID. `in_a_row` counts failed starts of `rev` since one of it
    was proven, the last at `last_ms`.
    """

    nodes: tuple[BadNode, ...] = ()
    bad_rev: BadRev | None = None
    rev: str = ""
    in_a_row: int = 0
    last_ms: int = 0

    def node(self, uid: str) -> BadNode | None:
        """What is remembered of that node."""
        return next((node for node in self.nodes if node.uid == uid), None)

    @classmethod
    def read(cls, data: Any) -> Failures:
        """What `to_data` gave; nothing where that is not what is there."""
        try:
            found = from_data(cls, data)
        except (ValueError, TypeError, AttributeError):
            return NO_FAILURES
        return found if _is_sane(found) else NO_FAILURES


NO_FAILURES = Failures()
"""Where nothing failed, or nothing is known of it."""


def _is_sane(found: Failures) -> bool:
    rows: list[Any] = [found, *found.nodes]
    if found.bad_rev is not None:
        rows.append(found.bad_rev)
    return len(found.nodes) <= MAX_BAD_NODES and all(_has_types(row) for row in rows)


def _has_types(row: Any) -> bool:
    """Whether instants and counts are whole numbers, and everything else is text or checked."""
    for name in row.__slots__:
        value = getattr(row, name)
        if name.endswith("_ms") or name in {"strikes", "in_a_row"}:
            if type(value) is not int or value < 0:
                return False
        elif name == "nodes":
            if isinstance(row, BadRev) and not all(isinstance(node, str) for node in value):
                return False
        elif name != "bad_rev" and not isinstance(value, str):
            return False
    return True

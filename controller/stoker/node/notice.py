"""What a cloud says about the end of this node, and what stands after it was asked again.

Pollers give a `Poll`; `standing` folds it into what was known, purely: an unanswered question
changes nothing, only a cloud that answers takes a notice back. Used by node.reporter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

__all__ = [
    "Hint",
    "NodeNotice",
    "NoticeKind",
    "NoticeSource",
    "Poll",
    "Standing",
    "Told",
    "Unknown",
    "most_urgent",
    "standing",
]


class NoticeKind(StrEnum):
    """Why the node goes away; the words that observe gives taints of the same meaning."""

    SPOT = "spot-interruption"
    MAINTENANCE = "maintenance"
    TERMINATION = "termination"


@dataclass(frozen=True, slots=True)
class NodeNotice:
    """The node will go away. `at_ms` is when it was first seen here.

    `deadline_ms` is None where the cloud names none; it may have passed. `id` is the same for
    as long as it is the same notice. `source` is the cloud.
    """

    kind: NoticeKind
    source: str
    id: str
    at_ms: int
    deadline_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Hint:
    """The node may go away; may never come true, so nothing is moved for it."""

    kind: str
    source: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Told:
    """The cloud answered. No notice: it says that there is none."""

    notice: NodeNotice | None = None
    hint: Hint | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The cloud did not answer, or not in a way that can be read."""

    why: str


Poll: TypeAlias = Told | Unknown


class NoticeSource(Protocol):
    """One cloud's metadata service; polled by one thread, acknowledged from any."""

    @property
    def pause_seconds(self) -> float:
        """How long to wait before it is asked again."""
        ...

    def poll(self) -> Poll:
        """Ask, within bounded time; never raises."""
        ...

    def acknowledge(self, notice: NodeNotice) -> bool:
        """Tell the cloud that it need not wait; False where it has no such thing or refused."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """What is held true. `known` is False until the cloud has answered once.

    `withdrawn` is the notice that the newest answer took back; `why_unknown` says why the
    newest question went unanswered, and is empty when it did not.
    """

    notice: NodeNotice | None = None
    hint: Hint | None = None
    known: bool = False
    withdrawn: NodeNotice | None = None
    why_unknown: str = ""


def standing(before: Standing, poll: Poll) -> Standing:
    """Fold one answer into what is held true.

    The same notice keeps the instant at which it was first seen. A deadline may move.
    """
    if isinstance(poll, Unknown):
        return Standing(before.notice, before.hint, before.known, None, poll.why)
    old, new = before.notice, poll.notice
    if old is not None and new is not None and (old.source, old.id) == (new.source, new.id):
        new = NodeNotice(new.kind, new.source, new.id, old.at_ms, new.deadline_ms)
    withdrawn = old if new is None else None
    return Standing(new, poll.hint, known=True, withdrawn=withdrawn)


def most_urgent(notices: Iterable[NodeNotice]) -> NodeNotice | None:
    """The earliest deadline, those without one last; ties by kind and id. None of none."""
    return min(notices, key=_urgency, default=None)


def _urgency(notice: NodeNotice) -> tuple[bool, int, str, str]:
    return (notice.deadline_ms is None, notice.deadline_ms or 0, notice.kind, notice.id)

"""When the status branch is due for a commit. Pure; called by publish.

Times are seconds of the monotonic clock. A change goes out at once when the last commit is
a flush interval old, else at the end of it; an urgent one after a second; a heartbeat only
with a report newer than the one pushed, so that silence means that nobody works.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BackOff", "PublishState", "due_at"]

URGENT_SPACING = 1.0
"""Least seconds between commits, so that a fleet in trouble does not flood its forge."""
FIRST_RETRY = 5.0
LONGEST_RETRY = 300.0


@dataclass(frozen=True, slots=True)
class PublishState:
    """What is known of the branch and of the newest report.

    `published` is the substance on the branch, `offered` that of the newest report,
    `urgent` whether any report since the last commit was. `committed_at` is None before
    the first commit of this process.
    """

    published: str = ""
    offered: str = ""
    urgent: bool = False
    newer: bool = False
    committed_at: float | None = None
    retry_at: float | None = None


def due_at(state: PublishState, flush_interval: float, heartbeat: float) -> float | None:
    """When to commit, None = not before something changes. At or before now means now.

    After a failure it is tried again even where nothing is left to say: only a commit
    shows that the branch takes them again.
    """
    if not state.newer:
        return None
    last = state.committed_at
    if state.offered != state.published or state.retry_at is not None:
        spacing = URGENT_SPACING if state.urgent else flush_interval
        due = 0.0 if last is None else last + spacing
    else:
        due = 0.0 if last is None else last + heartbeat
    return due if state.retry_at is None else max(due, state.retry_at)


@dataclass(slots=True)
class BackOff:
    """Seconds to wait after failures in a row: 5, 10, 20, … up to 300."""

    failures: int = 0

    def failed(self) -> float:
        """Count a failure; seconds until the next try."""
        self.failures += 1
        return float(min(LONGEST_RETRY, FIRST_RETRY * 2 ** min(self.failures - 1, 10)))

    def worked(self) -> None:
        """Start over."""
        self.failures = 0

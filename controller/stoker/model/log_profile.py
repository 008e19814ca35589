"""How the log of an engine tells the phases of its start: one entry of a log profile.

Made by source from policies/logs/*.yaml, used by objects.start_log. Plain texts, no
patterns: a log line of somebody's engine can then cost no more than its length.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LogMark", "LogProfile"]


@dataclass(frozen=True, slots=True)
class LogMark:
    """A line that holds any of `texts` says that the milestone is reached.

    The first such line counts, or with `last` the last one: a tensor-parallel engine logs
    once a worker, and weights are loaded when the slowest of them says so.
    """

    milestone: str
    texts: tuple[str, ...]
    last: bool = False


@dataclass(frozen=True, slots=True)
class LogProfile:
    """One engine in one range of versions: from `since`, below `before` (empty: no end).

    Versions are their whole numbers, (0, 28) for 0.28. `images` are parts of image names
    that tell the engine, `version_texts` what stands before its version in the log.
    """

    engine: str
    since: tuple[int, ...]
    before: tuple[int, ...]
    images: tuple[str, ...]
    version_texts: tuple[str, ...]
    marks: tuple[LogMark, ...]
    path: str = ""
    """The file, for people."""

    def covers(self, version: tuple[int, ...]) -> bool:
        """Whether that version is in the range; an unknown one (empty) never is."""
        return (
            bool(version) and self.since <= version and (not self.before or version < self.before)
        )

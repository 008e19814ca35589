"""How a count falls: the highest of a window, in steps, and no faster than one a round.

Used by scale, for both algorithms. All of it acts on recommendations within the bounds.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Recommended", "remembered", "stepped", "window_ends_ms"]

Recommended: TypeAlias = tuple[tuple[int, int], ...]
"""(since when, count) of each recommendation that still counts: earlier ones are higher. One
holds until the next began, so a count that does not change changes nothing here."""

MOST_KEPT = 16
"""Recommendations kept. Of more the newest but one is dropped, so the one before it, which is
higher, is held for longer."""


def remembered(
    past: Recommended, count: int, now: int, *, window_ms: int, now_ms: int
) -> Recommended:
    """The window with one more recommendation; its highest is the first. Without a past the
    window starts at the present count, `now`.
    """
    kept = [(min(since_ms, now_ms), each) for since_ms, each in past] or [(now_ms, now)]
    since_ms = now_ms
    while kept and kept[-1][1] <= count:
        since_ms = kept.pop()[0]
    kept.append((since_ms, count))
    while len(kept) > 1 and kept[1][0] <= now_ms - window_ms:
        del kept[0]
    while len(kept) > MOST_KEPT:
        del kept[-2]
    return tuple(kept)


def window_ends_ms(recommended: Recommended, window_ms: int) -> int | None:
    """When the highest leaves the window; None while it is what is recommended now."""
    return recommended[1][0] + window_ms if len(recommended) > 1 else None


def stepped(now: int, desired: int, *, max_step: int) -> int:
    """The count of this step: up at once, down by at most `max_step` (0 is no bound)."""
    if not max_step:
        return desired
    return max(desired, now - max_step)

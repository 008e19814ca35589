"""Whether new revisions may be applied now, by the fleet's change windows, and until when. Pure.

Deny wins over Allow. With at least one Allow window everything outside of them is closed;
with Deny windows alone everything outside of them is open. Called by gates.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stoker.decide.cron import parse, strikes, zone_of
from stoker.model.flow import ChangeWindow, WindowKind

__all__ = ["Opening", "opening"]

HORIZON_MS = 5 * 366 * 86_400_000
"""How far ahead an opening is looked for: 29 February comes at least every eighth year, and
nobody waits that long."""
MOST_EDGES = 2_000


@dataclass(frozen=True, slots=True)
class Opening:
    """`closed_by` names the windows that keep it closed, empty while it is open.

    `until_ms` is when a closed one opens, None when that is not foreseen.
    """

    closed_by: tuple[str, ...] = ()
    until_ms: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether new revisions may be applied."""
        return not self.closed_by


def opening(windows: Sequence[ChangeWindow], now_ms: int) -> Opening:
    """Judge the windows at one instant; `schedule` and `time_zone` must have been checked."""
    active = [_active(window, now_ms) for window in windows]
    closed_by = _closed_by(windows, active)
    if not closed_by:
        return Opening()
    for instant_ms, group in _edges(windows, now_ms):
        for number, change in group:
            active[number] += change
        if not _closed_by(windows, active):
            return Opening(closed_by, instant_ms)
    return Opening(closed_by)


def _closed_by(windows: Sequence[ChangeWindow], active: Sequence[int]) -> tuple[str, ...]:
    pairs = list(zip(windows, active, strict=True))
    denying = [w.name for w, count in pairs if count and w.kind is WindowKind.DENY]
    if denying:
        return tuple(sorted(denying))
    allowing = [(w.name, count) for w, count in pairs if w.kind is WindowKind.ALLOW]
    if any(count for _, count in allowing):
        return ()
    return tuple(sorted(name for name, _ in allowing))


def _active(window: ChangeWindow, now_ms: int) -> int:
    """How many of its strikes are still open: one that strikes often may overlap itself."""
    return sum(1 for _ in _strikes(window, now_ms - window.duration_ms, now_ms))


def _strikes(window: ChangeWindow, from_ms: int, to_ms: int) -> Iterator[int]:
    return strikes(parse(window.schedule), zone_of(window.time_zone), from_ms, to_ms)


def _edges(
    windows: Sequence[ChangeWindow], now_ms: int
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Instants after now at which windows open (+1) or close (-1), rising, grouped."""
    streams: list[Iterator[tuple[int, int, int]]] = []
    for number, window in enumerate(windows):
        streams += [_opens(number, window, now_ms), _closes(number, window, now_ms)]
    at_ms: int | None = None
    group: list[tuple[int, int]] = []
    for count, (instant_ms, number, change) in enumerate(heapq.merge(*streams)):
        if instant_ms != at_ms and at_ms is not None:
            yield at_ms, group
            group = []
        if count >= MOST_EDGES:
            return
        at_ms = instant_ms
        group.append((number, change))
    if at_ms is not None:
        yield at_ms, group


def _opens(number: int, window: ChangeWindow, now_ms: int) -> Iterator[tuple[int, int, int]]:
    for instant_ms in _strikes(window, now_ms, now_ms + HORIZON_MS):
        yield instant_ms, number, 1


def _closes(number: int, window: ChangeWindow, now_ms: int) -> Iterator[tuple[int, int, int]]:
    for instant_ms in _strikes(window, now_ms - window.duration_ms, now_ms + HORIZON_MS):
        yield instant_ms + window.duration_ms, number, -1

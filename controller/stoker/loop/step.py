"""When to run which pass: pure, so that tests and virtual time call it without threads.

Takes the loop's state, the events since the last call and the time; gives the pass to run
now (or none) and the instant to look again. `loop.Loop` feeds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from stoker.errors import Finding
from stoker.model.refs import SourceRevision

__all__ = ["Event", "EventKind", "LoopState", "Next", "PassKind", "Timing", "after_pass", "step"]


class EventKind(StrEnum):
    """What another thread saw."""

    REVISION = "revision"
    """The Git poller has an answer: a revision, or the error in `finding`."""
    OBJECT = "object"
    """A watch saw a change that concerns the fleet."""
    READINGS = "readings"
    """Services that scale were measured; `detail` names the first."""
    NOTICE = "notice"
    """A node announced that it goes away."""
    WAKE = "wake"
    """Somebody asks for a pass (HTTP, signal, a thread that recovered)."""
    STOP = "stop"
    """End cleanly."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, at a monotonic second."""

    kind: EventKind
    at: float
    revision: SourceRevision | None = None
    finding: Finding | None = None
    detail: str = ""


class PassKind(StrEnum):
    """How much a pass looks at."""

    FULL = "full"
    NOTICE = "notice"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations that step obeys, in seconds; from LoopSettings."""

    coalesce: float = 0.2
    backoff_first: float = 1.0
    backoff_max: float = 300.0
    full_pass: float = 600.0


@dataclass(frozen=True, slots=True)
class LoopState:
    """What step remembers. Instants are monotonic seconds; None means not set.

    `dirty_since` is when the first event not yet worked on came; `not_before` the end of
    the back-off after a failed pass; `wake_at` what the last pass asked for.
    """

    revision: SourceRevision | None = None
    worked_revision: SourceRevision | None = None
    source_finding: Finding | None = None
    dirty_since: float | None = None
    notices: tuple[str, ...] = ()
    failures: int = 0
    not_before: float = 0.0
    wake_at: float | None = None
    last_pass: float | None = None
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class Next:
    """Run `kind` now; look again at `look_at` (None = at the next event)."""

    kind: PassKind
    look_at: float | None
    state: LoopState = field(repr=False)


def step(state: LoopState, events: tuple[Event, ...], now: float, timing: Timing) -> Next:
    """Fold events into the state and say what to run.

    A notice runs at once; a new revision ends a back-off; everything else is coalesced
    for `timing.coalesce` seconds so that a burst of events is one pass.
    """
    for event in events:
        state = _fold(state, event)
    if state.stopping:
        return Next(PassKind.NONE, None, state)
    if state.notices:
        return Next(PassKind.NOTICE, now, state)
    due = _due(state, timing)
    if due is not None and now >= due:
        return Next(PassKind.FULL, now, state)
    return Next(PassKind.NONE, due, state)


def after_pass(
    state: LoopState,
    *,
    kind: PassKind,
    now: float,
    failed: bool,
    wake_in: float | None,
    timing: Timing,
) -> LoopState:
    """The state after a pass ended: dirt cleared, back-off set or reset, wake-up noted.

    `wake_in` is seconds from now at which the pass wants to be run again.
    """
    wake_at = None if wake_in is None else now + max(wake_in, 0.0)
    if kind is PassKind.NOTICE:
        return replace(state, notices=(), dirty_since=now, wake_at=wake_at)
    failures = state.failures + 1 if failed else 0
    delay = 0.0
    if failed:
        delay = min(timing.backoff_max, timing.backoff_first * 2 ** min(failures - 1, 16))
    return replace(
        state,
        dirty_since=now if failed else None,
        failures=failures,
        not_before=now + delay,
        wake_at=wake_at,
        last_pass=now,
        worked_revision=state.revision,
    )


def _fold(state: LoopState, event: Event) -> LoopState:
    match event.kind:
        case EventKind.STOP:
            return replace(state, stopping=True)
        case EventKind.NOTICE:
            return replace(state, notices=(*state.notices, event.detail))
        case EventKind.REVISION:
            return _fold_revision(state, event)
        case EventKind.OBJECT | EventKind.READINGS | EventKind.WAKE:
            return _dirty(state, event.at)


def _fold_revision(state: LoopState, event: Event) -> LoopState:
    changed = event.revision is not None and event.revision != state.revision
    news = changed or event.finding != state.source_finding
    state = replace(state, source_finding=event.finding)
    if changed:
        state = replace(state, revision=event.revision, failures=0, not_before=event.at)
    return _dirty(state, event.at) if news else state


def _dirty(state: LoopState, at: float) -> LoopState:
    return state if state.dirty_since is not None else replace(state, dirty_since=at)


def _due(state: LoopState, timing: Timing) -> float | None:
    """The earliest instant at which a full pass should run, or None."""
    wishes = []
    if state.dirty_since is not None:
        wishes.append(max(state.dirty_since + timing.coalesce, state.not_before))
    if state.wake_at is not None:
        wishes.append(max(state.wake_at, state.not_before))
    if state.last_pass is not None:
        wishes.append(state.last_pass + timing.full_pass)
    return min(wishes) if wishes else None

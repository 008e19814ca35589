"""When passes run: the promises of the design's concurrency section, without threads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import Finding, SourceLocation
from stoker.loop.step import Event, EventKind, LoopState, PassKind, Timing, after_pass, step
from stoker.model.refs import SourceRevision

TIMING = Timing(coalesce=0.2, backoff_first=1, backoff_max=60, full_pass=600)
FIRST = SourceRevision("main", "a" * 40)
SECOND = SourceRevision("main", "b" * 40)


def revision(at: float, which: SourceRevision = FIRST) -> Event:
    return Event(EventKind.REVISION, at, revision=which)


def idle(at: float = 100.0, **changes) -> LoopState:
    """A loop that has worked on FIRST and has nothing to do."""
    state = step(LoopState(), (revision(at),), at, TIMING).state
    done = after_pass(state, kind=PassKind.FULL, now=at, failed=False, wake_in=None, timing=TIMING)
    return done if not changes else LoopState(**{**_fields(done), **changes})


def _fields(state: LoopState) -> dict:
    return {name: getattr(state, name) for name in LoopState.__dataclass_fields__}


def test_nothing_happens_before_the_first_revision():
    """A loop without a source has nothing to compare the cluster with."""
    following = step(LoopState(), (), 5.0, TIMING)

    assert (PassKind.NONE, None) == (following.kind, following.look_at)


def test_a_burst_of_events_is_one_pass_after_the_coalescing_time():
    """Two hundred milliseconds of events are worked on together."""
    events = tuple(Event(EventKind.OBJECT, 200.0 + i / 100) for i in range(10))

    early = step(idle(), events, 200.1, TIMING)
    late = step(early.state, (), 200.2, TIMING)

    assert early.kind is PassKind.NONE
    assert 200.2 == pytest.approx(early.look_at)
    assert late.kind is PassKind.FULL


def test_readings_are_worked_on_as_any_news():
    """A count follows its metrics at their interval, not at the next change of an object."""
    event = Event(EventKind.READINGS, 200.0, detail="ModelService/llm/qwen")
    before = step(idle(), (event,), 200.1, TIMING)
    after = step(before.state, (), 200.2, TIMING)

    assert (PassKind.NONE, PassKind.FULL) == (before.kind, after.kind)


def test_a_notice_runs_at_once_even_during_back_off():
    """Two minutes are all a spot node gives; nothing else may stand in front."""
    state = idle(not_before=1e9, failures=5)

    following = step(state, (Event(EventKind.NOTICE, 200.0, detail="gpu-1"),), 200.0, TIMING)

    assert following.kind is PassKind.NOTICE


def test_fifty_notices_among_other_news_are_one_pass_at_once():
    """cases.md row 131: notices queued behind two hundred other messages and came too late."""
    news = [Event(EventKind.OBJECT, 200.0 + number / 250) for number in range(200)]
    notices = [
        Event(EventKind.NOTICE, 200.0 + number / 50, detail=f"gpu-{number}") for number in range(50)
    ]
    events = tuple(sorted((*news, *notices), key=lambda event: event.at))

    following = step(idle(not_before=1e9, failures=5), events, 201.0, TIMING)
    after = after_pass(
        following.state,
        kind=PassKind.NOTICE,
        now=201.5,
        failed=False,
        wake_in=None,
        timing=TIMING,
    )

    assert following.kind is PassKind.NOTICE
    assert following.look_at == 201.0
    assert {f"gpu-{number}" for number in range(50)} == set(following.state.notices)
    assert () == after.notices, "one pass answers all of them"


def test_the_same_revision_again_is_no_news():
    """Idle polls start no pass (design: one ls-remote per poll, nothing else)."""
    following = step(idle(), (revision(150.0),), 151.0, TIMING)

    assert following.kind is PassKind.NONE


def test_a_new_revision_ends_the_back_off():
    """A fix that was pushed must not wait for the back-off of the fault."""
    state = idle(not_before=5000.0, failures=9)

    following = step(state, (revision(200.0, SECOND),), 200.2, TIMING)

    assert following.kind is PassKind.FULL
    assert following.state.failures == 0


def test_a_source_error_is_reported_once():
    """The pass that reports it runs; the same error again starts none."""
    finding = Finding(SourceLocation(), "repository-unreachable", "no answer")
    failed = Event(EventKind.REVISION, 200.0, finding=finding)

    first = step(idle(), (failed,), 200.2, TIMING)
    done = after_pass(
        first.state, kind=PassKind.FULL, now=200.3, failed=False, wake_in=None, timing=TIMING
    )
    second = step(done, (Event(EventKind.REVISION, 230.0, finding=finding),), 231.0, TIMING)

    assert first.kind is PassKind.FULL
    assert first.state.revision == FIRST
    assert second.kind is PassKind.NONE


def test_failed_passes_back_off_and_stay_dirty():
    """1, 2, 4 … seconds up to the cap, and never forgotten."""
    state, waits = idle(), []
    for _ in range(9):
        state = after_pass(
            state, kind=PassKind.FULL, now=1000.0, failed=True, wake_in=None, timing=TIMING
        )
        waits.append(state.not_before - 1000.0)

    assert [1, 2, 4, 8, 16, 32, 60, 60, 60] == waits
    assert step(state, (), 1000.0 + 60, TIMING).kind is PassKind.FULL


def test_a_wish_to_wake_up_is_kept():
    """Waiting is an outcome: the deadline starts the next pass."""
    state = after_pass(
        idle(), kind=PassKind.FULL, now=200.0, failed=False, wake_in=15.0, timing=TIMING
    )

    assert step(state, (), 214.9, TIMING).kind is PassKind.NONE
    assert step(state, (), 215.0, TIMING).kind is PassKind.FULL


def test_a_full_pass_runs_at_least_every_ten_minutes():
    """A lost watch event heals by itself (cases.md row 87)."""
    assert step(idle(at=100.0), (), 700.0, TIMING).kind is PassKind.FULL


def test_stop_beats_everything():
    """A clean stop starts nothing new."""
    events = (Event(EventKind.NOTICE, 1.0, detail="n"), Event(EventKind.STOP, 1.0))

    following = step(idle(), events, 1.0, TIMING)

    assert following.kind is PassKind.NONE
    assert following.state.stopping


EVENTS = st.lists(
    st.sampled_from([EventKind.OBJECT, EventKind.WAKE, EventKind.NOTICE, EventKind.REVISION]),
    max_size=8,
)


@given(EVENTS, st.booleans())
def test_every_event_but_old_news_leads_to_a_pass(kinds, failed):
    """a.5 W5: nothing is lost, whatever the order, also when the first pass fails."""
    events = tuple(
        Event(kind, 200.0, revision=SECOND if kind is EventKind.REVISION else None, detail="n")
        for kind in kinds
    )
    following = step(idle(), events, 200.0, TIMING)
    ran = 0
    state, now = following.state, 200.0
    kind = following.kind
    for _ in range(6):
        if kind is not PassKind.NONE:
            ran += 1
            state = after_pass(
                state, kind=kind, now=now, failed=failed and ran == 1, wake_in=None, timing=TIMING
            )
        now += 2.0
        following = step(state, (), now, TIMING)
        state, kind = following.state, following.kind

    assert (ran > 0) == bool(events)
    assert kind is PassKind.NONE

"""Phases follow each other without gap, and what nobody saw is unknown rather than zero."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
from hypothesis import given

from stoker.objects.start_phases import Milestone, Phase, Span, spans_of

instants = st.dictionaries(st.sampled_from(Milestone), st.integers(0, 10_000_000))
ordered = st.lists(st.sampled_from(Milestone), unique=True).flatmap(
    lambda found: st.lists(st.integers(0, 600_000), min_size=len(found), max_size=len(found)).map(
        lambda gaps: {
            each: 1_000_000 + sum(gaps[: place + 1])
            for place, each in enumerate(sorted(found, key=list(Milestone).index))
        }
    )
)


@given(instants)
def test_spans_never_overlap_and_leave_no_gap(found):
    spans = spans_of(found)

    for before, after in pairwise(spans):
        assert before.end_ms is not None
        assert before.end_ms == after.begin_ms
    for span in spans:
        assert span.took_ms is None or span.took_ms >= 0


@given(instants)
def test_the_spans_that_are_known_add_up_to_the_whole(found):
    known = [span for span in spans_of(found) if span.took_ms is not None]

    if known:
        whole = (known[-1].end_ms or 0) - (known[0].begin_ms or 0)
        assert whole == sum(span.took_ms or 0 for span in known)


@given(ordered)
def test_every_instant_that_fits_is_the_end_of_a_phase(found):
    """Otherwise time would be lost in a neighbour."""
    edges = {ms for span in spans_of(found) for ms in (span.begin_ms, span.end_ms)}

    assert set(found.values()) <= edges


@given(ordered, st.sampled_from([Milestone.PULLED, Milestone.SERVING]))
def test_a_milestone_that_was_not_seen_makes_the_phases_around_it_unknown(found, missing):
    """They share a span: neither has a time of its own."""
    seen = {each: ms for each, ms in found.items() if each is not missing}
    around = {
        Milestone.PULLED: {Phase.IMAGE_PULL, Phase.CONTAINER_START},
        Milestone.SERVING: {Phase.ENGINE_INIT, Phase.PROBE},
    }

    assert any(around[missing] <= set(span.phases) for span in spans_of(seen))


@given(ordered)
def test_every_phase_is_told_once(found):
    phases = [phase for span in spans_of(found) for phase in span.phases]

    assert len(phases) == len(set(phases))


def test_nothing_known_gives_one_span_without_ends():
    (span,) = spans_of({})

    assert span.took_ms is None
    assert Phase.NODE not in span.phases


def test_a_phase_between_two_known_instants_is_known_exactly():
    spans = spans_of({Milestone.PULLING: 1_000, Milestone.PULLED: 5_000, Milestone.READY: 9_000})

    assert Span((Phase.IMAGE_PULL,), 1_000, 5_000) in spans
    assert spans[-1] == Span(
        (
            Phase.CONTAINER_START,
            Phase.PROCESS,
            Phase.WEIGHTS,
            Phase.ENGINE_INIT,
            Phase.PROBE,
        ),
        5_000,
        9_000,
    )


def test_a_clock_that_is_wrong_makes_its_own_instant_unknown_and_no_other():
    """The node's clock is an hour behind: the log contradicts three instants of the API server."""
    spans = spans_of(
        {
            Milestone.SCHEDULED: 3_600_000,
            Milestone.PULLING: 3_602_000,
            Milestone.STARTED: 3_700_000,
            Milestone.LOADED: 160_000,
            Milestone.READY: 3_760_000,
        }
    )

    assert spans[-1].phases[-1] is Phase.PROBE
    assert (3_700_000, 3_760_000) == (spans[-1].begin_ms, spans[-1].end_ms)


def test_instants_within_one_second_are_put_in_order():
    """The Ready condition has whole seconds, the log line before it has nanoseconds."""
    spans = spans_of({Milestone.SERVING: 60_900, Milestone.READY: 60_000})

    assert spans[-1] == Span((Phase.PROBE,), 60_900, 60_900)


def test_names_follow_what_the_start_had():
    with_all = {each: number * 1_000 for number, each in enumerate(Milestone)}

    told = [span.phases[0] for span in spans_of(with_all)]

    assert told == [
        Phase.QUEUE,
        Phase.NODE,
        Phase.SETUP,
        Phase.INIT_CONTAINERS,
        Phase.IMAGE_PULL,
        Phase.CONTAINER_START,
        Phase.CRASHES,
        Phase.PROCESS,
        Phase.CONFIG,
        Phase.DEVICE,
        Phase.DOWNLOAD,
        Phase.WEIGHTS,
        Phase.COMPILE,
        Phase.GRAPHS,
        Phase.ENGINE_INIT,
        Phase.PROBE,
    ]
    assert Phase.SCHEDULE in [p for s in spans_of({Milestone.CREATED: 0}) for p in s.phases]

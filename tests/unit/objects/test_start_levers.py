"""Levers: the guide's stack, and what holds of every start."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stoker.objects.start_levers import LEVERS, savings_of, with_levers
from stoker.objects.start_phases import Phase, Span

BY_NAME = {lever.name: lever for lever in LEVERS}
GUIDE = {
    Phase.IMAGE_PULL: 40_000,
    Phase.PROCESS: 4_000,
    Phase.CONFIG: 2_000,
    Phase.WEIGHTS: 30_000,
    Phase.COMPILE: 5_000,
    Phase.GRAPHS: 8_000,
    Phase.ENGINE_INIT: 3_000,
}
"""Seed 002's stack with the terms of semantics section 6: image, init, config, weights,
autotune, graphs, warm-up."""
GUIDES = ("slim-image", "local-weights", "streamer", "graph-reuse", "snapshot")

terms = st.dictionaries(st.sampled_from(Phase), st.integers(0, 3_600_000))
levers = st.sets(st.sampled_from([lever.name for lever in LEVERS]))


def left(of, *names):
    return with_levers(of, [BY_NAME[name] for name in names])


def test_the_guides_stack_takes_92_seconds_and_21_with_every_lever():
    assert 92_000 == sum(left(GUIDE).values())
    assert 21_000 == sum(left(GUIDE, *GUIDES).values())


def test_weights_are_the_largest_term_that_is_left():
    """The guide's conclusion: the model's bytes are the floor."""
    after = left(GUIDE, *GUIDES)

    assert Phase.WEIGHTS == max(after, key=lambda phase: after[phase])
    assert 10_000 == after[Phase.WEIGHTS]
    assert 6_000 == after[Phase.IMAGE_PULL]


def test_graph_reuse_and_snapshot_do_not_add_up_twice():
    assert left(GUIDE, "snapshot") == left(GUIDE, "snapshot", "graph-reuse")


@given(terms, levers)
def test_a_lever_touches_only_the_phases_it_names(found, names):
    touched = {phase for name in names for phase in BY_NAME[name].touches}
    after = left(found, *names)

    assert {phase: ms for phase, ms in found.items() if phase not in touched} == {
        phase: ms for phase, ms in after.items() if phase not in touched
    }


@given(terms, levers, st.sampled_from(LEVERS))
def test_one_more_lever_never_makes_a_start_longer(found, names, more):
    before = left(found, *names)
    after = left(found, *{*names, more.name})

    assert sum(after.values()) <= sum(before.values())
    assert all(ms >= 0 for ms in after.values())


@given(st.lists(st.integers(0, 900_000), min_size=len(Phase), max_size=len(Phase)))
def test_of_a_start_known_phase_by_phase_each_saving_is_exact(times):
    found = dict(zip(Phase, times, strict=True))
    begin, spans = 0, []
    for phase, ms in found.items():
        spans.append(Span((phase,), begin, begin + ms))
        begin += ms

    for saving in savings_of(spans):
        assert saving.saves_ms == sum(times) - sum(with_levers(found, [saving.lever]).values())
        assert (saving.saves_ms or 0) > 0


@given(
    st.integers(0, 900_000),
    st.integers(0, 900_000),
    st.integers(0, 900_000),
    st.sampled_from(LEVERS),
)
def test_of_phases_that_are_known_together_a_saving_has_bounds(process, weights, init, lever):
    """However the time divides, what the lever saves lies between them."""
    whole = Span((Phase.PROCESS, Phase.WEIGHTS, Phase.ENGINE_INIT), 0, process + weights + init)
    truth = {Phase.PROCESS: process, Phase.WEIGHTS: weights, Phase.ENGINE_INIT: init}
    saved = process + weights + init - sum(with_levers(truth, [lever]).values())
    told = next((each for each in savings_of([whole]) if each.lever is lever), None)

    assert (told.least_ms if told else 0) <= saved <= (told.most_ms if told else 0)
    assert told is None or told.saves_ms in {None, saved}


def test_what_is_unknown_saves_nothing_that_one_could_promise():
    assert () == savings_of([Span((Phase.IMAGE_PULL,), None, 5_000)])


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_every_lever_says_what_to_do_and_where_its_figures_are_from(lever):
    assert lever.what
    assert lever.source
    assert lever.touches
    assert not {phase for phase, _, _ in lever.keeps} & set(lever.replaces)

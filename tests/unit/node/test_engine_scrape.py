"""Two rounds over a node's engines: what they say together, and when they say nothing."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.engine.counters import EngineCounters
from stoker.node.engine_scrape import Round, Window, scrape, tokens_per_joule, window
from stoker.sim.engine import Engine


def engine(tokens: float = 0, queries: float = 0, hits: float = 0, label: str = "a"):
    return EngineCounters({label: tokens}, {label: queries}, {label: hits}, 1, 2)


def a_round(*engines: EngineCounters) -> Round:
    return Round({f"10.0.0.{n}:8000": each for n, each in enumerate(engines)})


def test_tokens_and_hits_are_summed_over_engines():
    before = a_round(engine(10, 100, 50), engine(0, 0, 0))
    after = a_round(engine(30, 140, 60), engine(5, 60, 65 - 15))

    assert window(before, after) == Window(25.0, 0.6)


def test_the_first_round_measures_nothing():
    assert window(None, a_round(engine(10, 10, 5))) == Window()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(a_round(engine(10)), a_round(engine(9)), id="started anew"),
        pytest.param(a_round(engine(1)), a_round(engine(2), engine(1)), id="an engine more"),
        pytest.param(a_round(engine(1), engine(1)), a_round(engine(2)), id="an engine less"),
        pytest.param(a_round(engine(1)), a_round(engine(5, label="b")), id="another series"),
        pytest.param(a_round(engine(1)), a_round(EngineCounters(running=1)), id="no such counter"),
        pytest.param(Round(), Round(), id="no engine"),
        pytest.param(Round(missing={"x": "hung"}), a_round(engine(5)), id="incomplete before"),
        pytest.param(
            a_round(engine(1)),
            Round(a_round(engine(5)).engines, {"x": "hung"}),
            id="incomplete after",
        ),
    ],
)
def test_rounds_that_do_not_fit_together_measure_no_tokens(before, after):
    assert window(before, after).generation_tokens is None


def test_one_of_two_engines_that_starts_anew_is_not_hidden_by_the_other():
    """The sum still grows."""
    before = a_round(engine(10), engine(100))
    after = a_round(engine(900), engine(0))

    assert window(before, after).generation_tokens is None


def test_a_cache_that_nobody_asked_has_no_hit_rate():
    """Not 0: that would rank the node last."""
    assert window(a_round(engine(1, 5, 5)), a_round(engine(2, 5, 5))) == Window(1.0, None)


def test_more_hits_than_queries_are_not_believed():
    assert window(a_round(engine()), a_round(engine(0, 5, 6))).cache_hit_rate is None


def test_an_idle_window_has_no_tokens_and_that_is_known():
    assert window(a_round(engine(5)), a_round(engine(5))).generation_tokens == 0.0


@pytest.mark.parametrize(
    ("tokens", "joules", "expected"),
    [(30.0, 20.0, 1.5), (0.0, 5.0, 0.0), (None, 5.0, None), (5.0, None, None), (5.0, 0.0, None)],
)
def test_tokens_per_joule_need_both_of_one_window(tokens, joules, expected):
    assert expected == tokens_per_joule(tokens, joules)


def test_load_is_summed_only_when_every_engine_says_it():
    whole = a_round(engine(), engine())
    part = Round(whole.engines, {"x": "hung"})
    silent = a_round(engine(), EngineCounters({"a": 1.0}))

    assert (whole.running(), whole.waiting()) == (2, 4)
    assert (part.running(), part.waiting()) == (None, None)
    assert (silent.running(), silent.waiting()) == (None, None)
    assert Round().running() is None


COUNTS = st.floats(0, 1e12)
ENGINES = st.builds(engine, COUNTS, COUNTS, COUNTS, st.sampled_from("ab"))
ROUNDS = st.lists(ENGINES, max_size=3).map(lambda engines: a_round(*engines))


@given(ROUNDS, ROUNDS)
def test_what_is_measured_is_sane(before, after):
    found = window(before, after)

    assert found.generation_tokens is None or found.generation_tokens >= 0
    assert found.cache_hit_rate is None or 0 <= found.cache_hit_rate <= 1


def test_engines_are_asked_and_those_that_are_gone_are_told_apart():
    with Engine() as gone:
        address = gone.address
    with Engine() as running:
        before = scrape([running.address], 5.0)
        body = {"model": "model", "prompt": "hello", "max_tokens": 4}
        httpx.post(f"http://{running.address}/v1/completions", json=body, timeout=20)
        after = scrape([running.address], 5.0)
        both = scrape([running.address, address], 5.0)

    assert before.complete
    assert window(before, after).generation_tokens == 4.0
    assert not both.complete
    assert both.gone == {address}
    assert list(both.missing) == [address]

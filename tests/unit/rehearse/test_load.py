"""The requests are those that the scenario declares, the same for the same seed."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from stoker.rehearse.load import Endpoint, EndpointHistory, Sizes, arrivals
from stoker.rehearse.schema import LoadBlock, OutputBlock


def test_answers_have_the_declared_median_tail_and_share_of_very_long_ones():
    """P50 8 s, P99 90 s, 0.1 % over 300 s; drawn from a fixed seed."""
    sizes = Sizes(OutputBlock(), "1/a")
    drawn = sorted(sizes.draw() for _ in range(100_000))

    assert 7_800 < drawn[50_000] < 8_200
    assert 85_000 < drawn[99_000] < 97_000
    assert 60 < sum(size > 300_000 for size in drawn) < 150


def test_requests_are_evenly_spaced_and_clients_take_turns():
    drawn = list(islice(arrivals(LoadBlock(), "a", 1), 30))

    assert [100 * number for number in range(30)] == [at for at, *_ in drawn]
    assert ["lag-0s", "lag-2s", "lag-10s"] * 10 == [client for _, client, *_ in drawn]


@given(st.integers(0, 1000))
def test_a_seed_draws_the_same_requests_again(seed):
    first, again = (list(islice(arrivals(LoadBlock(), "a", seed), 20)) for _ in range(2))

    assert first == again


def test_a_client_that_is_behind_sees_the_list_of_then():
    history = EndpointHistory()
    old, new = (Endpoint("p1"),), (Endpoint("p2"),)
    history.note(1_000, old)
    history.note(5_000, new)

    assert new == history.seen(5_000, 0)
    assert old == history.seen(5_000, 1)
    assert old == history.seen(14_999, 10_000)
    assert new == history.seen(15_000, 10_000)


def test_before_the_first_list_the_first_is_seen():
    """A client that is further behind than the rehearsal is old knows no other."""
    history = EndpointHistory()

    assert () == history.seen(0, 0)
    history.note(1_000, (Endpoint("p1"),))
    assert (Endpoint("p1"),) == history.seen(1_000, 10_000)

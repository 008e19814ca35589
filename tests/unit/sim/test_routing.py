"""Routers: who gets a request."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stoker.sim.routing import MOST_BEHIND, RouterName, router_named
from stoker.sim.traffic import Request

ANY = Request(0.0, 10, 10)


@dataclass
class Replica:
    number: int
    load: int = 0


def asking(*prefix: int) -> Request:
    return Request(0.0, 10_000, 10, prefix)


def test_round_robin_takes_turns_whoever_comes_and_goes():
    router = router_named(RouterName.ROUND_ROBIN)
    three = [Replica(0), Replica(1), Replica(2)]
    turns = [router.choose(ANY, three) for _ in range(4)]
    left = [Replica(1), Replica(2)]

    assert [0, 1, 2, 0] == turns
    assert [1, 2] == [left[router.choose(ANY, left)].number for _ in range(2)]


def test_least_queue_takes_the_least_busy_and_of_several_the_first():
    router = router_named(RouterName.LEAST_QUEUE)

    assert 1 == router.choose(ANY, [Replica(0, 3), Replica(4, 1), Replica(7, 1)])


def test_a_prefix_goes_where_it_went_before():
    router = router_named(RouterName.PREFIX)
    replicas = [Replica(0), Replica(1)]
    router.choose(asking(1, 2, 3), replicas)
    replicas[0].load = MOST_BEHIND

    assert 0 == router.choose(asking(1, 2, 9), replicas)
    assert 1 == router.choose(asking(5, 6), replicas)


def test_the_longest_known_beginning_wins():
    router = router_named(RouterName.PREFIX)
    router.choose(asking(1), [Replica(0)])
    router.choose(asking(8, 9), [Replica(1)])
    router.choose(asking(1, 8), [Replica(1)])

    assert 1 == router.choose(asking(1, 8, 7), [Replica(0), Replica(1)])


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "too busy"])
def test_a_cache_that_cannot_be_had_falls_back_to_the_least_queue(gone):
    router = router_named(RouterName.PREFIX)
    router.choose(asking(1, 2), [Replica(0)])
    replicas = [Replica(0, MOST_BEHIND + 1), Replica(3, 0)]

    assert (
        3
        == (replicas[1:] if gone else replicas)[router.choose(asking(1, 2), replicas[gone:])].number
    )

"""Prefix blocks: who finds what, what counts as held, and what leaves first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.sim.prefix_cache import PrefixCache


def filled(*prefixes: tuple[int, ...]) -> PrefixCache:
    cache = PrefixCache(4)
    for prefix in prefixes:
        shared = cache.take(prefix)
        cache.publish(prefix, shared)
        cache.give_back(shared)
    return cache


def test_a_beginning_is_found_up_to_its_first_gap():
    cache = filled((1, 2, 3))

    assert 2 == cache.hits((1, 2, 9, 3))
    assert [1, 2] == cache.take((1, 2, 9))
    assert 8 == cache.held_blocks


def test_what_two_hold_counts_once():
    cache = filled((1, 2))
    first, second = cache.take((1, 2)), cache.take((1, 2))

    assert 8 == cache.held_blocks == cache.saved_blocks((1, 2))
    cache.give_back(first)
    assert 8 == cache.held_blocks
    cache.give_back(second)
    assert (0, [2, 1]) == (cache.held_blocks, list(cache.spare))


def test_a_spare_block_saves_no_room_but_time():
    """It is found, yet it has to be held anew."""
    cache = filled((1, 2))

    assert (2, 0) == (cache.hits((1, 2)), cache.saved_blocks((1, 2)))


def test_the_least_recently_used_leaves_first_and_of_a_prefix_its_end():
    cache = filled((1, 2, 3), (7, 8))
    cache.keep_within(8)

    assert [8, 7] == list(cache.spare)
    cache.keep_within(4)
    assert [7] == list(cache.spare)


def test_what_is_held_stays_however_little_room_there_is():
    cache = filled((1, 2), (3,))
    cache.take((1, 2))
    cache.keep_within(0)

    assert (8, 2) == (cache.held_blocks, cache.hits((1, 2)))
    assert 0 == cache.hits((3,))


def test_what_somebody_else_computed_meanwhile_stays_a_copy():
    cache = PrefixCache(4)
    mine, other = cache.take((1, 2)), cache.take((1, 2))

    assert (2, 0) == (cache.publish((1, 2), mine), cache.publish((1, 2), other))
    assert [] == other


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=30), st.integers(0, 40))
def test_nothing_is_held_once_all_have_given_back(taken, room):
    cache, held = PrefixCache(4), []
    for name, length in taken:
        prefix = tuple(name * 10 + block for block in range(length))
        shared = cache.take(prefix)
        cache.publish(prefix, shared)
        held.append(shared)
        cache.keep_within(room)
    for shared in held:
        cache.give_back(shared)
        cache.keep_within(room)

    assert 0 == cache.held_blocks
    assert 4 * len(cache.spare) <= room

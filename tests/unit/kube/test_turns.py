"""Turns at the connections: nobody overtakes, nobody is forgotten."""

import threading

import pytest

from stoker.kube.turns import Turns

SOON = 30.0


def _until_waiting(turns, count):
    for _ in range(10_000_000):
        if len(turns._waiting) == count:
            return
    raise AssertionError("nobody came to wait")


def test_turns_come_in_the_order_they_were_asked_for():
    """Who asks again at once stands behind those that wait already."""
    turns, told, threads = Turns(1), [], []

    def asks(number, times):
        for _ in range(times):
            with turns.taken(SOON) as mine:
                assert mine
                told.append(number)

    with turns.taken(SOON):
        for number in range(5):
            threads.append(threading.Thread(target=asks, args=(number, 2 if number == 0 else 1)))
            threads[-1].start()
            _until_waiting(turns, number + 1)
    for thread in threads:
        thread.join(SOON)

    assert [0, 1, 2, 3, 4, 0] == told


def test_no_more_than_the_given_number_have_a_turn():
    turns = Turns(2)

    with turns.taken(0) as first, turns.taken(0) as second, turns.taken(0) as third:
        assert [True, True, False] == [first, second, third]


def test_a_turn_that_does_not_come_in_time_is_given_up_and_blocks_nobody():
    turns = Turns(1)
    with turns.taken(0), turns.taken(0.01) as second:
        assert not second

    with turns.taken(0) as later:
        assert later


def test_a_turn_ends_with_its_block_even_where_that_fails():
    turns = Turns(1)
    with pytest.raises(ZeroDivisionError), turns.taken(0):
        _ = 1 / 0

    with turns.taken(0) as later:
        assert later


def test_a_turn_handed_over_as_the_time_runs_out_is_taken():
    """Else nobody would have it, and one place were lost for ever."""

    class Late:
        """A lock that is released only after its wait was given up."""

        def acquire(self, timeout=-1.0):
            if timeout >= 0:
                turns._give()  # the holder ends between the wait and its withdrawal
                return False
            return True

        def release(self):
            pass

    turns = Turns(1, Late)
    with turns.taken(0):
        assert turns._take(0.0)
    assert 0 == len(turns._waiting)

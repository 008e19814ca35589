"""When a held lease spares a look."""

from stoker.loop.vouch import SECONDS, Vouch
from stoker.sim.clock import VirtualClock


def test_the_first_answer_of_a_process_is_no():
    assert [False, True] == [vouch() for vouch in [Vouch(lambda: 1, VirtualClock())] * 2]


def test_a_lease_that_is_not_held_vouches_for_nothing():
    vouch = Vouch(lambda: 0, VirtualClock())

    assert [False, False] == [vouch(), vouch()]


def test_another_term_is_looked_into_once():
    """Between two terms another controller may have written."""
    terms = iter([1, 1, 2, 2])
    vouch = Vouch(lambda: next(terms), VirtualClock())

    assert [False, True, False, True] == [vouch() for _ in range(4)]


def test_one_looks_now_and_then_all_the_same():
    """Somebody may delete a ConfigMap by hand."""
    clock = VirtualClock()
    vouch = Vouch(lambda: 1, clock)
    vouch()
    clock.wait(SECONDS)

    assert [False, True] == [vouch(), vouch()]

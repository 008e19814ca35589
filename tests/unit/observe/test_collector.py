import gc
import threading

import pytest

from stoker.observe.collector import collector_off


def test_the_collector_is_off_inside_and_on_again_after_even_on_errors():
    seen = []

    def fail():
        with collector_off():
            seen.append(gc.isenabled())
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()

    assert seen == [False]
    assert gc.isenabled()


def test_it_stays_off_until_the_last_thread_has_left():
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with collector_off():
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(5)
    with collector_off():
        pass
    between = gc.isenabled()
    leave.set()
    thread.join(5)

    assert not between
    assert gc.isenabled()


def test_a_collector_that_was_off_before_stays_off():
    gc.disable()
    try:
        with collector_off():
            pass
        after = gc.isenabled()
    finally:
        gc.enable()

    assert not after

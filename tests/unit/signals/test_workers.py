"""Bounded threads: answers in the order of the questions, and what hangs is left behind."""

from __future__ import annotations

import threading
from functools import partial

from stoker.signals.workers import Workers


def test_results_come_in_the_order_of_the_jobs():
    workers = Workers(3, "test")
    found = workers.begin([partial(pow, number, 2) for number in range(50)])

    assert tuple(number**2 for number in range(50)) == found.results(10)
    assert len(workers._threads) == 3
    workers.close()


def test_a_job_that_hangs_or_crashes_has_no_result_and_takes_no_other_one_along():
    release = threading.Event()
    workers = Workers(4, "test")
    found = workers.begin([lambda: release.wait(30), lambda: 1 // 0, lambda: "well"])

    assert (None, None, "well") == found.results(0.3)
    release.set()
    workers.close()


def test_what_nobody_waits_for_any_more_is_not_begun():
    release, ran = threading.Event(), []
    workers = Workers(1, "test")
    workers.begin([lambda: release.wait(30), lambda: ran.append(1)]).results(0)
    release.set()
    after = workers.begin([lambda: "next"]).results(10)
    workers.close()

    assert (("next",), []) == (after, ran)


def test_no_job_is_no_wait():
    assert Workers(1, "test").begin([]).results(10) == ()

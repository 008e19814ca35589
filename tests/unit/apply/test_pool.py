"""At most four writes in flight, stages in order."""

import threading
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.apply.pool import run_chains


class Stop(Exception):
    pass


def nothing():
    return None


shapes = st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=4)


@settings(deadline=None)
@given(shapes, st.integers(1, 4))
def test_every_job_runs_once_and_stages_never_overlap(shape, in_flight):
    lock = threading.Lock()
    log = []

    def job(name):
        with lock:
            log.append(("start", name))
        with lock:
            log.append(("end", name))
        return name

    chains = [
        [[partial(job, (c, s, n)) for n in range(count)] for s, count in enumerate(stages)]
        for c, stages in enumerate(shape)
    ]
    done: list[Any] = []
    run_chains(chains, done.append, nothing, in_flight=in_flight)
    expected = {
        (c, s, n) for c, st_ in enumerate(shape) for s, k in enumerate(st_) for n in range(k)
    }

    assert sorted(done) == sorted(expected)
    for chain, stage, _ in expected:
        starts = [i for i, (w, n) in enumerate(log) if w == "start" and n[:2] == (chain, stage)]
        earlier = [
            i for i, (w, n) in enumerate(log) if w == "end" and n[0] == chain and n[1] < stage
        ]
        assert not earlier or max(earlier) < min(starts)


def test_no_more_than_the_limit_is_in_flight():
    gate = threading.Barrier(4, timeout=10)
    running, most = [0], [0]
    lock = threading.Lock()

    def job():
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        gate.wait()
        with lock:
            running[0] -= 1

    run_chains([[[job] * 8]], lambda _: None, nothing, in_flight=4)

    assert most == [4]


def test_results_come_on_the_callers_thread():
    threads = set()
    run_chains([[[nothing] * 5]], lambda _: threads.add(threading.current_thread()), nothing)

    assert threads == {threading.current_thread()}


def test_one_at_a_time_needs_no_thread():
    threads = []
    run_chains(
        [[[lambda: threads.append(threading.current_thread())] * 3]],
        lambda _: None,
        nothing,
        in_flight=1,
    )

    assert set(threads) == {threading.current_thread()}


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_checkpoint_that_raises_ends_the_run_after_what_was_started(in_flight):
    calls: list[int] = []
    done: list[Any] = []

    def checkpoint():
        calls.append(1)
        if len(calls) == 3:
            raise Stop

    with pytest.raises(Stop):
        run_chains(
            [[[partial(str, n) for n in range(9)]]], done.append, checkpoint, in_flight=in_flight
        )

    assert sorted(done) == ["0", "1"]


def test_a_job_that_raises_ends_the_run_and_loses_no_result():
    release = threading.Event()
    done: list[Any] = []

    def bad():
        release.set()
        raise Stop

    def slow():
        assert release.wait(10)
        return "slow"

    with pytest.raises(Stop):
        run_chains([[[bad, slow]]], done.append, nothing, in_flight=2)

    assert done in ([], ["slow"])
    assert done == ["slow"]


def test_nothing_to_do_is_done_at_once():
    run_chains([], lambda _: None, nothing)
    run_chains([[[], []]], lambda _: None, nothing)

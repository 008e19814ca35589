"""What is made of traces keeps order, amount and bursts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.sim.engine_batch import BatchProfile
from stoker.sim.traffic import (
    Request,
    busy_seconds,
    peak_need,
    resampled,
    reversed_in_time,
    scaled,
)


def trace(count: int, gap_s: float = 1.0) -> list[Request]:
    return [Request(number * gap_s, 100 + number, 10, (number,)) for number in range(count)]


@given(st.floats(0, 6), st.integers(0, 5))
def test_a_scaled_trace_has_the_factor_as_many_and_keeps_order(factor, seed):
    found = list(scaled(trace(400), factor, seed))

    assert found == sorted(found, key=lambda request: request.at_s)
    assert 400 * factor == pytest.approx(len(found), abs=70)
    assert found == list(scaled(trace(400), factor, seed))


def test_a_copy_shares_no_prefix_with_its_original():
    """Else a cache would serve the copies, and twice the load would cost little."""
    found = list(scaled(trace(50), 3, 1))

    assert 150 == len({request.prefix for request in found})


def test_a_trace_that_is_not_scaled_stays_as_it_is():
    assert trace(20) == list(scaled(trace(20), 1.0, 1))


def test_reversed_the_last_comes_first():
    found = reversed_in_time([Request(0.0, 1, 1), Request(4.0, 2, 2), Request(5.0, 3, 3)])

    assert [(0.0, 3), (1.0, 2), (5.0, 1)] == [(r.at_s, r.prompt_tokens) for r in found]
    assert [] == reversed_in_time([])


def test_resampled_blocks_are_whole_blocks_of_the_trace():
    requests = trace(1_000)
    found = resampled(requests, 3, block_seconds=100)
    sizes = {r.prompt_tokens for r in requests}

    assert found == sorted(found, key=lambda request: request.at_s)
    assert found[-1].at_s <= requests[-1].at_s
    assert 1_000 == pytest.approx(len(found), abs=1)
    assert sizes > {r.prompt_tokens for r in found}
    assert found == resampled(requests, 3, block_seconds=100)
    assert [] == resampled([], 1)


def test_the_work_of_a_request_is_its_prefill_and_its_share_of_full_steps():
    profile = BatchProfile(
        max_sequences=10,
        kv_blocks=1_000,
        step_seconds=0.02,
        sequence_seconds=0.001,
        prefill_tokens_per_second=1_000,
        context_seconds=1e-6,
    )

    # 0.1 s of prefill; 50 steps of 20 + 10 x 1 + 10 x 125 x 0.001 ms, shared by ten.
    assert busy_seconds(Request(0.0, 100, 50), profile) == pytest.approx(
        0.1 + 50 * (0.020 + 0.010 + 0.00125) / 10
    )


def test_the_peak_need_is_that_of_the_busiest_window():
    profile = BatchProfile()
    one = busy_seconds(Request(0.0, 100, 10), profile)
    requests = [Request(at_s, 100, 10) for at_s in (0.0, 61.0, 62.0, 119.0, 130.0)]

    assert 3 * one / 60 == pytest.approx(peak_need(requests, profile))
    assert 0.0 == peak_need([], profile)

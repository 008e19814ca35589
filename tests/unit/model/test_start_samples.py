"""What is kept of starts: bounded, and read back only as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.start_samples import (
    MAX_KEYS,
    MAX_SAMPLES,
    NO_STARTS,
    OpenStart,
    Starts,
    StartSample,
)

MOST_BYTES = 192 * 1024
"""Of the 900,000 that the ConfigMap of a fleet's history may hold."""

numbers = st.integers(0, 10**13)
samples = st.builds(StartSample, numbers, numbers, numbers, numbers)
rings = st.dictionaries(st.text(max_size=16), st.lists(samples, min_size=1, max_size=20))
opened = st.lists(
    st.builds(OpenStart, st.text(max_size=36), st.text(), st.text(max_size=16), st.booleans()),
    unique_by=lambda each: each.uid,
)
known = st.builds(Starts.bounded, rings, opened)


@given(known)
def test_what_was_written_reads_back_the_same(starts):
    assert starts == Starts.from_text(starts.text())


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(str))
def test_damaged_text_is_lost_and_never_a_crash(text):
    found = Starts.from_text(text)

    assert found == Starts.from_text(found.text())


@pytest.mark.parametrize(
    "text",
    [
        '{"rings":{"a":[[1,2,3]]},"open":[]}',
        '{"rings":{"a":[[1,2,3,-4]]},"open":[]}',
        '{"rings":{"a":[[1,2,3,true]]},"open":[]}',
        '{"rings":{"a":[[1,2,3,"4"]]},"open":[]}',
        '{"rings":{"a":7},"open":7}',
        '{"rings":[],"open":[["u","n","k",0]]}',
        "[]",
    ],
)
def test_entries_that_it_would_not_write_are_left_out(text):
    """Unknown is not zero: a damaged sample never counts as a quick start."""
    assert NO_STARTS == Starts.from_text(text)


def test_the_newest_samples_of_a_ring_and_the_newest_rings_are_kept():
    ring = [StartSample(ready, 1, 1, 1) for ready in range(MAX_SAMPLES + 5)]
    old = {f"old-{n}": [StartSample(n, 1, 1, 1)] for n in range(MAX_KEYS)}
    found = Starts.bounded({**old, "new": ring}, ())

    assert tuple(ring[5:]) == dict(found.rings)["new"]
    assert MAX_KEYS == len(found.rings)
    assert "old-0" not in dict(found.rings)


def test_the_largest_history_of_starts_is_bounded_in_bytes():
    ring = [StartSample(10**12 + n, 9_999_999, 9_999_999, 9_999_999) for n in range(99)]
    many = {f"{n:016x}": ring for n in range(999)}
    paths = [OpenStart(f"{n:036}", "n" * 253, "k" * 16) for n in range(9_999)]

    assert len(Starts.bounded(many, paths).text()) <= MOST_BYTES


def test_a_total_is_the_sum_of_its_phases():
    assert 60 == StartSample(1_000, 10, 20, 30).total_ms

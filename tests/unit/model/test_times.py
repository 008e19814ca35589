"""Times for people."""

from __future__ import annotations

import pytest

from stoker.model.times import span


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0s"), (1, "1s"), (55_000, "55s"), (160_000, "2m40s"), (3_900_000, "1h05m")],
)
def test_durations_are_short_and_rounded_up(milliseconds, text):
    assert text == span(milliseconds)

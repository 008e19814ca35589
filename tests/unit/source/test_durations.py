from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.source.durations import duration_ms, duration_text


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1h", 3_600_000), ("1h30m", 5_400_000), ("90s", 90_000), ("500ms", 500), ("0s", 0),
     ("1m1m", 120_000), ("10s5m", 310_000), ("99999h", 359_996_400_000), ("1h2m3s4ms", 3_723_004)],
)  # fmt: skip
def test_durations_of_gep_2257(text, milliseconds):
    assert milliseconds == duration_ms(text)


@pytest.mark.parametrize(
    "text",
    ["", "1", "s", "-1s", "+1s", "1.5h", "1d", "1us", "100000h", "1h 30m", "1h1m1s1ms1h", "1H",
     " 1s", "1s ", "1s\n", "٣s"],
)  # fmt: skip
def test_other_spellings_are_refused(text):
    """b.F row 44."""
    with pytest.raises(ValueError, match="not a duration"):
        duration_ms(text)


@given(st.integers(0, 99_999 * 3_600_000))
def test_the_shortest_spelling_reads_back(milliseconds):
    assert milliseconds == duration_ms(duration_text(milliseconds))

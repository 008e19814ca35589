"""Annotations that people type: what is meant is obeyed, what cannot be read never loosens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.flow import Override, Suspension, UnreadOverride, WhenFullOverride
from stoker.model.limits import WhenFull
from stoker.model.refs import UnitRef
from stoker.objects.wishes import (
    OVERRIDE,
    SUSPEND,
    WHEN_FULL,
    override_from,
    suspension_from,
    text_of_override,
    text_of_suspension,
    text_of_when_full,
    when_full_from,
)

QWEN = UnitRef("ModelService", "llm", "qwen")
NOW = 1_764_000_000_000
SECONDS = st.integers(NOW // 1000, NOW // 1000 + 10**7).map(lambda second: second * 1000)


@given(st.text(max_size=300), SECONDS, st.none() | SECONDS)
def test_a_suspension_is_read_as_it_was_written(reason, since, until):
    text = text_of_suspension(reason, since, until)

    found = suspension_from(QWEN, {SUSPEND: text})

    assert found is not None
    assert (QWEN, since, until) == (found.ref, found.since_ms, found.until_ms)
    assert len(found.reason) <= 200
    assert found.reason.isprintable()


@given(st.integers(0, 10_000), SECONDS, SECONDS)
def test_an_override_is_read_as_it_was_written(replicas, since, until):
    text = text_of_override(replicas, "why", since, until)

    assert Override(QWEN, replicas, until, "why", since) == override_from(QWEN, {OVERRIDE: text})


@given(st.sampled_from(WhenFull), SECONDS, SECONDS)
def test_what_is_asked_for_a_full_fleet_is_read_as_it_was_written(when_full, since, until):
    text = text_of_when_full(when_full, "why", since, until)

    expected = WhenFullOverride(QWEN, when_full, until, "why", since)
    assert expected == when_full_from(QWEN, {WHEN_FULL: text})


@pytest.mark.parametrize(
    "text",
    [
        "Unpinned",
        '{"whenFull": "Unpinned"}',
        '{"whenFull": "Buy", "until": "2026-01-01T00:00:00Z"}',
        '{"whenFull": [], "until": "2026-01-01T00:00:00Z"}',
        '{"until": "2026-01-01T00:00:00Z"}',
    ],
    ids=["bare", "no-end", "other-word", "list", "nothing"],
)
def test_what_is_asked_for_a_full_fleet_counts_whole_or_not_at_all(text):
    assert UnreadOverride(QWEN, text, of_when_full=True) == when_full_from(QWEN, {WHEN_FULL: text})


@pytest.mark.parametrize(
    "text",
    ["", "true", "[]", "{", '{"until": "tomorrow"}', '{"until": 5}', "[" * 100_000],
    ids=["empty", "no-map", "list", "broken", "no-time", "number", "deep"],
)
def test_what_cannot_be_read_suspends_without_an_end(text):
    found = suspension_from(QWEN, {SUSPEND: text})

    assert found is not None
    assert found.until_ms is None
    assert found.holds(NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        '{"replicas": 3}',
        '{"replicas": "3", "until": "2026-01-01T00:00:00Z"}',
        '{"replicas": true, "until": "2026-01-01T00:00:00Z"}',
        '{"replicas": -1, "until": "2026-01-01T00:00:00Z"}',
        '{"replicas": 1000000, "until": "2026-01-01T00:00:00Z"}',
        '{"replicas": 3, "until": "2026-01-01T00:00:00"}',
    ],
    ids=["empty", "bare", "no-end", "text", "bool", "negative", "huge", "no-zone"],
)
def test_an_override_that_is_not_whole_does_not_count(text):
    """One without an end would last for ever unseen; that somebody asked is told with the text."""
    assert UnreadOverride(QWEN, text) == override_from(QWEN, {OVERRIDE: text})


def test_of_an_override_nobody_can_read_one_line_is_shown():
    """It comes from whoever may write the mirror, and goes into logs and status."""
    found = override_from(QWEN, {OVERRIDE: "3\n\x1b[31m" + "x" * 100_000})

    assert isinstance(found, UnreadOverride)
    assert found.text.isprintable()
    assert len(found.text) <= 200


def test_nothing_is_asked_without_the_annotations():
    assert (None, None) == (suspension_from(QWEN, {"a": "b"}), override_from(QWEN, {}))


def test_they_lapse_at_their_end():
    suspension, override = Suspension(QWEN, "", None, NOW), Override(QWEN, 1, NOW)

    assert [True, False] == [suspension.holds(NOW - 1), suspension.holds(NOW)]
    assert [True, False] == [override.holds(NOW - 1), override.holds(NOW)]

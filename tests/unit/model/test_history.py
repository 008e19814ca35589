"""History: what passes remember of a unit."""

from __future__ import annotations

import pytest

from builders import a_ref
from stoker.model.history import History, UnitHistory

ALPHA, BETA = a_ref("alpha"), a_ref("beta")


def test_records_read_back_as_the_same_history():
    history = History(((ALPHA, UnitHistory(wanted=3)), (BETA, UnitHistory(2, 1_000))))

    assert history == History.from_records(history.records())


def test_a_unit_without_an_entry_has_an_empty_history():
    history = History(((ALPHA, UnitHistory(wanted=3)),))

    assert UnitHistory(wanted=3) == history.of(ALPHA)
    assert UnitHistory() == history.of(BETA)


def test_records_are_sorted_whatever_the_order_of_entries():
    entries = ((BETA, UnitHistory(1)), (ALPHA, UnitHistory(2)))

    assert (ALPHA, BETA) == tuple(ref for ref, _ in History(entries).records())


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", '{"wanted":"3"}', '{"wanted":true}', '{"since":1}'],
    ids=["empty", "cut", "list", "number", "text", "boolean", "unknown field"],
)
def test_an_unreadable_entry_counts_as_lost(text):
    """Lost history: every window starts now, nothing shrinks; never a crash."""
    assert History() == History.from_records([(ALPHA, text)])

"""Values that follow from a report, made once for each object of it."""

from __future__ import annotations

from dataclasses import replace

from stoker.model.outcome import Health, Sync
from stoker.model.refs import UnitRef
from stoker.report.unit_memo import UnitMemo
from stoker.report.unit_report import UnitReport


def a_report(name: str) -> UnitReport:
    """A unit without anything to tell."""
    ref = UnitRef("Bundle", "llm", name)
    return UnitReport(ref=ref, sync=Sync.SYNCED, health=Health.HEALTHY)


def test_a_report_that_is_the_same_object_is_not_looked_at_again():
    """And one that only equals it is."""
    made: list[str] = []

    def make(unit: UnitReport) -> str:
        made.append(unit.ref.name)
        return unit.ref.name

    memo = UnitMemo[str](make)
    one, two = a_report("one"), a_report("two")
    assert memo.of([one, two]) == memo.of([one, two]) == ["one", "two"]
    assert memo.of([replace(one), two]) == ["one", "two"]
    assert made == ["one", "two", "one"]


def test_units_that_are_gone_are_forgotten():
    """A fleet that renames its units all day does not grow."""
    memo = UnitMemo[str](lambda unit: unit.ref.name)
    for number in range(50):
        memo.of([a_report(str(number))])
    assert len(memo._known) <= 2  # noqa: SLF001 - what is promised is its size

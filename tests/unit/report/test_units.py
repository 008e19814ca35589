import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.outcome import Condition, Health, Sync
from stoker.model.refs import UnitRef
from stoker.report.plain_yaml import dump
from stoker.report.previous import PreviousStatus, previous_from_files
from stoker.report.unit_report import (
    Cause,
    ErrorLine,
    HoldLine,
    NodeLine,
    ObjectLine,
    PlacementLine,
    ReplicaCounts,
    RetirementLine,
    ServiceReport,
    UnitReport,
)
from stoker.report.units import unit_document, unit_from_document

words = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
numbers = st.integers(0, 2**31)

services = st.builds(
    ServiceReport,
    counts=st.builds(ReplicaCounts, st.none() | numbers, numbers, numbers, numbers, numbers),
    count_source=names,
    count_detail=words,
    count_line=numbers,
    model_uri=words,
    model_revision=words,
    rev=words,
    placements=st.tuples(
        st.builds(
            PlacementLine,
            words,
            words,
            words,
            words,
            numbers,
            numbers,
            numbers,
            st.none() | numbers,
        )
    ),
    retirements=st.tuples(st.builds(RetirementLine, words, words, words, numbers)) | st.just(()),
    holds=st.tuples(st.builds(HoldLine, words, words, words)) | st.just(()),
    nodes=st.tuples(
        st.builds(NodeLine, words, words, words, words, words, st.none() | numbers, words)
    )
    | st.just(()),
    rejected=st.dictionaries(names, numbers, max_size=2).map(lambda d: tuple(d.items())),
    cause=st.none() | st.builds(Cause, words, words, words),
)
units = st.builds(
    UnitReport,
    ref=st.builds(UnitRef, names, names, names),
    sync=st.sampled_from(Sync),
    health=st.sampled_from(Health),
    conditions=st.tuples(st.builds(Condition, names, names, words, words, words)),
    digest=words,
    path=words,
    line=numbers,
    applied_revision=words,
    objects=numbers,
    synced=numbers,
    service=st.none() | services,
    notes=st.tuples(st.builds(ObjectLine, words, words, words, words)) | st.just(()),
    errors=st.tuples(st.builds(ErrorLine, words, words, words, numbers, numbers)),
    truncated=st.booleans(),
)


@given(units)
def test_a_units_file_reads_back_as_what_was_reported(unit):
    """After a restart the controller must see exactly what it had said (rows 13, 93)."""
    document = unit_document(unit)

    assert unit == unit_from_document(yaml.safe_load(dump(document.data)))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"unit": "ModelService/llm"},
        {"unit": "ModelService/llm/x", "sync": {"status": "Fine"}, "health": {"status": "Healthy"}},
        {"unit": ["x"], "sync": "Synced", "health": 3},
    ],
    ids=["empty", "no name", "unknown word", "wrong types"],
)
def test_a_file_that_does_not_say_how_its_unit_is_says_nothing(data):
    assert unit_from_document(data) is None


GOOD = unit_document(UnitReport(UnitRef("Bundle", "llm", "x"), Sync.SYNCED, Health.HEALTHY))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"{a: b",
        b"- list",
        b"a: &a [*a]",
        b"!!python/object:os.system {}",
        b"<<<<<<< HEAD\nunit: x\n=======",
        b"x: " + b"y" * 2_000_000,
        b"[" * 5_000,
    ],
    ids=["empty", "bytes", "broken", "list", "alias", "tag", "conflict", "huge", "deep"],
)
def test_files_that_people_broke_are_passed_over(content):
    """Reliability c.3 row 71: status goes on; the file is written again."""
    files = {
        "status.yaml": content,
        "units/bundle.llm.x.yaml": dump(GOOD.data),
        "units/bundle.llm.y.yaml": content,
        "README.md": b"mine",
    }

    previous = previous_from_files(files)

    assert ["x"] == [ref.name for ref in previous.units]
    assert () == previous.conditions


def test_a_unit_in_the_wrong_file_is_not_believed():
    assert {} == previous_from_files({"units/bundle.llm.y.yaml": dump(GOOD.data)}).units


def test_nothing_was_said_before_the_first_report():
    assert PreviousStatus() == previous_from_files({})

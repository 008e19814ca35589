"""Whoever may push to the status branch can write anything there: nothing of it stops a reader."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given

from stoker.report import StatusReader, previous_from_files
from stoker.report.plain_yaml import dump
from stoker.report.plain_yaml_read import PlainReader
from stoker.report.status_files import MAX_FILE_BYTES
from unit.report.plain_documents import STATUS, TEXT, data

UNIT = "units/bundle.llm.a.yaml"
GOOD = """\
unit: Bundle/llm/a
sync: {status: Synced}
health: {status: Healthy}
conditions: []
"""


def nested(levels: int) -> str:
    """As plain_yaml would write it."""
    lines = [f"{'  ' * level}a:" for level in range(levels - 1)]
    return "\n".join([*lines, f"{'  ' * (levels - 1)}a: b"]) + "\n"


HOSTILE = {
    "deep": nested(101),
    "deep by hand": "# x\n" + nested(101),
    "deep lists": "a: " + "[" * 101 + "]" * 101 + "\n",
    "brackets": "a: " + "[" * 200_000,
    "curly brackets": "a: " + "{a: " * 50_000,
    "laughs": "a: &a [x, x]\nb: &b [*a, *a]\n",
    "circle": "a: &a [*a]\n",
    "tag": "a: !!binary aaaa\n",
    "many": "# x\na: [" + "1, " * 100_001 + "1]\n",
    "long": "a: " + "x" * MAX_FILE_BYTES,
    "number without end": "# x\na: 1" + ":1" * 3000 + "\n",
    "large number": "a: " + "9" * 5000 + "\n",
    "no mapping": "[a]\n",
    "empty": "",
    "broken": "a: [",
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_over_a_limit_is_not_read(text):
    """b.C rows on size and depth, by way of a branch; what it says is unknown."""
    content = text.encode() if isinstance(text, str) else text

    assert StatusReader().read(content) is None
    assert {} == previous_from_files({UNIT: content}).units
    assert "" == previous_from_files({"status.yaml": content}).last_attempted


def test_a_hundred_levels_are_read_by_either_reader():
    for text in (nested(100), f"# by hand\n{nested(100)}"):
        found = StatusReader().read(text.encode())
        assert found is not None
        assert yaml.safe_load(text) == found.data


def test_our_own_files_are_read_as_ours_and_others_as_edited():
    ours, edited = (StatusReader().read(t.encode()) for t in (TEXT, f"# by hand\n{TEXT}"))

    assert ours is not None
    assert edited is not None
    assert STATUS == ours.data == edited.data
    assert [False, True] == [ours.edited, edited.edited]


@given(data)
def test_whatever_we_write_is_read(value):
    document = {"a": value}

    found = StatusReader().read(dump(document))

    assert found is not None
    assert document == found.data


def test_what_an_edited_file_holds_beside_ours_is_not_written_again():
    """A date or a number of YAML's own is no value that we can dump."""
    files = {UNIT: f"{GOOD}extra: 2026-11-29\nmore: {{1: 1.5}}\n".encode()}

    (document,) = previous_from_files(files).documents.values()

    assert PlainReader().read(dump(document.data)) == document.data
    assert "extra" not in document.data

"""Status files are read back as a YAML reader does, or left to one."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker.report.plain_yaml import dump
from stoker.report.plain_yaml_read import PlainReader
from stoker.report.previous import previous_from_files
from unit.report.plain_documents import STATUS, TEXT, data, numberish


def read(text: str | bytes):
    return PlainReader().read(text if isinstance(text, bytes) else text.encode())


def test_the_published_example_is_read():
    assert STATUS == read(TEXT)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")) | numberish, data, min_size=1))
def test_whatever_is_dumped_reads_back_as_it_was(document):
    """Only what a YAML reader would not take for a key, an overlong text, is left to it."""
    assert document == read(dump(document))


yaml_like = st.lists(
    st.sampled_from(
        [
            *("a", "b: ", "a:", " ", "  ", "- ", "-", "\n", "{", "}", "[", "]", ", ", ",", ": "),
            *('"x"', '"', "null", "true", "0", "07", "-1", "1.5", "12:30", "#", "&a", "*a", "|"),
            *("a:b", "<<", "---", "\t", "é", "\\u00e9", "2026-11-29", "\r", "'", "?", "!x"),
        ]
    ),
    max_size=14,
).map("".join)


@given(yaml_like)
def test_what_is_read_is_what_a_yaml_reader_reads(text):
    """Not every text must be read, but none may be misread."""
    found = read(text)

    assert found is None or found == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}\n",
        "a: b",
        "a: b # why\n",
        "# why\na: b\n",
        "a: yes\n",
        "a: 1.5\n",
        "a: 2026-11-29\n",
        "yes: a\n",
        "{yes: a}\n",
        "a: {1: b}\n",
        "a:\n",
        "a:\n\n",
        "a:\n b: c\n",
        "a:\n-\n  b: c\n",
        "a:\n-\n",
        "a:\n-b\n",
        "a: b\n  c: d\n",
        "- a\n",
        'a: "\\ud83d\\ude00"\n',
        'a: "\x7f"\n',
        "a: &x b\n",
        f"{'k' * 1001}: a\n",
        f"a: {{{'k' * 1001}: a}}\n",
        b"a: \xff\n",
        f"a: {'9' * 5000}\n",
    ],
)
def test_what_we_do_not_write_is_left_to_a_yaml_reader(text):
    assert read(text) is None


def test_nesting_without_end_is_left_to_a_yaml_reader():
    deep = "".join(f"{'  ' * level}a:\n" for level in range(1200))

    assert read(f"{deep}{'  ' * 1200}a: b\n") is None


def test_equal_lines_of_two_files_share_one_value():
    """1,000 units that became ready in the same second hold one condition, not 1,000."""
    reader = PlainReader()
    first, second = (
        reader.read(f"unit: {name}\nready: {{type: Ready, since: now}}\n".encode())
        for name in ("a", "b")
    )

    assert first is not None
    assert second is not None
    assert first["ready"] is second["ready"]
    assert ("a", "b") == (first["unit"], second["unit"])


def test_a_file_that_somebody_edited_is_read_all_the_same():
    unit = (
        "unit: Bundle/llm/a\nsync: {status: Synced}\nhealth: {status: Healthy}\n"
        "source: {path: a.yaml, line: 1}\n"
    )
    edited = f"# by hand\n{unit}"
    path = "units/bundle.llm.a.yaml"

    plain = previous_from_files({path: unit.encode()}).units
    assert 1 == len(plain)
    assert plain == previous_from_files({path: edited.encode()}).units

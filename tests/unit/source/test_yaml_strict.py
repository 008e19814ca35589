from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker.source.yaml_strict import read_yaml


def told(data: bytes) -> list[str]:
    """Everything that is wrong, as `line:column code`."""
    file = read_yaml("f", data)
    findings = [finding for document in file.documents for finding in document.findings]
    if file.broken is not None:
        findings.append(file.broken)
    return [f"{f.location.line}:{f.location.column} {f.code}" for f in findings]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"a: 1\nb: no\n", "2:4 ambiguous-scalar", id="ambiguous value"),
        pytest.param(b"a:\n- x\n- 010\n", "3:3 ambiguous-scalar", id="ambiguous item"),
        pytest.param(b"on: x\n", "1:1 ambiguous-scalar", id="ambiguous key"),
        pytest.param(b"8000: x\n", "1:1 ambiguous-scalar", id="number as key"),
        pytest.param(b"a: 1\nb: 2\na: 3\n", "3:1 duplicate-key", id="duplicate key"),
        pytest.param(b"a: {b: 1, b: 2}\n", "1:11 duplicate-key", id="duplicate key in flow"),
        pytest.param(b"a: !!binary aGk=\n", "1:4 yaml-tag", id="binary, research b.Y 90"),
        pytest.param(b"a: !!python/object/apply:os.system [x]\n", "1:4 yaml-tag", id="python, CVE-2020-14343"),
        pytest.param(b"a: !!map {b: c}\n", "1:4 yaml-tag", id="tag on a map"),
        pytest.param(b"!x a: b\n", "1:1 yaml-tag", id="tag on a key"),
        pytest.param(b"a: &x {b: 1}\nc:\n  <<: *x\n", "3:3 merge-key", id="merge key"),
        pytest.param(b"? [a]\n: b\n", "1:3 invalid-yaml", id="list as key"),
        pytest.param(b"a: *nope\n", "1:4 invalid-yaml", id="unknown alias"),
        pytest.param(b"a: &x [*x]\n", "1:8 invalid-yaml", id="alias to itself"),
        pytest.param(b"a:\n\t- b\n", "2:1 invalid-yaml", id="tab"),
        pytest.param(b"a: [1, 2\nb: 3\n", "2:2 invalid-yaml", id="open bracket"),
        pytest.param(b"a: b: c\n", "1:5 invalid-yaml", id="two colons"),
        pytest.param(b"\xff\xfea\x00", "1:1 invalid-encoding", id="UTF-16"),
        pytest.param(b"a: 1\nb: x\x00y\n", "2:5 invalid-encoding", id="NUL"),
        pytest.param(b"a: 1\nb: \xe9\n", "2:4 invalid-encoding", id="Latin-1"),
        pytest.param("é: 'x\x1b'\n".encode(), "1:6 invalid-encoding", id="escape, counted in characters"),
        pytest.param(b"a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n", "2:1 conflict-marker", id="conflict"),
        pytest.param(b"a: 1\r\n>>>>>>>\r\n", "2:1 conflict-marker", id="conflict in CRLF"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_place(data, expected):
    assert told(data) == [expected]


def test_all_faults_of_a_file_come_at_once():
    assert told(b"a: no\nb: {a: yes, a: 1}\n---\nc: 1e3\n") == [
        "1:4 ambiguous-scalar",
        "2:8 ambiguous-scalar",
        "2:13 duplicate-key",
        "4:4 ambiguous-scalar",
    ]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"a: 1\r\nb:\r\n- x\r\n", id="CRLF"),
        pytest.param(b"\xef\xbb\xbfa: 1\nb: [x]\n", id="BOM"),
        pytest.param(b"---\n# only a comment\n---\na: 1\nb: [x]\n---\n", id="empty documents"),
        pytest.param(b"a: 1\nb: [x]", id="no newline at the end"),
    ],
)
def test_harmless_forms_read_alike(data):
    file = read_yaml("f", data)

    assert file.broken is None
    assert [document.value for document in file.documents] == [{"a": 1, "b": ["x"]}]


def test_quoted_and_block_text_is_text():
    data = b"a: 'no'\nb: \"010\"\nc: |\n  yes\n  ======= not a conflict\nd: >-\n  1e3\n"

    (document,) = read_yaml("f", data).documents

    assert document.findings == ()
    assert document.value == {
        "a": "no",
        "b": "010",
        "c": "yes\n======= not a conflict\n",
        "d": "1e3",
    }


def test_every_key_and_item_has_line_and_column():
    (document,) = read_yaml("f", "ü: {é: 1}\nlist:\n- a\n-  b: c\n".encode()).documents

    places = {field: (p.line, p.column) for field, p in document.places.items()}
    assert places == {
        ("ü",): (1, 1),
        ("ü", "é"): (1, 5),
        ("list",): (2, 1),
        ("list", 0): (3, 3),
        ("list", 1): (4, 4),
        ("list", 1, "b"): (4, 4),
    }


def test_documents_know_where_they_start():
    file = read_yaml("f", b"# first\na: 1\n---\n\nb: 2\n")

    assert [document.location.line for document in file.documents] == [2, 5]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * 30_000, id="flow lists: segfaults a recursive reader"),
        pytest.param(b"a: " + b"{a: " * 400_000, id="flow maps without end"),
        pytest.param(b"- " * 30_000 + b"x", id="compact lists"),
        pytest.param(b"a: " + b"[" * 101 + b"]" * 101, id="just too deep"),
        pytest.param(b"".join(b" " * n + b"a:\n" for n in range(150)), id="indentation"),
    ],
)
def test_deep_nesting_is_refused_not_a_crash(data):
    """Row b.Y 86 of the research."""
    file = read_yaml("f", data)

    assert file.broken is not None
    assert file.broken.code in {"yaml-too-deep", "invalid-yaml"}


def test_nesting_up_to_the_limit_reads():
    assert read_yaml("f", b"[" * 99 + b"x" + b"]" * 99).broken is None


def test_many_brackets_in_text_are_no_nesting():
    assert read_yaml("f", b"a: |\n" + b"  {{ x }} [y]\n" * 2000).broken is None


def test_a_billion_laughs_stops_at_the_budget():
    """Row b.Y 85: nine levels of nine aliases are 430 bytes and 4 GB."""
    text = "l0: &l0 [lol, lol, lol]\n"
    for level in range(1, 10):
        text += f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 9)}]\n"

    file = read_yaml("f", text.encode())

    assert file.broken is not None
    assert file.broken.code == "yaml-too-large"


def test_a_modest_alias_is_expanded():
    (document,) = read_yaml("f", b"a: &x {b: 1}\nc: *x\n").documents

    assert document.value == {"a": {"b": 1}, "c": {"b": 1}}


SAFE_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=8
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | SAFE_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SAFE_TEXT, inner, max_size=3),
    max_leaves=20,
)


@given(st.dictionaries(SAFE_TEXT, VALUES, min_size=1, max_size=4))
def test_what_is_accepted_reads_as_it_was_written(value):
    text = yaml.safe_dump(value, allow_unicode=True)

    file = read_yaml("f", text.encode())

    if file.broken is None and not file.documents[0].findings:
        assert [value] == [document.value for document in file.documents]


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data):
    read_yaml("f", data)


@given(st.text(alphabet="ab:-?[]{}&*!|>'\"#%@,\n\t 01<=.", max_size=60))
def test_no_text_makes_it_raise(text):
    read_yaml("f", text.encode())

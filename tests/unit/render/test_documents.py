"""Documents of a manifest file: faithful, bounded, and with the line of what is wrong."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import BadInput
from stoker.render.documents import MAX_ALIASED_NODES, MAX_DEPTH, load_documents
from stoker.render.jinja_env import StokerEnvironment


def values(text):
    return [document.value for document in load_documents(text, "a.yaml")]


def refusal(text):
    with pytest.raises(BadInput) as caught:
        load_documents(text, "a.yaml")
    (finding,) = caught.value.findings
    assert finding.code == "invalid-yaml"
    return finding


def test_a_bare_equals_sign_is_text():
    """cases.md row 21: PyYAML's own loader aborts on it."""
    assert values("a: =\nb: [=]\n") == [{"a": "=", "b": ["="]}]


@pytest.mark.parametrize(
    "text",
    ["", "---\n", "---\n---\n", "# only a comment\n", "---\n# a\n---\n# b\n...\n", "null\n", "~"],
)
def test_empty_documents_are_dropped(text):
    """cases.md row 29."""
    assert values(text) == []


def test_documents_keep_their_first_line():
    documents = load_documents("# c\n---\na: 1\n---\n\n\nb: 2\n", "a.yaml")

    assert [(3, {"a": 1}), (7, {"b": 2})] == [(d.line, d.value) for d in documents]


def test_a_separator_inside_a_block_scalar_is_text():
    """cases.md row 31: split by text, the ConfigMap would be torn apart."""
    text = "data:\n  a: |\n    ---\n    x\n\n    y\n---\nb: 1\n"

    assert values(text) == [{"data": {"a": "---\nx\n\ny\n"}}, {"b": 1}]


def test_windows_line_ends_are_line_ends():
    """cases.md row 31."""
    assert values("a: |\r\n  x\r\n\r\n  y\r\n---\r\nb: 1\r\n") == [{"a": "x\n\ny\n"}, {"b": 1}]


def test_quoted_scalars_are_text_whatever_they_look_like():
    """cases.md row 25: a project number in quotes stays text."""
    text = "a: \"880444307210\"\nb: 'yes'\nc: |-\n  010\n"

    assert values(text) == [{"a": "880444307210", "b": "yes", "c": "010"}]


def test_a_key_that_stands_twice_is_refused_with_its_place():
    finding = refusal("a: 1\nb:\n  c: 1\n  'c': 2\n")

    assert "a.yaml:4:3" == str(finding.location)
    assert "'c'" in finding.message


def test_keys_that_are_the_same_in_json_stand_twice():
    assert "twice" in refusal("yes: 1\n'true': 2\n").message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: b: c\n", "a.yaml:1:5"),
        ("a: 1\n\tb: 2\n", "a.yaml:2:1"),
        ("a: [1, 2\nb: 3\n", "a.yaml:2:2"),
        ("a: 1\nb: *x\n", "a.yaml:2:4"),
        ("x: !!python/object/apply:os.system [id]\n", "a.yaml:1:4"),
        ("x: 1\ny: !!binary aGk=\n", "a.yaml:2:4"),
        ("x: !thing {}\n", "a.yaml:1:4"),
        ("x: .inf\n", "a.yaml:1:4"),
        ("x: !!int seven\n", "a.yaml:1:4"),
        ("? [a]\n: 1\n", "a.yaml:1:5"),
        ("~: 1\n", "a.yaml:1:1"),
        ("a: 1\nb: \x01\n", "a.yaml:2:4"),
        ("<<: 1\n", "a.yaml:1:5"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_column(text, place):
    assert place == str(refusal(text).location)


def test_nesting_is_bounded_without_recursion():
    """b.Y row 86: 30,000 brackets end the interpreter when C code recurses over them."""
    # libyaml looks ahead and stops at its own bound first.
    assert "nesting" in refusal("[" * 30_000).message
    assert "inside each other" in refusal("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)).message
    assert "inside each other" in refusal("- " * 30_000 + "a").message
    assert values("[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_aliases_are_bounded_by_what_they_write_out():
    """b.Y row 85: nine levels of nine are 430 bytes of text and gigabytes of JSON."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    for level in range(1, 9):
        lines.append(f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]")

    assert str(MAX_ALIASED_NODES) in refusal("\n".join(lines)).message


def test_an_alias_inside_its_own_anchor_is_refused():
    assert "alias" in refusal("a: &a [*a]\n").message


def test_aliases_and_merge_keys_work():
    text = "a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3}\nc: {<<: [{x: 5}, *a]}\nd: *a\n"

    (value,) = values(text)

    assert {"x": 1, "z": 3} == value["b"]
    assert {"x": 5, "z": 2} == value["c"]
    assert {"x": 1, "z": 2} == value["d"]


def test_anchors_end_with_their_document():
    assert "alias" in refusal("a: &a 1\n---\nb: *a\n").message


def test_a_byte_order_mark_is_no_content():
    assert values("\ufeffa: 1\n") == [{"a": 1}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_what_to_json_prints_is_read_back(value):
    """Plain JSON is not enough: YAML takes U+2028 for a line break and refuses U+007F."""
    environment = StokerEnvironment({}, {})

    assert [{"v": value}] == values(environment.filters["to_json"]({"v": value}))


@given(st.text(alphabet="[]{}:,-&*!|>'\"%@`#? \n\tab01", max_size=60))
def test_no_text_does_anything_but_load_or_be_refused(text):
    with contextlib.suppress(BadInput):
        assert all(document.line for document in load_documents(text, "a.yaml"))

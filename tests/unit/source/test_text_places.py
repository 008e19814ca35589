from __future__ import annotations

from textwrap import dedent

import pytest

from stoker.source.text_places import place_in_text
from stoker.source.yaml_strict import read_yaml

MARK = "@"


def found(text: str) -> tuple[int, int]:
    """Where place_in_text puts the mark of the value of `a.b`."""
    data = dedent(text)
    document = read_yaml("x.yaml", data.encode(), texts=True).documents[0]
    value = document.value["a"]["b"]
    before = value[: value.index(MARK)]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    start, style = document.texts["a", "b"]
    place = place_in_text(data.splitlines(), start, style, value, line, column)
    assert place.path == "x.yaml"
    return place.line, place.column


def true_place(text: str) -> tuple[int, int]:
    data = dedent(text)
    before = data[: data.index(MARK)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a:\n  b: one @two\n", id="plain"),
        pytest.param("a: {b: one @two, c: 1}\n", id="in braces"),
        pytest.param("a:\n  b: 'it''s one @two'\n", id="single quotes"),
        pytest.param('a:\n  b: "say \\"one\\" @two"\n', id="double quotes"),
        pytest.param("a:\n  b: |\n    one\n      two\n\n    three @\n", id="literal"),
        pytest.param("a:\n  b: |-\n\n    one\n    @two\n", id="literal after an empty line"),
        pytest.param("a:\n  b: >-\n    one\n    two\n    thr@ee\n  c: 1\n", id="folded"),
        pytest.param("a:\n  b: >\n    one @\n    two\n", id="folded, first line"),
        pytest.param("a:\n  b: one\n    two\n    thr@ee\n", id="plain over lines"),
        pytest.param("a:\n  b: >-\n    one\n\n    two @\n", id="folded around an empty line"),
        pytest.param("a:\n  b: 'one\n    tw@o'\n", id="quotes over lines"),
    ],
)
def test_a_place_in_a_text_is_found_in_its_file(text):
    assert true_place(text) == found(text)


def test_where_folding_leaves_no_answer_it_is_the_beginning():
    assert found("a:\n  b: >-\n    one\n      in\n    two @\n") == (2, 6)

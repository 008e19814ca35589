"""The mechanics of server-side apply: merge, compare, remove, equality."""

from __future__ import annotations

import pytest

from stoker.objects.fieldset import FieldSet
from stoker.objects.ssa_merge import compare, merge, remove_paths, same_value
from unit.objects.ssa_types import KEYED, SPEC


@pytest.mark.parametrize(
    ("live", "sent", "merged"),
    [
        (["a", "b"], ["b", "a"], ["b", "a"]),
        (["a", "x", "b"], ["b", "a"], ["x", "b", "a"]),
        (["x", "a"], ["n", "a"], ["x", "n", "a"]),
        (["a"], ["n", "a"], ["n", "a"]),
        (["a", "x"], ["a", "n"], ["a", "x", "n"]),
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        ([], ["a"], ["a"]),
        (["a"], [], ["a"]),
    ],
)
def test_the_order_of_merged_lists(live, sent, merged):
    def items(names):
        return [{"name": name} for name in names]

    assert merge(items(live), items(sent), KEYED) == items(merged)


def test_a_repeated_live_item_is_replaced_not_merged():
    live = [{"name": "a", "v": "1"}, {"name": "a", "v": "2"}]

    assert merge(live, [{"name": "a", "kind": "k"}], KEYED) == [{"name": "a", "kind": "k"}]


def test_null_leaves_maps_and_lists_to_the_prune_and_stands_elsewhere():
    live = {"map": {"a": "1"}, "keyed": [{"name": "a"}], "text": "1"}
    sent = {"map": None, "keyed": None, "text": None}

    merged = merge(live, sent, SPEC)
    assert merged == {"map": {"a": "1"}, "keyed": [{"name": "a"}], "text": None}


@pytest.mark.parametrize(
    ("old", "new", "added", "removed", "modified"),
    [
        ({"text": "1"}, {"text": "2"}, (), (), (".text",)),
        ({}, {"map": {"a": "1"}}, (".map", ".map.a"), (), ()),
        ({"map": {"a": "1"}}, {}, (), (".map", ".map.a"), ()),
        ({"map": {}}, {"map": None}, (), (), (".map",)),
        ({"map": {"a": "1"}}, {"map": None}, (), (".map.a",), ()),
        ({"map": None}, {"map": {"a": "1"}}, (".map.a",), (), ()),
        ({"whole": {"a": "1"}}, {"whole": {"b": "1"}}, (), (), (".whole",)),
        ({"plain": ["a"]}, {"plain": ["b"]}, (), (), (".plain",)),
        ({"set": ["a"]}, {"set": ["b"]}, ('.set[="b"]',), ('.set[="a"]',), ()),
        ({"set": None}, {"set": ["b"]}, ('.set[="b"]',), (), ()),
        ({"keyed": []}, {"keyed": None}, (), (), (".keyed",)),
        ({"any": {"a": 1}}, {"any": [1]}, (), (".any.a",), (".any",)),
        ({"any": {"a": [1]}}, {"any": {"a": [2]}}, (), (), (".any.a",)),
        ({"any": 1}, {"any": {"b": {"c": 1}}}, (".any.b", ".any.b.c"), (), (".any",)),
        ({"n": 1}, {"n": 1.0}, (), (), ()),
        ({"any": 1}, {"any": True}, (), (), (".any",)),
        ({"nope": 1}, {}, (), (), ()),
        ({}, {"nope": 1}, (), (), ()),
    ],
)
def test_differences(old, new, added, removed, modified):
    found = compare(old, new, SPEC)

    assert FieldSet(found.added).paths() == added
    assert FieldSet(found.removed).paths() == removed
    assert FieldSet(found.modified).paths() == modified


A1, A2, B1 = {"name": "a", "v": "1"}, {"name": "a", "v": "2"}, {"name": "b"}


@pytest.mark.parametrize(
    ("old", "new", "added", "removed", "modified"),
    [
        ([A1, A2], [A1, A2], (), (), ()),
        ([A1, A2], [A2, A1], (), (), ('.keyed[name="a"]',)),
        (
            [A1, A2],
            [A1],
            ('.keyed[name="a"]', '.keyed[name="a"].name', '.keyed[name="a"].v'),
            ('.keyed[name="a"]',),
            (),
        ),
        ([A1, A2, B1], [B1], (), ('.keyed[name="a"]',), ()),
        (
            [A1],
            [A1, A2],
            ('.keyed[name="a"]',),
            ('.keyed[name="a"]', '.keyed[name="a"].name', '.keyed[name="a"].v'),
            (),
        ),
        ([B1], [B1, A1, A2], ('.keyed[name="a"]',), (), ()),
    ],
    ids=["same", "order", "one left", "none left", "doubled", "double came"],
)
def test_differences_of_lists_with_repeated_keys(old, new, added, removed, modified):
    """Live objects may hold them; they compare as one marker."""
    found = compare({"keyed": old}, {"keyed": new}, SPEC)

    assert FieldSet(found.added).paths() == added
    assert FieldSet(found.removed).paths() == removed
    assert FieldSet(found.modified).paths() == modified


def test_a_list_that_comes_whole_with_repeated_keys():
    found = compare({}, {"keyed": [A1, A2]}, SPEC)

    assert FieldSet(found.added).paths() == (".keyed", '.keyed[name="a"]')


@pytest.mark.parametrize(
    ("value", "paths", "left"),
    [
        ({"text": "1", "n": 1}, {"f:text": {}}, {"n": 1}),
        ({"text": "1"}, {"f:text": {}}, None),
        ({"map": {"a": "1", "b": "1"}}, {"f:map": {"f:a": {}}}, {"map": {"b": "1"}}),
        ({"map": {"a": "1"}}, {"f:map": {"f:a": {}}}, {"map": None}),
        ({"map": {"a": "1"}, "n": 1}, {"f:map": {".": {}, "f:a": {}}}, {"n": 1}),
        ({"set": ["a", "b"]}, {"f:set": {'v:"a"': {}}}, {"set": ["b"]}),
        ({"set": ["a"]}, {"f:set": {'v:"a"': {}}}, {"set": None}),
        (
            {"keyed": [A1]},
            {"f:keyed": {'k:{"name":"a"}': {"f:v": {}}}},
            {"keyed": [{"name": "a"}]},
        ),
        ({"whole": {"a": "1"}}, {"f:whole": {"f:a": {}}}, {"whole": None}),
        ({"map": {}}, {"f:map": {"f:a": {}}}, {"map": None}),
        ({"map": "odd"}, {"f:map": {"f:a": {}}}, {"map": None}),
        ({"keyed": "odd"}, {"f:keyed": {"f:a": {}}}, {"keyed": None}),
        ({"nope": {"a": 1}}, {"f:nope": {"f:a": {}}}, {"nope": {"a": 1}}),
    ],
)
def test_removing_paths(value, paths, left):
    assert remove_paths(value, paths, SPEC) == left


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (True, True, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ({"a": 1}, [1], False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([1], {"a": 1}, False),
        (None, None, True),
        (None, 0, False),
        ("1", 1, False),
    ],
)
def test_equality_of_values(one, two, same):
    assert same_value(one, two) is same

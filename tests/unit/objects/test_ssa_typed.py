"""What does not fit a kind's types, in the words of the server."""

from __future__ import annotations

import pytest

from stoker.objects.fieldset import FieldSet
from stoker.objects.fieldset_trees import Tree
from stoker.objects.schema_table import MAP, SCALAR, FieldType, schema_for
from stoker.objects.ssa_merge import compare, remove_paths
from stoker.objects.ssa_typed import problem_text, typed_problems
from unit.objects.ssa_types import SPEC


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"n": "1"}, ".n: expected numeric (int or float), got string"),
        ({"n": True}, ".n: expected numeric (int or float), got bool"),
        ({"n": {"a": 1}}, ".n: expected numeric (int or float), got map[string]interface {}"),
        ({"n": [1]}, ".n: expected numeric (int or float), got []interface {}"),
        ({"text": 1}, ".text: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"map": [True, None, {"b": 1, "a": "x"}]},
            ".map: expected map, got &{[true <nil> map[a:x b:1]]}",
        ),
        ({"set": "a"}, ".set: expected list, got &{a}"),
        ({"nope": 1}, ".nope: field not declared in schema"),
        ({"set": ["a", "a"]}, '.set: duplicate entries for key [="a"]'),
        ({"keyed": [{"v": "1"}]}, ".keyed: element 0: associative list with keys has an element"),
        ({"keyed": [None]}, ".keyed: element 0: associative list with keys may not have a null"),
        ({"keyed": ["a"]}, ".keyed: element 0: associative list with keys may not have non-map"),
        (
            {"set": [{}]},
            ".set: element 0: associative list without keys has an element that's a map",
        ),
        ({"set": [[]]}, ".set: element 0: not supported: associative list with lists as elements"),
        (
            {"set": [None]},
            ".set: element 0: associative list without keys has an element that's an",
        ),
        ({"plain": [1]}, ".plain[0]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"map": {"a": False}},
            ".map.a: expected string, got &value.valueUnstructured{Value:false}",
        ),
    ],
)
def test_problems_are_told_in_the_words_of_the_server(spec, problem):
    (found,) = typed_problems(spec, SPEC)

    assert found.startswith(problem)


def test_scalars_of_every_type():
    kinds = {"b": FieldType(SCALAR, "b"), "q": FieldType(SCALAR, "q")}
    kind = FieldType(MAP, fields=kinds)

    assert typed_problems({"b": "x"}, kind) == (".b: expected boolean, got &{x}",)
    assert typed_problems({"q": [1]}, kind) == (".q: expected any scalar, got &{[1]}",)
    assert typed_problems({"b": True, "q": 1}, kind) == ()
    assert typed_problems({"b": None, "q": None}, kind) == ()
    assert typed_problems(None, kind) == ()


def test_several_problems_are_listed():
    found = typed_problems({"n": "1", "text": 1}, SPEC)

    assert problem_text(found).splitlines()[0] == "errors:"
    assert len(problem_text(found).splitlines()) == 3


def test_repeated_keys_may_be_allowed():
    assert typed_problems({"set": ["a", "a"]}, SPEC, allow_duplicates=True) == ()


def test_keys_with_defaults_and_numbers():
    ports = schema_for("", "Service").root.fields["spec"].fields["ports"]
    port: Tree = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {}}}

    assert remove_paths(
        {"ports": [{"port": 80}]}, port, FieldType(MAP, fields={"ports": ports})
    ) == {"ports": None}
    found = compare({"two": []}, {"two": [{"name": "n"}]}, SPEC)
    assert FieldSet(found.added).paths()[0] == '.two[kind="K",name="n"]'

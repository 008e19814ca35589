"""What a child answers, asked in this process."""

from __future__ import annotations

import json

import pytest

from stoker.render.worker import Tracked, answer, source_sets

CANARY = "canary-7f3a91"
MEGABYTE = 1 << 20


def asked(texts, data=None, *, kind="jinja", limit=MEGABYTE):
    request = {
        "texts": {name + text: text for name, text in texts.items()},
        "sets": {"s": {name: [name + text, f"bundles/{name}"] for name, text in texts.items()}},
    }
    item = {"path": "bundles/bundle.yaml", "set": "s", kind: list(texts)[:1], "data": data or {}}
    if kind == "yaml":
        item["yaml"] = list(texts)
    return answer(item, source_sets(request)["s"], limit)


def test_plain_files_come_back_with_path_and_line():
    reply = asked({"a.yaml": "a: 1\n---\nb: 2\n", "b.yaml": "c: 3\n"}, kind="yaml")

    assert [
        ["bundles/a.yaml", 1, {"a": 1}],
        ["bundles/a.yaml", 3, {"b": 2}],
        ["bundles/b.yaml", 1, {"c": 3}],
    ] == reply["documents"]


def test_every_bad_file_of_a_unit_is_reported():
    reply = asked({"a.yaml": "a: [", "b.yaml": "b: b: b", "c.yaml": "c: 3"}, kind="yaml")

    assert ["bundles/a.yaml", "bundles/b.yaml"] == [f["path"] for f in reply["findings"]]


def test_each_render_sees_its_own_data_only():
    """cases.md row 19: parameters of one input leaked into the next."""
    text = "{% set x = values.a %}v: {{ x }}\n"
    first = asked({"t.j2": text}, {"values": {"a": 1}})
    second = asked({"t.j2": text}, {"values": {"a": 2}})
    third = asked({"t.j2": "v: {{ x }}"}, {"values": {}})

    assert [1, 2] == [reply["documents"][0][2]["v"] for reply in (first, second)]
    assert "'x' is undefined" == third["findings"][0]["message"]


def test_the_templates_of_a_decision_are_told_from_others():
    data = {"decision": {"replicas": 2}, "placement": {"node": "n"}, "values": {}}

    assert ["bundles/a"] == asked({"a": "n: {{ decision.replicas }}"}, data)["decided"]
    assert ["bundles/a"] == asked({"a": "n: {{ placement | to_json }}"}, data)["decided"]
    assert [] == asked({"a": "n: {{ values }}"}, data)["decided"]


@pytest.mark.parametrize(
    "look",
    [
        lambda t: t["a"],
        lambda t: t.get("a"),
        lambda t: list(t),
        lambda t: list(t.items()),
        lambda t: list(t.values()),
        json.dumps,
    ],
    ids=["[]", "get", "iter", "items", "values", "json"],
)
def test_every_way_of_looking_is_noticed(look):
    tracked = Tracked({"a": 1})
    look(tracked)

    assert tracked.looked_at


LEAKS = {
    "undefined key made of it": "{{ values[values.secret] }}",
    "attribute of it": "{{ values.secret.nope }}",
    "number of it": "{{ '%d' | format(values.secret) }}",
    "int of it": "{{ 1 + values.secret }}",
    "include of it": "{% include values.secret %}",
    "import of it": "{% import values.secret as x %}",
    "filter fails on it": "{{ values.secret | round }}",
    "broken YAML with it": "a: {{ values.secret }}: b: c",
    "duplicate key of it": "{{ values.secret }}: 1\n{{ values.secret }}: 2\n",
    "alias of it": "a: *{{ values.secret }}\n",
    "tag of it": "a: !{{ values.secret }} b\n",
    "map with it": "{{ {'a': values.secret}.b }}",
    "called": "{{ values.secret() }}",
    "nested": "{{ values.deep.list[0].x }}",
    "division": "{{ values.secret / 0 }}",
    "multi-line": "a: *{{ values.lines }}",
}


@pytest.mark.parametrize("text", LEAKS.values(), ids=LEAKS.keys())
def test_values_never_appear_in_errors(text):
    """cases.md row 147: parameters and values went to the log with the error."""
    data = {
        "values": {"secret": CANARY, "deep": {"list": [CANARY]}, "lines": f"{CANARY}\n{CANARY}x"}
    }
    reply = asked({"t.j2": text}, data)

    assert reply["findings"]
    assert CANARY not in json.dumps(reply["findings"])


def test_text_in_broken_yaml_is_placed_in_the_rendered_text():
    (finding,) = asked({"t.j2": "{% if true %}\n\na: b: c\n{% endif %}"})["findings"]

    assert "bundles/t.j2" == finding["path"]
    assert "line 2 of the rendered text" in finding["message"]

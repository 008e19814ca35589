from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import SourceLocation
from stoker.source.layers import Layer, cut, overlay


def layer(value, path="f"):
    places: dict[tuple[str | int, ...], SourceLocation] = {}

    def walk(inner, at):
        for key, item in inner.items() if isinstance(inner, dict) else enumerate(inner):
            places[(*at, key)] = SourceLocation(path, len(places) + 1, 1)
            if isinstance(item, dict | list):
                walk(item, (*at, key))

    walk(value, ())
    return Layer(value, places)


def test_maps_merge_lists_are_replaced_and_null_deletes():
    base = layer({"spec": {"a": {"x": 1, "y": 2}, "l": [1, 2], "gone": 1}}, "fleet")
    patch = layer({"spec": {"a": {"y": 3}, "l": [4], "gone": None}}, "unit")

    merged = overlay(base, patch)

    assert merged.value == {"spec": {"a": {"x": 1, "y": 3}, "l": [4]}}


def test_each_field_knows_the_file_it_came_from():
    base = layer({"spec": {"a": {"x": 1, "y": 2}, "l": [{"b": 1}, 2]}}, "fleet")
    patch = layer({"spec": {"a": {"y": 3}, "l": [4]}}, "unit")

    merged = overlay(base, patch)

    files = {field: place.path for field, place in merged.places.items()}
    assert files == {
        ("spec",): "unit",
        ("spec", "a"): "unit",
        ("spec", "a", "x"): "fleet",
        ("spec", "a", "y"): "unit",
        ("spec", "l"): "unit",
        ("spec", "l", 0): "unit",
    }


def test_null_is_a_value_where_it_means_something():
    """In a strategic merge patch null deletes from the template."""
    base = layer({"spec": {"podTemplate": {"spec": {"a": 1, "b": 2}}}})
    patch = layer({"spec": {"podTemplate": {"spec": {"a": None}}}})

    assert overlay(base, patch).value == {"spec": {"podTemplate": {"spec": {"a": None, "b": 2}}}}
    assert overlay(base, layer({"spec": {"podTemplate": None}})).value == {"spec": {}}


def test_the_later_layer_says_who_decides_the_count():
    fixed, external = {"spec": {"replicas": 2}}, {"spec": {"scaling": {"mode": "External"}}}

    assert overlay(layer(fixed), layer(external)).value == external
    assert overlay(layer(external), layer(fixed)).value == fixed


def test_a_block_is_cut_out_of_its_file():
    places = layer({"spec": {"defaults": {"modelService": {"a": 1}}, "x": 1}}).places

    below = cut(places, ("spec", "defaults", "modelService"), ("spec",))

    assert set(below) == {("spec",), ("spec", "a")}


KEYS = st.sampled_from(["a", "b", "c"])
MAPS = st.recursive(
    st.none() | st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, MAPS, max_size=3)


def rfc_7386(target, patch):
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = rfc_7386(result.get(key), value)
    return result


@given(DOCUMENTS, DOCUMENTS)
def test_it_is_the_merge_patch_of_the_standard_and_changes_no_input(base, patch):
    kept = copy.deepcopy((base, patch))

    assert rfc_7386(base, patch) == overlay(layer(base), layer(patch)).value
    assert kept == (base, patch)


@given(DOCUMENTS, DOCUMENTS)
def test_every_field_of_the_result_has_a_place_and_no_other_has(base, patch):
    merged = overlay(layer({"k": base}), layer({"k": patch}))

    assert set(layer(merged.value).places) >= set(merged.places)


@given(DOCUMENTS)
def test_a_layer_over_nothing_is_as_over_something_that_it_deletes(patch):
    """Most units have no defaults and no patches below and above them."""
    above = layer({**patch, "gone": None})
    merged = overlay(layer({"gone": 1}), above)
    alone = overlay(Layer(), layer(patch))

    assert merged.value == alone.value
    assert set(merged.places) == set(alone.places)

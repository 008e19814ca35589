"""Server-side apply as a pure function: laws, and the corners the contract suite can't reach.

The requests and answers of the real server are replayed in tests/contract.
"""

from __future__ import annotations

import copy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stoker.objects.fieldset import FieldSet, fieldset_from_manifest
from stoker.objects.fieldset_trees import Tree
from stoker.objects.ssa import (
    FieldConflict,
    FieldConflicts,
    TypedPatchRefused,
    Writer,
    apply_manifest,
    conflict_message,
    track_update,
)
from stoker.objects.ssa_entries import (
    Owner,
)
from stoker.objects.ssa_merge import compare, merge
from unit.objects.ssa_types import ROOT, SCHEMA


def writer(name, time="2026-11-29T00:00:00Z", **more):
    return Writer(name, "a.dev/v1", time=time, **more)


def thing(**spec):
    return {"apiVersion": "a.dev/v1", "kind": "A", "metadata": {"name": "x"}, "spec": spec}


class Live:
    """An object that applies and updates change, one after the other."""

    def __init__(self):
        self.object = {}
        self.entries = {}

    def apply(self, manifest, by="stoker", **options):
        done = apply_manifest(self.object, self.entries, manifest, ROOT, writer(by), **options)
        self.object, self.entries = done.object, done.entries
        return self

    def update(self, new, by="ed", **options):
        self.entries = track_update(self.object, new, self.entries, ROOT, writer(by), **options)
        self.object = new
        return self

    def paths(self, manager, operation="Apply"):
        for owner, entry in self.entries.items():
            if (owner.manager, owner.operation) == (manager, operation):
                return FieldSet(entry.fields).paths()
        return ()

    @property
    def spec(self):
        return self.object.get("spec")


# ----------------------------------------------------------------------------- laws

NAMES = st.sampled_from("abcd")
TEXTS = st.sampled_from(["", "1", "2"])
MAPS = st.dictionaries(NAMES, TEXTS, max_size=3)
ITEMS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"v": TEXTS}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(0, 2),
        "text": TEXTS,
        "map": MAPS,
        "deep": st.dictionaries(NAMES, MAPS, max_size=2),
        "whole": MAPS,
        "set": st.lists(NAMES, max_size=3, unique=True),
        "keyed": ITEMS,
        "plain": st.lists(TEXTS, max_size=2),
        "any": st.fixed_dictionaries({}, optional={"a": TEXTS, "b": MAPS, "c": st.just([1])}),
    },
)
MANIFESTS = SPECS.map(lambda spec: thing(**spec))


@given(MANIFESTS)
def test_applying_twice_changes_nothing_more(manifest):
    live = Live().apply(manifest)
    assume(live.entries)  # an object that nobody owns gets an entry of before-first-apply
    first, entries = live.object, dict(live.entries)
    live.apply(manifest)

    assert first == live.object
    assert entries == live.entries


@given(MANIFESTS)
def test_the_entry_is_the_field_set_of_the_manifest(manifest):
    live = Live().apply(manifest)
    expected = fieldset_from_manifest(manifest, SCHEMA).paths()

    assert expected == live.paths("stoker")


@given(MANIFESTS, MANIFESTS)
def test_a_sole_owner_gets_exactly_what_it_sends(one, two):
    """a.3 A6: whatever it owned and sends no more is gone, whatever it sends is there."""
    changed = Live().apply(one).apply(two)
    fresh = Live().apply(two)

    assert _without_leftovers(changed.object) == _without_leftovers(fresh.object)
    assert changed.paths("stoker") == fresh.paths("stoker")


def _without_leftovers(value):
    """Emptied containers may stay as null or empty, as on the server."""
    if isinstance(value, dict):
        cleaned = {key: _without_leftovers(item) for key, item in value.items()}
        return {k: v for k, v in cleaned.items() if v not in (None, {}, [])}
    if isinstance(value, list):
        return [_without_leftovers(item) for item in value]
    return value


@given(MANIFESTS, MANIFESTS)
def test_forced_applies_always_win_and_keep_the_rest(one, two):
    live = Live().apply(one, "a").apply(two, "b", force=True)

    assert fieldset_from_manifest(two, SCHEMA).paths() == live.paths("b")
    again = Live().apply(two, "b")
    merged = merge(live.object, again.object, ROOT)
    assert _without_leftovers(merged) == _without_leftovers(live.object)


@given(MANIFESTS, MANIFESTS)
def test_an_unforced_apply_either_conflicts_or_takes_nothing_away(one, two):
    live = Live().apply(one, "a")
    before = live.paths("a")
    refused: set[str] = set()
    try:
        live.apply(two, "b")
    except FieldConflicts as conflicts:
        refused = {conflict.path for conflict in conflicts.conflicts}

    assert refused <= set(before)
    assert before == live.paths("a")


@settings(max_examples=50)
@given(MANIFESTS, MANIFESTS)
def test_inputs_are_never_changed(one, two):
    live = Live().apply(one, "a")
    object_before = copy.deepcopy(live.object)
    entries_before = copy.deepcopy(live.entries)
    sent_before = copy.deepcopy(two)
    apply_manifest(live.object, live.entries, two, ROOT, writer("b"), force=True)

    assert object_before == live.object
    assert entries_before == live.entries
    assert sent_before == two


@given(MANIFESTS, MANIFESTS)
def test_an_update_owns_what_it_changed_and_nothing_else(one, two):
    live = Live().apply(one, "a")
    assume(live.entries)  # where nobody owns anything, updates are not recorded
    live.update(two, "ed")
    changed = compare(one, two, ROOT)

    expected = FieldSet(changed.added).union(FieldSet(changed.modified))
    assert set(live.paths("ed", "Update")) == set(expected.paths())
    lost = expected.union(FieldSet(changed.removed))
    before = FieldSet(fieldset_from_manifest(one, SCHEMA).tree)
    assert set(live.paths("a")) == set(before.difference(lost).paths())


@given(MANIFESTS)
def test_nothing_differs_from_itself(manifest):
    assert not compare(manifest, copy.deepcopy(manifest), ROOT)
    assert merge(manifest, copy.deepcopy(manifest), ROOT) is manifest


# --------------------------------------------------------------------- single cases


def test_conflicts_are_sorted_by_owner_then_path():
    live = Live().apply(thing(text="1", n=1), "b").apply(thing(text="1"), "a")
    with pytest.raises(FieldConflicts) as refused:
        live.apply(thing(text="2", n=2), "c")

    seen = [(conflict.owner.manager, conflict.path) for conflict in refused.value.conflicts]
    assert seen == [("a", ".spec.text"), ("b", ".spec.n"), ("b", ".spec.text")]
    assert str(refused.value).startswith("Apply failed with 3 conflicts: conflicts with")


def test_owners_are_named_as_the_server_names_them():
    update = Owner("e", "Update", "v1", "scale")

    assert str(Owner("a", "Apply")) == '"a"'
    assert str(Owner("a", "Apply", "", "status")) == '"a" with subresource "status"'
    assert str(update) == '"e" with subresource "scale" using v1'
    message = conflict_message((FieldConflict(update, ".a"),))
    assert message.endswith('conflict with "e" with subresource "scale" using v1: .a')


def test_what_does_not_fit_the_types_is_refused_before_conflicts():
    live = Live().apply(thing(text="1"), "a")

    with pytest.raises(TypedPatchRefused, match=r"\.spec\.n: expected numeric"):
        live.apply(thing(n="x", text="2"), "b")


def test_an_object_without_entries_belongs_to_before_first_apply():
    live = Live()
    live.object = thing(text="1", n=1)
    live.apply(thing(text="1"), "a")

    assert live.paths("a") == (".spec.text",)
    assert ".spec.n" in live.paths("before-first-apply", "Update")


def test_updates_of_an_object_without_entries_are_not_recorded():
    live = Live()
    live.object = thing(text="1")
    live.update(thing(text="2"))

    assert live.entries == {}


def test_a_created_object_belongs_to_its_creator():
    live = Live().update(thing(text="1"), creating=True)

    assert live.paths("ed", "Update") == (".spec", ".spec.text")


def test_reset_fields_are_neither_owned_nor_taken():
    reset: Tree = {"f:spec": {"f:n": {}}}
    live = Live().apply(thing(text="1", n=1), "a", reset=reset)
    assert live.paths("a") == (".spec.text",)

    live.update(thing(text="1", n=2), "b", reset=reset)
    assert live.paths("b", "Update") == ()


def test_an_owner_without_fields_left_is_gone():
    live = Live().apply(thing(text="1"), "a").apply(thing(text="2"), "b", force=True)

    assert [owner.manager for owner in live.entries] == ["b"]


def test_a_dropped_item_takes_a_foreign_update_along():
    """ssa-facts row 65."""
    live = Live().apply(thing(keyed=[{"name": "a"}, {"name": "b", "v": "1"}]))
    changed = copy.deepcopy(live.object)
    changed["spec"]["keyed"][1]["v"] = "2"
    live.update(changed).apply(thing(keyed=[{"name": "a"}]))

    assert live.spec == {"keyed": [{"name": "a"}]}
    assert live.paths("ed", "Update") == ()


def test_an_item_that_another_apply_holds_stays_with_its_part():
    """ssa-facts row 65."""
    live = Live().apply(thing(keyed=[{"name": "b", "v": "1"}]))
    live.apply(thing(keyed=[{"name": "b"}]), "other").apply(thing())

    assert live.spec == {"keyed": [{"name": "b"}]}


def test_own_values_in_a_map_go_and_foreign_ones_stay():
    """a.3 A6."""
    live = Live().apply(thing(map={"a": "1"})).apply(thing(map={"b": "1"}), "other")
    live.apply(thing())

    assert live.spec == {"map": {"b": "1"}}

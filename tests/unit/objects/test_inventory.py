"""Laws of the inventory as data, and of its shards."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects.inventory import INTENT, Inventory
from stoker.objects.inventory_shards import (
    MAX_SHARD_BYTES,
    adopted_in_shards,
    entries_from_shards,
    shards_from_entries,
)

EMPTY = Inventory("f1", "prod")
A = UnitRef("Bundle", "llm", "a")
B = UnitRef("Bundle", "llm", "b")


def config(name):
    return ObjectRef("", "ConfigMap", "llm", name)


units = st.builds(
    UnitRef,
    st.sampled_from(["Bundle", "ModelService"]),
    st.just("llm"),
    st.text("abc", min_size=1, max_size=3),
)
refs = st.builds(
    ObjectRef,
    st.sampled_from(["", "apps", "example.org"]),
    st.sampled_from(["ConfigMap", "Gizmo"]),
    st.sampled_from(["", "llm"]),
    st.text("abc", min_size=1, max_size=3),
    st.sampled_from(["v1", "v1beta1"]),
)
entries = st.lists(st.tuples(units, refs, st.sampled_from(["", "u1", "u2"])), max_size=20)


def flat(inventory):
    return sorted(
        (unit, ref, uid)
        for unit, objects in inventory.entries.items()
        for ref, uid in objects.items()
    )


@settings(deadline=None)
@given(entries)
def test_union_lists_every_name_that_was_added(added):
    """The union is written before anything is made, so that nothing is ever lost."""
    found = EMPTY.union(added)

    assert {(unit, ref) for unit, ref, _ in added} == {(u, r) for u, r, _ in flat(found)}


@settings(deadline=None)
@given(entries, entries)
def test_union_never_drops_a_name_or_a_uid(first, second):
    before = EMPTY.union(first)
    after = before.union(second)

    assert all(after.names(unit, ref) for unit, ref, _ in flat(before))
    assert all(after.objects(u)[r] for u, r, uid in flat(before) if uid)


@settings(deadline=None)
@given(entries)
def test_union_is_idempotent(added):
    once = EMPTY.union(added)

    assert flat(once) == flat(once.union(added))
    assert not once.adds_names(once)


@settings(deadline=None)
@given(entries, entries)
def test_shrinking_takes_exactly_what_it_names(added, removed):
    before = EMPTY.union(added)
    gone = {(unit, ref) for unit, ref, _ in removed}
    after = before.without(gone)

    assert [entry for entry in flat(before) if entry[:2] not in gone] == flat(after)


@settings(deadline=None)
@given(entries)
def test_removing_what_was_added_gives_the_empty_inventory(added):
    assert EMPTY.union(added).without((u, r) for u, r, _ in added) == EMPTY


@settings(deadline=None)
@given(entries, st.randoms(use_true_random=False))
def test_shards_give_the_same_bytes_in_any_order_and_come_back(added, random):
    found = flat(EMPTY.union(added))
    shuffled = list(found)
    random.shuffle(shuffled)
    texts = shards_from_entries(found, cap_bytes=400, line_objects=3)

    assert texts == shards_from_entries(shuffled, cap_bytes=400, line_objects=3)
    assert found == list(entries_from_shards(texts))
    assert [e[1].version for e in found] == [e[1].version for e in entries_from_shards(texts)]
    assert all(len(text.encode()) <= 400 for text in texts)


def test_intent_does_not_replace_a_uid_and_a_uid_replaces_an_intent():
    intent = EMPTY.union([(A, config("x"), INTENT)])
    known = intent.union([(A, config("x"), "u1")])

    assert known.objects(A)[config("x")] == "u1"
    assert known.union([(A, config("x"), INTENT)]).objects(A)[config("x")] == "u1"
    assert known.union([(A, config("x"), "u2")]).objects(A)[config("x")] == "u2"


def test_a_uid_brings_the_version_it_was_sent_under():
    """The version is what a later delete is addressed to; equal names differ in nothing else."""
    old = ObjectRef("autoscaling", "HorizontalPodAutoscaler", "llm", "x", "v1")
    new = ObjectRef("autoscaling", "HorizontalPodAutoscaler", "llm", "x", "v2")
    found = EMPTY.union([(A, old, "u1")]).union([(A, new, "u1")])

    assert [ref.version for ref in found.objects(A)] == ["v2"]


def test_two_units_list_an_object_while_it_moves():
    moving = EMPTY.union([(B, config("x"), ""), (A, config("x"), "u1"), (B, config("y"), "u2")])

    assert moving.owners() == {config("x"): (A, B), config("y"): (B,)}
    assert moving.units == (A, B)
    assert not moving.names(A, config("y"))


def test_only_new_names_ask_for_a_write_before_apply():
    before = EMPTY.union([(A, config("x"), INTENT)])

    assert not before.union([(A, config("x"), "u1")]).adds_names(before)
    assert before.union([(B, config("x"), "u1")]).adds_names(before)


def test_a_unit_of_many_objects_is_spread_over_several_shards():
    """More than 2,000 objects of one unit, and no shard over 512 KiB."""
    many = [(A, config(f"object-{'n' * 200}-{n:05}"), f"uid-{n:05}") for n in range(4_500)]
    texts = shards_from_entries(many)

    assert sum(bool(text) for text in texts) > 1
    assert max(len(text.encode()) for text in texts) <= MAX_SHARD_BYTES
    assert sorted(many) == list(entries_from_shards(texts))


def test_an_inventory_that_cannot_fit_says_so():
    with pytest.raises(ValueError, match="does not fit"):
        shards_from_entries([(A, config("x" * 100), "u")], cap_bytes=10)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"unit":["a"],"objects":[]}', '{"unit":["a","b","c"],"objects":[["v1"]]}'],
    ids=["no-json", "no-map", "no-unit", "short-unit", "short-row"],
)
def test_damaged_shards_are_refused(text):
    """A damaged inventory is a lost one: it is rebuilt and prunes nothing."""
    with pytest.raises(ValueError, match="not a line of an inventory"):
        entries_from_shards([text])


def test_a_unit_without_objects_has_none():
    assert dict(EMPTY.objects(A)) == {}
    assert EMPTY.without([(A, config("x"))]) == EMPTY


@settings(deadline=None)
@given(entries, st.sets(refs, max_size=6))
def test_adopted_objects_are_listed_ones_and_survive_their_shards(added, marks):
    """Design 6: what was adopted is remembered, for it is never pruned without consent."""
    found = EMPTY.union(added, adopted=marks)
    texts = shards_from_entries(flat(found), adopted=found.adopted)

    assert found.adopted == {ref for _, ref, _ in added} & marks
    assert found.adopted == adopted_in_shards(texts)
    assert flat(found) == list(entries_from_shards(texts))


def test_an_adopted_object_that_is_made_anew_is_ours():
    old = EMPTY.union([(A, config("x"), "u1")], adopted=[config("x")])

    assert old.union([(A, config("x"), "")]).adopted
    assert old.union([(A, config("x"), "u1")]).adopted
    assert not old.union([(A, config("x"), "u2")]).adopted
    assert not old.without([(A, config("x"))]).adopted


def test_a_union_that_adds_nothing_is_the_same_object():
    """So that nothing is written, and a narrow pass knows that nobody wrote."""
    unit, ref = UnitRef("Bundle", "llm", "a"), ObjectRef("", "ConfigMap", "llm", "a")
    held = Inventory("id", "fleet").union([(unit, ref, "uid")])
    assert held.union([(unit, ref, "uid")]) is held
    assert held.union([(unit, ref, INTENT)]) is held
    assert held.union([(unit, ref, "other")]) is not held
    newer = ObjectRef("", "ConfigMap", "llm", "a", "v2")
    assert [r.version for r in held.union([(unit, newer, "uid")]).objects(unit)] == ["v2"]

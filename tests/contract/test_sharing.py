"""Group B of research/ssa-facts.md: removal, sharing, Update after Apply and the reverse."""

from __future__ import annotations

import pytest

from contract.api import data, deployment

ENTRY_TIME = "metadata.managedFields.0.time"


def test_14_a_sole_owner_removes_what_it_drops(server):
    server.apply("ConfigMap", "c", {"metadata": {"labels": {"x": "1"}}, **data(a="1", b="1")})

    dropped = server.apply("ConfigMap", "c", data(b="1"))
    assert (dropped.data, dropped["metadata.labels"]) == ({"b": "1"}, None)
    assert dropped.owners == "stoker:A{data.b}"
    nothing = server.apply("ConfigMap", "c", {})
    assert (nothing.status, nothing.data, nothing.owners) == (200, None, "")


@pytest.mark.parametrize("replicas", [4, 0])
def test_15_a_dropped_field_falls_back_to_its_default(server, replicas):
    """Why a field is never dropped while we are its sole owner: 4 replicas became 1."""
    server.apply("Deployment", "d", deployment(replicas=replicas))
    dropped = server.apply("Deployment", "d", deployment())

    assert dropped["spec.replicas"] == 1
    assert "spec.replicas" not in dropped.owners


def test_16_a_shared_field_stays_until_its_last_owner_drops_it(server):
    first = server.apply("ConfigMap", "c", data(a="1"))
    shared = server.apply("ConfigMap", "c", data(a="1"), by="b")
    assert shared.rv != first.rv
    assert shared.owners == "b:A{data.a} stoker:A{data.a}"

    left = server.apply("ConfigMap", "c", {})
    assert (left.data, left.owners) == ({"a": "1"}, "b:A{data.a}")
    assert server.apply("ConfigMap", "c", {}, by="b").data is None


def test_17_an_update_takes_the_field(server):
    server.apply("ConfigMap", "c", data(a="1", b="1"))

    taken = server.patch("ConfigMap", "c", data(a="2"))
    assert taken.owners == "stoker:A{data.b} ed:U{data.a}"
    same = server.patch("ConfigMap", "c", data(b="1"))
    assert same.body == taken.body
    gone = server.patch("ConfigMap", "c", {"data": {"b": None}})
    assert (gone.data, gone.owners) == ({"a": "2"}, "ed:U{data.a}")


def test_17_the_old_value_does_not_bring_back_the_old_owner(server):
    server.apply("ConfigMap", "c", data(a="1"))
    server.patch("ConfigMap", "c", data(a="2"))
    back = server.patch("ConfigMap", "c", data(a="1"))

    assert back.owners == "ed:U{data.a}"
    assert server.apply("ConfigMap", "c", data(a="1")).owners == "stoker:A{data.a} ed:U{data.a}"


def test_18_an_apply_after_an_update(server):
    server.apply("ConfigMap", "c", data(a="1"))
    server.patch("ConfigMap", "c", data(a="2"))

    refused = server.apply("ConfigMap", "c", data(a="1"))
    assert (refused.status, refused.message) == (
        409,
        'Apply failed with 1 conflict: conflict with "ed" using v1: .data.a',
    )
    assert server.apply("ConfigMap", "c", data(a="2")).owners == "stoker:A{data.a} ed:U{data.a}"
    dropped = server.apply("ConfigMap", "c", {})
    assert (dropped.data, dropped.owners) == ({"a": "2"}, "ed:U{data.a}")


def test_19_our_own_updates_count_as_another_owner(server):
    server.post("ConfigMap", {"metadata": {"name": "c"}, **data(a="1")}, by="stoker")

    refused = server.apply("ConfigMap", "c", data(a="2"))
    assert (
        refused.message == 'Apply failed with 1 conflict: conflict with "stoker" using v1: .data.a'
    )
    both = server.apply("ConfigMap", "c", data(a="1", b="1"))
    assert both.owners == "stoker:A{data.a data.b} stoker:U{data. data.a}"
    assert server.apply("ConfigMap", "c", data(b="1")).data == {"a": "1", "b": "1"}


def test_20_a_put_gets_only_what_it_changed(server):
    made = server.apply("ConfigMap", "c", data(a="1", b="1"))
    body = {**made.body, **data(a="1", c="1")}
    put = server.put("ConfigMap", "c", body)

    assert put.owners == "stoker:A{data.a} ed:U{data.c}"


def test_20_a_put_without_managed_fields_keeps_the_entries(server):
    made = server.apply("ConfigMap", "c", data(a="1"))
    put = server.put("ConfigMap", "c", server.whole("ConfigMap", data(a="1"), "c"))

    assert put.owners == made.owners
    assert put.rv == made.rv


@pytest.mark.parametrize("entries", [[], [{}]], ids=["[]", "[{}]"])
@pytest.mark.parametrize("way", ["put", "merge", "json"])
def test_20_an_empty_list_clears_all_entries(server, way, entries):
    made = server.apply("ConfigMap", "c", data(a="1"))
    match way:
        case "put":
            metadata = {**made.body["metadata"], "managedFields": entries}
            answer = server.put("ConfigMap", "c", {**made.body, "metadata": metadata})
        case "merge":
            answer = server.patch("ConfigMap", "c", {"metadata": {"managedFields": entries}})
        case _:
            path = "/metadata/managedFields"
            patch = [{"op": "replace", "path": path, "value": entries}]
            answer = server.patch("ConfigMap", "c", patch, how="json")

    assert (answer.status, answer.owners) == (200, "")


def test_20_renamed_entries_are_taken_as_sent(server):
    made = server.apply("ConfigMap", "c", data(a="1", b="1"))
    entry = {**made.body["metadata"]["managedFields"][0], "manager": "new"}
    metadata = {**made.body["metadata"], "managedFields": [entry]}
    put = server.put("ConfigMap", "c", {**made.body, "metadata": metadata})
    assert put.owners == "new:A{data.a data.b}"

    assert server.apply("ConfigMap", "c", data(a="1"), by="new").data == {"a": "1"}


def test_21_without_entries_everything_belongs_to_before_first_apply(server):
    server.apply("ConfigMap", "c", data(a="1", b="1"))
    server.patch("ConfigMap", "c", {"metadata": {"managedFields": [{}]}})
    assert server.patch("ConfigMap", "c", data(c="1")).owners == ""

    refused = server.apply("ConfigMap", "c", data(a="2"))
    assert refused.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    )
    assert server.apply("ConfigMap", "c", data(a="1")).owners == (
        "stoker:A{data.a} before-first-apply:U{data. data.a data.b data.c}"
    )


def test_22_applies_come_first_then_by_time(server):
    for step in (
        lambda: server.apply("ConfigMap", "c", data(z="1"), by="z"),
        lambda: server.apply("ConfigMap", "c", data(a="1"), by="a"),
        lambda: server.patch("ConfigMap", "c", data(u2="1"), by="u2"),
        lambda: server.patch("ConfigMap", "c", data(u1="1"), by="u1"),
    ):
        step()
        server.wait(1.1)

    def order():
        entries = server.get("ConfigMap", "c").body["metadata"]["managedFields"]
        return [entry["manager"] for entry in entries]

    assert order() == ["z", "a", "u2", "u1"]
    changed = server.apply("ConfigMap", "c", data(z="2"), by="z")
    assert order() == ["a", "z", "u2", "u1"]
    server.wait(1.1)
    assert server.apply("ConfigMap", "c", data(z="2"), by="z").body == changed.body


def test_more_than_ten_updaters_are_joined(server):
    server.apply("ConfigMap", "c", data(a="1"))
    for number in range(12):
        server.patch("ConfigMap", "c", data(**{f"k{number:02}": "1"}), by=f"u{number:02}")

    entries = server.get("ConfigMap", "c").body["metadata"]["managedFields"]
    names = {entry["manager"] for entry in entries}
    assert len(entries) == 11
    assert {"stoker", "ancient-changes"} < names

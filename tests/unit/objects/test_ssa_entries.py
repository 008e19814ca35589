"""managedFields entries: reading, order, joining the oldest."""

from __future__ import annotations

from stoker.objects.fieldset import FieldSet
from stoker.objects.ssa_entries import (
    Entries,
    Entry,
    Owner,
    capped,
    entries_from_managed_fields,
    managed_fields_from_entries,
)


def test_entries_survive_a_round_trip_in_the_servers_order():
    def raw(manager, operation, time, **more):
        entry = {"manager": manager, "operation": operation, "apiVersion": "v1"}
        if time:
            entry["time"] = time
        return {**entry, "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}, **more}

    ordered = [
        raw("b", "Apply", "2026-01-01T00:00:00Z"),
        raw("a", "Apply", "2026-01-02T00:00:00Z"),
        raw("z", "Update", "", subresource="scale"),
        raw("a", "Update", "2026-01-01T00:00:00Z"),
    ]
    entries = entries_from_managed_fields(reversed(ordered))

    assert managed_fields_from_entries(entries) == ordered
    assert entries_from_managed_fields(None) == {}


def test_owners_sort_as_the_server_sorts():
    """By their JSON texts: manager, operation, version, subresource."""
    owners = [
        Owner("a", "Apply", "", "scale"),
        Owner("a", "Apply"),
        Owner("a", "Update", "v1"),
        Owner("b", "Apply"),
    ]

    turned = owners[::-1]
    assert sorted(turned, key=lambda owner: owner.sort_key) == owners


def test_of_several_entries_of_one_owner_the_last_counts():
    """As on the server, which makes such entries itself when an owner's count is scaled."""
    entry = {"manager": "a", "operation": "Apply", "apiVersion": "v1"}
    entries = entries_from_managed_fields(
        [{**entry, "fieldsV1": {"f:a": {}}}, {**entry, "fieldsV1": {"f:b": {}}}]
    )

    assert [FieldSet(e.fields).paths() for e in entries.values()] == [(".b",)]


def updates(count, version="v1"):
    entries = {}
    for number in range(count):
        owner = Owner(f"u{number:02}", "Update", version)
        time = f"2026-01-01T00:00:{number:02}Z"
        entries[owner] = Entry(owner, version, time, {f"f:{number}": {}})
    return entries


def test_ten_update_entries_stay_apart():
    entries = updates(10)

    assert capped(entries) is entries


def test_the_oldest_updates_are_joined():
    after = capped(updates(13))
    bucket = after[Owner("ancient-changes", "Update", "v1")]

    assert len(after) == 10
    assert FieldSet(bucket.fields).paths() == (".0", ".1", ".2", ".3")
    assert bucket.time == "2026-01-01T00:00:03Z"


def test_updates_of_different_versions_are_joined_apart():
    mixed = {**updates(6, "v1"), **updates(6, "v2")}
    after = capped(mixed)

    buckets = {owner.api_version for owner in after if owner.manager == "ancient-changes"}
    assert buckets == {"v1", "v2"}
    assert len(after) == 10


def test_updates_of_eleven_versions_cannot_be_joined():
    entries: Entries = {}
    for number in range(11):
        entries |= updates(1, f"v{number}")

    assert capped(entries) == entries


def test_the_bucket_itself_is_never_joined_away():
    """It may be younger than an update that has not been joined yet."""
    entries = updates(12)
    bucket = Owner("ancient-changes", "Update", "v1")
    entries[bucket] = Entry(bucket, "v1", "2026-01-01T00:00:01Z", {"f:old": {}})
    after = capped(entries)

    assert ".old" in FieldSet(after[bucket].fields).paths()

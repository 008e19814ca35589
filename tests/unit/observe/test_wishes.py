"""Whose wishes count, and what wakes the loop: people's annotations, never our own writes."""

from __future__ import annotations

import pytest

from stoker.model.refs import UnitRef
from stoker.objects.names import FLEET_ID
from stoker.objects.wishes import OVERRIDE, RECONCILE, SUSPEND, WHEN_FULL
from stoker.observe.events import events_from
from stoker.observe.keys import FLEETS, SERVICES
from stoker.observe.projection import entry_from
from stoker.observe.store import Changed
from stoker.observe.wishes import mirror_facts, wishes_of
from unit.observe.observe_builders import FLEET

AN_OVERRIDE = '{"replicas": 3, "until": "2026-01-01T00:00:00Z"}'
A_NODE = '{"whenFull": "Unpinned", "until": "2026-01-01T00:00:00Z"}'


def a_mirror(kind: str = "ModelService", fleet: str = FLEET, version: str = "1", **asks: str):
    """A mirror; `suspend`, `override`, `full` and `reconcile` are its annotations."""
    keys = {
        "suspend": SUSPEND,
        "override": OVERRIDE,
        "full": WHEN_FULL,
        "reconcile": RECONCILE,
    }
    annotations = {FLEET_ID: fleet, **{keys[name]: text for name, text in asks.items()}}
    manager = {"manager": f"stoker-{fleet}", "operation": "Apply", "fieldsV1": {"f:spec": {}}}
    return {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": "qwen",
            "namespace": "llm",
            "uid": "u",
            "resourceVersion": version,
            "annotations": annotations,
            "managedFields": [manager],
        },
        "spec": {"replicas": int(version)},
    }


def wishes(*mirrors):
    return wishes_of([mirror_facts(raw) for raw in mirrors], FLEET)


def told(before, after, key=SERVICES):
    made = (None if raw is None else entry_from(raw, key, FLEET) for raw in (before, after))
    return len(events_from(key, [Changed(*made)]))


def test_suspensions_and_overrides_of_this_fleet_are_read():
    found = wishes(
        a_mirror(suspend="{}", override=AN_OVERRIDE),
        a_mirror("Fleet", suspend="{}", reconcile="r1"),
    )

    assert ["Fleet", "ModelService"] == [each.ref.kind for each in found.suspensions]
    assert [(UnitRef("ModelService", "llm", "qwen"), 3)] == [
        (each.ref, each.replicas) for each in found.overrides
    ]
    assert "r1" == found.reconcile


def test_mirrors_of_another_fleet_and_those_made_by_hand_ask_nothing():
    """b.A row 27: whoever applies a ModelService by hand has no fleet behind it."""
    other = a_mirror(fleet="other", suspend="{}", override=AN_OVERRIDE)
    by_hand = a_mirror(suspend="{}")
    del by_hand["metadata"]["annotations"][FLEET_ID]

    assert wishes() == wishes(other, by_hand)


@pytest.mark.parametrize("text", [AN_OVERRIDE, "3"])
def test_an_override_on_the_fleet_means_nothing(text):
    found = wishes(a_mirror("Fleet", override=text))

    assert ((), ()) == (found.overrides, found.unread_overrides)


def test_an_override_that_cannot_be_read_is_seen_as_such():
    found = wishes(a_mirror(override='{"replicas": 3}'))

    assert () == found.overrides
    assert ['{"replicas": 3}'] == [each.text for each in found.unread_overrides]


def test_a_service_may_be_asked_for_a_count_and_for_a_node_at_once():
    both = wishes(a_mirror(override=AN_OVERRIDE, full=A_NODE))
    unread = wishes(a_mirror(override=AN_OVERRIDE, full="Unpinned"))

    assert [3] == [each.replicas for each in both.overrides]
    assert ["Unpinned"] == [each.when_full for each in both.when_full_overrides]
    assert ([3], [True]) == (
        [each.replicas for each in unread.overrides],
        [each.of_when_full for each in unread.unread_overrides],
    )


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        (None, a_mirror(), 0),
        (a_mirror(), None, 0),
        (a_mirror(), a_mirror(version="2"), 0),
        (a_mirror(), a_mirror(version="2", suspend="{}"), 1),
        (a_mirror(suspend="{}"), a_mirror(version="2"), 1),
        (a_mirror(suspend="{}"), None, 1),
        (a_mirror(), a_mirror(version="2", full=A_NODE), 1),
    ],
    ids=[
        "we-made-it",
        "we-took-it-away",
        "we-wrote-it",
        "asked",
        "taken-back",
        "mirror-deleted",
        "a-node",
    ],
)
def test_only_what_people_ask_wakes_the_loop(before, after, events):
    """Otherwise each pass that writes mirrors would wake the next."""
    assert events == told(before, after)
    assert events == told(before, after, FLEETS)


def test_nothing_else_of_a_mirror_is_kept():
    """b.A row 34: A thousand of them are in memory beside the objects that matter."""
    entry = entry_from(a_mirror(suspend="{}"), SERVICES, FLEET)

    assert not entry.whole
    assert b"replicas" not in entry.body

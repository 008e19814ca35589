"""The pods of a LeaderWorkerSet as one replica a group: Ready only when all of it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import NOW_MS, a_desired, a_ref, a_replica, a_unit
from stoker.model.snapshot import ReplicaPhase
from stoker.model.workload import workload_ref
from stoker.objects import names
from stoker.objects.inventory import Inventory
from stoker.observe.groups import group_keys, grouped
from stoker.observe.replicas import group_facts

READY, STARTING = ReplicaPhase.READY, ReplicaPhase.STARTING


def pods(*phases: ReplicaPhase, group: int = 0, **fields):
    """Members of one group by worker index, on nodes n0, n1, …"""
    return [
        (
            group,
            number,
            a_replica(
                f"s-{group}" + (f"-{number}" if number else ""), f"n{number}", phase, **fields
            ),
        )
        for number, phase in enumerate(phases)
    ]


def seen(*members, size=2, unready_ms=0, deadline_ms=60_000):
    return grouped(
        "s", size, members, unready_ms=unready_ms, deadline_ms=deadline_ms, now_ms=NOW_MS
    )


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ((READY, READY), READY),
        ((READY, STARTING), STARTING),
        ((STARTING, READY), STARTING),
        ((READY, ReplicaPhase.STUCK), ReplicaPhase.STUCK),
        ((READY, ReplicaPhase.TERMINATING), ReplicaPhase.TERMINATING),
        ((ReplicaPhase.IMAGE_PULL, STARTING), ReplicaPhase.IMAGE_PULL),
        ((READY,), ReplicaPhase.PENDING),
    ],
    ids=lambda each: "+".join(each) if isinstance(each, tuple) else each,
)
def test_a_group_is_as_far_as_its_last_pod(phases, expected):
    (group,) = seen(*pods(*phases))

    assert expected is group.phase


def test_it_bears_the_leaders_name_and_the_nodes_of_all():
    (group,) = seen(*pods(READY, READY))

    assert ("s-0", "uid-s-0", "n0", ("n0", "n1")) == (
        group.name,
        group.uid,
        group.node,
        group.nodes,
    )
    assert ["s-0-1"] == [worker.name for worker in group.workers]


def test_groups_are_counted_not_pods():
    """llm-d-autoscaling #1302: pods are not groups."""
    groups = seen(*pods(READY, READY, READY), *pods(READY, READY, READY, group=1), size=3)

    assert ["s-0", "s-1"] == [group.name for group in groups]


def test_a_group_without_its_leader_waits_and_is_not_leaving():
    """The leader alone bears the label for traffic: that it is not there is no drain."""
    (group,) = seen(*pods(READY, READY)[1:])

    assert (ReplicaPhase.PENDING, True, None) == (group.phase, group.traffic, group.drain)


def test_the_leader_drains_for_the_whole():
    (leader, worker) = pods(READY, READY)
    draining = a_replica("s-0", "n0", draining_for=5, in_flight=3)

    (group,) = seen((*leader[:2], draining), worker)

    assert not group.traffic
    assert group.drain is not None
    assert 3 == group.drain.in_flight


def test_what_is_stuck_is_blamed_where_it_runs():
    leader, worker = pods(STARTING, STARTING)
    stuck = replace(worker[2], phase=ReplicaPhase.STUCK, reason="CrashLoopBackOff")

    (group,) = seen(leader, (*worker[:2], stuck))

    assert ("n1", "CrashLoopBackOff") == (group.blamed_node, group.reason)


def test_a_group_made_again_and_again_is_stuck_in_the_end():
    """Its pods are new after each restart, so none of them ever passes the deadline."""
    members = pods(STARTING, STARTING)

    (patient,) = seen(*members, unready_ms=NOW_MS - 120_000)
    (stuck,) = seen(*members, unready_ms=NOW_MS - 120_001)

    assert STARTING is patient.phase
    assert (ReplicaPhase.STUCK, "DeadlineExceeded") == (stuck.phase, stuck.reason)


def raw(**status):
    labels = {names.PLACEMENT_LABEL: "p1"}
    return {
        "metadata": {
            "uid": "u1",
            "generation": 2,
            "creationTimestamp": "2026-11-29T00:00:00Z",
            "annotations": {
                names.REV: "r1",
                names.NODE: "n0",
                names.NODES: "n0,n1",
                names.DOMAIN: "a",
            },
        },
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": {
                "size": 2,
                "leaderTemplate": {"metadata": {"labels": labels}, "spec": {"containers": []}},
                "workerTemplate": {"spec": {"containers": []}},
            },
        },
        "status": status,
    }


def test_facts_of_a_set_name_size_nodes_and_domain():
    facts = group_facts(raw(replicas=1, observedGeneration=2), a_ref("web"))

    assert facts is not None
    assert (2, ("n0", "n1"), "a", "p1", 1) == (
        facts.size,
        facts.nodes,
        facts.domain,
        facts.placement,
        facts.counted_pods,
    )
    assert facts.observed
    assert facts.unready_ms, "since it was made, as far as nobody says otherwise"


def test_a_set_whose_controller_has_not_acted_is_not_settled():
    """Nothing is known of its pods yet: their GPUs must not be given away."""
    facts = group_facts(raw(), a_ref("web"))

    assert facts is not None
    assert not facts.observed


def test_the_kind_is_watched_where_it_is_wanted_or_owned_and_nowhere_else():
    """A cluster without groups is not asked for a kind that it may not serve."""
    unit = a_ref("web")
    owned = Inventory("f1", "prod-eu", {unit: {workload_ref("old", "x", grouped=True): "u"}})

    assert () == group_keys(a_desired(a_unit()), None)
    assert ["llm"] == [key.namespace for key in group_keys(a_desired(a_unit(nodes=2)), None)]
    assert ["old"] == [key.namespace for key in group_keys(a_desired(a_unit()), owned)]

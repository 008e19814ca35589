"""A service that left Git drains before prune deletes it; everything else goes at once."""

from __future__ import annotations

from fakes_live import FakeLive, applied_by
from stoker.diff import DiffMemo, diff
from stoker.model.change import Action
from stoker.model.plan import RetireStage
from stoker.model.refs import ref_from_manifest
from stoker.model.snapshot import (
    DrainState,
    LivePlacement,
    Replica,
    ReplicaPhase,
    ServiceState,
    Snapshot,
)
from stoker.objects.inventory import Inventory
from unit.diff.diff_builders import (
    FLEET_ID,
    NO_CLUSTER,
    QWEN,
    US,
    A,
    config,
    desired,
    marked,
    namespace,
    placement,
    rendered,
)

NOW = 1_800_000_000_000


def pod(phase=ReplicaPhase.READY, *, traffic=True, drain=None):
    return Replica(
        "p", "u", "n1", phase, since_ms=NOW, created_ms=NOW, traffic=traffic, drain=drain
    )


def run(*pods, unknown=(), consent=()):
    """A service with one Deployment, a budget's stand-in and a namespace, all gone from Git."""
    serving = applied_by(US, marked(QWEN, placement("qwen-1")))
    beside = applied_by(US, marked(QWEN, config("beside")))
    space = applied_by(US, marked(A, namespace("llm")))
    view = FakeLive().put(serving, beside, space)
    uid = serving["metadata"]["uid"]
    listed = [(QWEN, serving), (QWEN, beside), (A, space)]
    inventory = Inventory(FLEET_ID, "prod").union(
        (unit, ref_from_manifest(b), b["metadata"]["uid"]) for unit, b in listed
    )
    here = LivePlacement("qwen-1", uid, "r1", "n1", "nu", len(pods), pods)
    snapshot = Snapshot(NOW, "c1", services=(ServiceState(QWEN, (here,)),), unknown=unknown)
    found = diff(
        desired(A, allow_delete=consent),
        (rendered(A, elsewhere()),),
        view,
        inventory,
        NO_CLUSTER,
        FLEET_ID,
        DiffMemo(),
        snapshot=snapshot,
    )
    by_name = {c.ref.name: c for u in found.units for c in u.changes if c.manifest is None}
    steps = [r for u in found.units for r in u.retirements]
    return found, by_name, steps


def elsewhere():
    """Something that unit A still renders, in another namespace."""
    body = config("stays")
    body["metadata"]["namespace"] = "team"
    return body


def test_a_serving_replica_first_takes_no_new_requests():
    _, changes, steps = run(pod())

    assert [(s.name, s.stage, s.pods) for s in steps] == [
        ("qwen-1", RetireStage.STOP_TRAFFIC, ("p",))
    ]
    assert {c.action for c in changes.values()} <= {Action.WAIT, Action.KEEP}
    assert {changes["qwen-1"].code, changes["beside"].code} == {"draining"}


def test_a_draining_replica_is_waited_for_and_the_next_look_is_known():
    busy = pod(traffic=False, drain=DrainState(since_ms=NOW - 1000, in_flight=3))
    found, changes, steps = run(busy)

    assert steps == []
    assert changes["qwen-1"].action is Action.WAIT
    assert found.wake_at_ms is not None
    assert found.wake_at_ms > NOW


def test_what_drained_goes_with_everything_beside_it():
    idle = pod(traffic=False, drain=DrainState(since_ms=NOW - 60_000, in_flight=0))
    _, changes, steps = run(idle)

    assert steps == []
    assert changes["qwen-1"].action is changes["beside"].action is Action.DELETE


def test_a_drain_ends_with_the_grace_period_of_the_pods():
    """30 seconds where the template names none: nobody waits for a hung engine for ever."""
    hung = pod(traffic=False, drain=DrainState(since_ms=NOW - 30_000, in_flight=None))
    _, changes, _ = run(hung)

    assert changes["qwen-1"].action is Action.DELETE


def test_a_replica_that_serves_nobody_is_not_waited_for():
    _, changes, _ = run(pod(ReplicaPhase.STARTING))

    assert changes["qwen-1"].action is Action.DELETE


def test_pods_that_cannot_be_read_may_be_serving():
    """Unknown is not zero."""
    _, changes, steps = run(unknown=(("pods", "forbidden"),))

    assert steps == []
    assert (changes["qwen-1"].action, changes["qwen-1"].code) == (Action.WAIT, "draining")


def test_a_namespace_waits_for_the_replicas_in_it():
    """Its deletion would take them along, consent or not."""
    consent = ("Namespace/llm",)
    idle = pod(traffic=False, drain=DrainState(since_ms=NOW - 60_000, in_flight=0))
    _, before, _ = run(pod(), consent=consent)
    _, after, _ = run(idle, consent=consent)

    assert (before["llm"].action, before["llm"].code) == (Action.WAIT, "draining")
    assert after["llm"].action is Action.DELETE

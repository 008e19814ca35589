"""The whole of decide: what it decides about, what it leaves alone, and that it is pure."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_placement,
    a_ref,
    a_replica,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
    some_shapes,
)
from stoker.decide import decide, decide_steps
from stoker.model.codec import canonical_json, digest, from_data, to_data
from stoker.model.fleet import Bundle, PlacementMode
from stoker.model.history import History, UnitHistory
from stoker.model.plan import Plan
from unit.decide.one import OLD, created, decided, held, planned

SCHEDULER: dict[str, Any] = {"placement_mode": PlacementMode.SCHEDULER}


# --------------------------------------------------- what is decided about
def test_services_are_decided_in_order_of_name_each_seeing_what_was_taken():
    desired = a_desired(a_unit("b"), a_unit("a"))
    plan = decide(desired, some_shapes(desired), a_snapshot(a_node("n1", gpus=1)), History(), 0)

    assert ["a", "b"] == [decision.ref.name for decision in plan.decisions]
    assert [{"n1": 1}, {}] == [created(decision) for decision in plan.decisions]


def test_a_service_that_did_not_render_is_absent_and_its_objects_stay():
    unit = a_unit("a")
    live = a_placement("n1", service="a")
    plan = decide(
        a_desired(unit), (), a_snapshot(a_node("n1"), services=[a_state(live)]), History(), 0
    )

    assert () == plan.decisions


def test_bundles_are_not_decided_about():
    assert () == decide(a_desired(a_unit(spec=Bundle())), (), a_snapshot(), History(), 0).decisions


def test_what_left_git_is_prunes_business_but_its_gpus_count():
    gone = a_state(a_placement("n1", replicas=1, service="gone"), name="gone")
    desired = a_desired(a_unit("a"), broken=[a_ref("gone")])
    snapshot = a_snapshot(a_node("n1", gpus=1), services=[gone])
    plan = decide(desired, some_shapes(desired), snapshot, History(), 0)

    assert ["a"] == [decision.ref.name for decision in plan.decisions]
    assert ["HeldNoCapacity"] == held(plan.decisions[0])


# ----------------------------------------------------- unknown is not empty
@pytest.mark.parametrize(
    "what",
    [
        "nodes",
        "pods",
        "pods/llm",
        "pods/other",
        "deployments",
        "deployments/llm",
        "deployments/llm/qwen-1",
    ],
)
def test_what_could_not_be_read_changes_nothing(what):
    """cases.md row 123: nodes forbidden is neither unlimited nor zero."""
    live = a_placement("n1", a_replica("a", "n1"), a_replica("b", "n1", "Starting"), rev=OLD)
    decision = decided(live, unknown={what: "forbidden"}, replicas=0)

    assert ((), (), (live.name,)) == (
        decision.placements,
        decision.retirements,
        decision.untouched,
    )
    assert (None, 1, 1, True) == (
        decision.replicas,
        decision.ready,
        decision.warming,
        decision.updating,
    )
    assert ["SnapshotUnknown"] == held(decision)
    assert f"{what} unknown: forbidden" == decision.holds[0].message


@pytest.mark.parametrize(
    "what",
    [
        "deployments/other",
        "deployments/llm/other-1",
        "deployments/other/qwen",
        "nodestates",
        "cluster",
    ],
)
def test_what_does_not_concern_a_service_does_not_hold_it(what):
    assert {"n1": 1, "n2": 1} == created(decided(unknown={what: "forbidden"}))


@pytest.mark.parametrize(
    ("what", "decides"), [("nodes", True), ("pods/other", True), ("pods/llm", False)]
)
def test_mode_scheduler_needs_no_nodes(what, decides):
    decision = decided(**SCHEDULER, unknown={what: "forbidden"})

    assert decides == (decision.replicas is not None)


def test_mode_scheduler_needs_nodes_while_deployments_of_mode_nodes_stand():
    decision = decided(a_placement("n1"), **SCHEDULER, unknown={"nodes": "forbidden"})

    assert ["SnapshotUnknown"] == held(decision)


def test_an_unread_pass_remembers_what_was_known():
    history = History(((a_ref(), UnitHistory(wanted=5)),))

    assert history.records() == planned(unknown={"nodes": "x"}, history=history).history


# ------------------------------------------------------------------ history
def test_the_plan_hands_on_what_it_learned():
    plan = planned(replicas=2)

    assert History(((a_ref(), UnitHistory(wanted=2)),)) == History.from_records(plan.history)


def test_a_held_update_remembers_since_when():
    full = [a_node("n1", gpus=1)]
    old = a_placement("n1", rev=OLD)
    first = planned(old, nodes=full, replicas=1)
    history = History.from_records(first.history)
    second = planned(old, nodes=full, replicas=1, history=history, now_ms=NOW_MS + 5_000)
    done = planned(a_placement("n1"), nodes=full, replicas=1, history=history)

    assert NOW_MS == History.from_records(second.history).of(a_ref()).held_since_ms
    assert History.from_records(done.history).of(a_ref()).held_since_ms is None


def test_units_that_left_git_are_forgotten_and_broken_ones_are_not():
    gone, broken = a_ref("gone"), a_ref("broken")
    history = History(((broken, UnitHistory(1)), (gone, UnitHistory(2))))
    desired = a_desired(a_unit("a"), broken=[broken])
    plan = decide(desired, some_shapes(desired), a_snapshot(a_node("n1")), history, 0)

    assert [a_ref("a"), broken] == [ref for ref, _ in plan.history]
    unsure = replace(desired, unit_set_known=False)
    plan = decide(unsure, some_shapes(desired), a_snapshot(a_node("n1")), history, 0)
    assert [a_ref("a"), broken, gone] == [ref for ref, _ in plan.history]


# ------------------------------------------------------------------- purity
def test_the_generator_yields_after_each_service_and_ends_with_the_same_plan():
    desired = a_desired(a_unit("a"), a_unit("b"))
    arguments = (desired, some_shapes(desired), a_snapshot(a_node("n1")), History(), NOW_MS)
    steps = decide_steps(*arguments)

    seen = []
    try:
        while True:
            seen.append(next(steps))
    except StopIteration as end:
        plan = end.value

    assert decide(*arguments) == plan
    assert plan.decisions == tuple(seen)


def test_a_plan_survives_the_record():
    plan = planned(a_placement("n1", rev=OLD), a_placement("n2", replicas=0))

    assert plan == from_data(Plan, to_data(plan))


def test_no_part_of_a_plan_depends_on_the_hash_seed():
    """Sets are ordered by hash: none may be iterated."""
    script = (
        "import sys; sys.path[:0] = sys.argv[1:3];"
        "from unit.decide.test_decide import a_busy_plan; print(a_busy_plan())"
    )
    tests = Path(__file__).parents[2]
    found = {
        subprocess.run(
            [sys.executable, "-c", script, str(tests), str(tests.parent / "controller")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert {f"{a_busy_plan()}\n"} == found


def a_busy_plan() -> str:
    """The digest of a plan in which every part of decide has something to do."""
    units = [a_unit(f"s{n}", replicas=3, model_revision=str(n % 2) * 40) for n in range(6)]
    desired = a_desired(*units)
    nodes = [
        a_node(
            f"n{n:02}",
            gpus=2,
            cordoned=n % 5 == 1,
            weights=(str(n % 2) * 40,),
            images=(f"i{n % 3}",),
            labels={"zone": f"z{n % 3}"},
        )
        for n in range(8)
    ]
    services = [
        a_state(
            *(
                a_placement(
                    f"n{n + step:02}",
                    a_replica(f"s{n}-{step}", f"n{n + step:02}", phase),
                    service=f"s{n}",
                    rev=rev,
                )
                for step, (phase, rev) in enumerate([("Ready", OLD), ("Stuck", "aaaaaaaa")])
            ),
            name=f"s{n}",
        )
        for n in range(4)
    ]
    snapshot = a_snapshot(*nodes, services=services)
    return digest(to_data(decide(desired, some_shapes(desired), snapshot, History(), NOW_MS)))


def test_a_plan_is_sorted_and_plain():
    plan = planned(a_placement("n3", rev=OLD), a_placement("n1", rev=OLD), replicas=2)
    (decision,) = plan.decisions

    names = [placement.name for placement in decision.placements]
    assert sorted(names) == names
    assert canonical_json(to_data(plan))


def test_a_shape_of_another_unit_changes_nothing():
    desired = a_desired(a_unit("a"))
    shapes = (*some_shapes(desired), replace(a_shape(), ref=a_ref("b")))

    assert 1 == len(decide(desired, shapes, a_snapshot(a_node("n1")), History(), 0).decisions)

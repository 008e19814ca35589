"""The last line of a diff."""

from fakes_live import FakeLive, applied_by
from stoker.diff import DiffMemo, Summary, diff, summarise
from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.fleet import PlacementMode
from stoker.model.plan import (
    CountReason,
    Placement,
    Plan,
    Readiness,
    Retirement,
    RetireStage,
    ServiceDecision,
    WarmthClass,
)
from stoker.model.refs import ObjectRef, ref_from_manifest
from stoker.objects.inventory import Inventory
from unit.diff.diff_builders import (
    FLEET_ID,
    NO_CLUSTER,
    QWEN,
    US,
    A,
    config,
    deployment,
    desired,
    marked,
    placement,
    rendered,
)


def standing(*names, gpus=1, replicas=1):
    return [applied_by(US, marked(QWEN, placement(n, gpus=gpus, replicas=replicas))) for n in names]


def spot(name, *, warm=False, replaces=""):
    warmth = WarmthClass.WARM if warm else WarmthClass.COLD
    return Placement(
        name, "r1", "n", "u", "p", 1, replaces=replaces, readiness=Readiness(warmth, 1, 1)
    )


def plan_of(*placements):
    decision = ServiceDecision(
        QWEN, PlacementMode.NODES, "r1", 1, CountReason("Git"), placements=placements
    )
    return Plan(0, (decision,))


def summary(live, *bodies, plan=None, kept=(), retirements=()):
    view = FakeLive().put(*live)
    inventory = Inventory(FLEET_ID, "prod").union(
        (QWEN, ref_from_manifest(b), b["metadata"]["uid"]) for b in live
    )
    found = rendered(
        QWEN, *bodies, kept=tuple(ref_from_manifest(b) for b in kept), retirements=retirements
    )
    changes = diff(
        desired(QWEN), (found,), view, inventory, NO_CLUSTER, FLEET_ID, DiffMemo(), plan=plan
    )
    return summarise(changes, plan, view, FLEET_ID)


def retiring(name, keep=0, stage=RetireStage.DRAIN):
    return Retirement(name, f"uid-of-{name}", stage, "moved", keep=keep)


def test_a_new_placement_counts_its_gpus_and_its_cold_start():
    found = summary(
        standing("one"),
        placement("one", replicas=1),
        placement("two", gpus=2),
        plan=plan_of(spot("two")),
    )

    assert (found.create, found.unchanged) == (1, 1)
    assert (found.gpus_before, found.gpus_after) == (1, 5)
    assert found.cold_starts == 2
    assert found.differs


def test_a_warm_start_is_not_cold():
    found = summary([], placement("two", replicas=1), plan=plan_of(spot("two", warm=True)))

    assert found.cold_starts == 0


def test_a_replace_is_neither_create_nor_delete_and_peaks():
    """ux.md: a replace never counts as a delete."""
    live = standing("one")
    plan = plan_of(spot("two", replaces="one"))
    found = summary(
        live, placement("two", replicas=1), plan=plan, kept=live, retirements=(retiring("one"),)
    )

    assert (found.create, found.replace, found.delete) == (0, 1, 0)
    assert (found.gpus_before, found.gpus_after, found.gpus_peak) == (1, 1, 2)
    assert "GPUs 1 -> 1 (peak 2)" in str(found)


def test_a_replaced_deployment_that_leaves_later_is_still_no_delete():
    live = standing("one", "two")
    plan = plan_of(spot("two", replaces="one"))
    found = summary(
        live, placement("two", replicas=1), plan=plan, kept=live[:1], retirements=(retiring("one"),)
    )

    assert (found.replace, found.delete) == (1, 0)
    assert (found.gpus_before, found.gpus_after) == (2, 1)


def test_a_deployment_that_leaves_for_nothing_is_a_delete():
    live = standing("one")
    found = summary(live, config(), plan=plan_of(), kept=live, retirements=(retiring("one"),))

    assert (found.delete, found.gpus_after) == (1, 0)


def test_surplus_that_leaves_is_a_change():
    live = standing("one", replicas=2)
    found = summary(live, placement("one"), plan=plan_of(), retirements=(retiring("one", keep=1),))

    assert (found.change, found.unchanged) == (1, 1)
    assert (found.gpus_before, found.gpus_after) == (2, 1)


def test_surplus_of_a_changing_deployment_counts_once():
    live = standing("one", replicas=2)
    found = summary(live, placement("one", replicas=1), retirements=(retiring("one", keep=1),))

    assert found.change == 1
    assert found.gpus_after == 1


def test_more_replicas_without_a_plan_start_cold():
    found = summary(standing("one"), placement("one", replicas=3))

    assert (found.change, found.cold_starts, found.gpus_peak) == (1, 2, 3)


def test_deletes_free_their_gpus():
    live = FakeLive().put(*standing("one"))
    ref = ObjectRef("apps", "Deployment", "llm", "one")
    changes = ChangeSet((UnitChanges(QWEN, (Change(ref, Action.DELETE, live_uid="u"),)),))
    found = summarise(changes, None, live, FLEET_ID)

    assert (found.delete, found.gpus_before, found.gpus_after) == (1, 1, 0)


def test_workloads_of_bundles_count_no_gpus():
    view = FakeLive()
    changes = diff(
        desired(A),
        (rendered(A, deployment()),),
        view,
        Inventory(FLEET_ID, "prod"),
        NO_CLUSTER,
        FLEET_ID,
        DiffMemo(),
    )
    found = summarise(changes, None, view, FLEET_ID)

    assert (found.create, found.gpus_after, found.cold_starts) == (1, 0, 0)


def test_odd_bodies_count_nothing():
    odd = placement("one", container={"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "x"}}})
    odd["spec"]["replicas"] = "2"
    found = summary(
        [applied_by(US, marked(QWEN, {**odd, "spec": {**odd["spec"], "replicas": 1}}))], odd
    )

    assert found.gpus_before == 0


def test_the_line_reads_as_in_ux():
    found = Summary(
        create=1,
        change=1,
        replace=3,
        unchanged=41,
        gpus_before=15,
        gpus_after=16,
        gpus_peak=17,
        cold_starts=4,
    )

    assert str(found) == (
        "Plan: 1 to create, 1 to change, 3 to replace, 0 to delete, 41 unchanged; "
        "GPUs 15 -> 16 (peak 17); cold starts 4"
    )


def test_rare_counts_are_named_only_when_there_are_any():
    assert "2 kept, 1 waiting, 3 in error" in str(Summary(kept=2, wait=1, error=3))
    assert not Summary(kept=2, unchanged=5).differs
    assert Summary(error=1).differs

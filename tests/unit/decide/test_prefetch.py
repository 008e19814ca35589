"""Image and weights come to the next-best nodes before a replica does, under a budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    IMAGE,
    MODEL,
    MODEL_REVISION,
    NOW_MS,
    a_desired,
    a_fleet,
    a_node,
    a_notice,
    a_placement,
    a_ref,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
)
from stoker.decide import decide
from stoker.decide.prefetch import DONE_FOR_MS, FAILED_FOR_MS
from stoker.model.cache import Cache, CacheType
from stoker.model.fleet import ModelService
from stoker.model.flow import Held, HeldBy
from stoker.model.history import History
from stoker.model.plan import WarmthClass
from stoker.model.prefetch import LivePrefetch, PrefetchState

RUNNING, DONE, FAILED = PrefetchState.RUNNING, PrefetchState.DONE, PrefetchState.FAILED


def on_disk(nodes=1):
    return Cache(CacheType.HOST_PATH, "/mnt/nvme", prefetch_nodes=nodes)


def a_job(node="n2", state=RUNNING, *, name="", age=60, **fields):
    return LivePrefetch(
        unit=fields.pop("unit", a_ref()),
        name=name or f"qwen-prefetch-{node}",
        uid=f"uid-{node}",
        node=node,
        node_uid=fields.pop("node_uid", f"uid-{node}"),
        image=fields.pop("image", IMAGE),
        model_uri=fields.pop("model_uri", MODEL),
        model_revision=fields.pop("model_revision", MODEL_REVISION),
        state=state,
        since_ms=NOW_MS - age * 1_000,
    )


def the_plan(*jobs, nodes, units=None, most=2, now_ms=NOW_MS, services=None, **more):
    units = units or (a_unit(cache=on_disk()),)
    states = services if services is not None else [a_state(a_placement("n1"))]
    snapshot = a_snapshot(*nodes, services=states, unknown=more.pop("unknown", None))
    snapshot = replace(snapshot, prefetches=tuple(sorted(jobs, key=lambda j: (j.unit, j.name))))
    desired = a_desired(*units, fleet=a_fleet(most_prefetches=most), **more)
    shapes = tuple(a_shape(unit) for unit in desired.units)
    return decide(desired, shapes, snapshot, History(), now_ms)


def made(plan):
    return [each.node for each in plan.prefetches if each.state is None]


def over(plan):
    return {each.node: each.over for each in plan.prefetches if each.over}


def three(**fields):
    return tuple(a_node(f"n{number}", gpus=1, **fields) for number in (1, 2, 3))


def test_nothing_is_fetched_ahead_unless_it_is_asked_for():
    plan = the_plan(nodes=three(), units=(a_unit(cache=on_disk(0)),))

    assert () == plan.prefetches


def test_the_next_best_node_without_a_replica_fetches():
    """n1 has the replica; n2 and n3 are alike, the name decides."""
    plan = the_plan(nodes=three())

    assert ["n2"] == made(plan)


def test_a_job_of_its_own_takes_no_place_of_a_replica():
    """Prefetches are decided after all services and change nothing else of the plan."""
    units = (a_unit(cache=on_disk(2), replicas=2),)

    plan = the_plan(nodes=three(), units=units)
    without = the_plan(nodes=three(), units=(a_unit(cache=on_disk(0), replicas=2),))
    bare = tuple(replace(each, prefetches=()) for each in plan.decisions)

    assert without.decisions == bare
    assert ["n3"] == made(plan), "n2 gets the missing replica"


def test_nodes_that_hold_everything_need_no_job_and_count():
    warm = a_node("n3", gpus=1, weights=[MODEL_REVISION], images=[IMAGE])

    plan = the_plan(nodes=(*three()[:2], warm))

    assert [] == made(plan)


def test_a_node_that_lacks_the_image_alone_fetches_it():
    nodes = (three()[0], a_node("n3", gpus=1, weights=[MODEL_REVISION]))

    plan = the_plan(nodes=nodes)

    assert ["n3"] == made(plan)


@pytest.mark.parametrize(
    "fields",
    [{"notice": a_notice()}, {"cordoned": True}, {"ready": False}, {"used": 1}, {"pool": "other"},
     {"hint": "rebalance"}],
    ids=["noticed", "cordoned", "not-ready", "full", "pool", "hinted"],
)  # fmt: skip
def test_no_job_goes_where_no_replica_could(fields):
    plan = the_plan(nodes=(a_node("n1", gpus=1), a_node("n2", gpus=1, **fields)))

    assert [] == made(plan)


def test_a_budget_of_the_fleet_bounds_jobs_of_all_services():
    nodes = tuple(a_node(f"n{number}", gpus=1) for number in range(9))
    units = tuple(
        a_unit(name, cache=on_disk(3), replicas=0, model_uri=f"hf://example/{name}")
        for name in ("a", "b")
    )

    plan = the_plan(nodes=nodes, units=units, services=[], most=3)

    assert 3 == len(made(plan))
    assert 2 == len([p for p in plan.decisions[0].prefetches if p.state is None])
    assert 1 == len(plan.decisions[1].prefetches), "the best node of each comes first"


def test_running_jobs_of_units_that_left_git_use_the_budget_too():
    job = a_job("n3", unit=a_ref("gone"), name="gone-prefetch")

    plan = the_plan(job, nodes=three(), most=1)

    assert [] == made(plan)


def test_one_job_at_a_time_fetches_a_model_to_a_node():
    """Two services of one model: the second waits, then finds everything there."""
    units = tuple(a_unit(name, cache=on_disk(1), replicas=0) for name in ("a", "b"))

    plan = the_plan(nodes=three()[:1], units=units, services=[], most=8)

    assert ["n1"] == made(plan)


def test_a_running_job_makes_its_node_warming_and_stays():
    plan = the_plan(a_job("n3"), nodes=three())
    replicas = the_plan(
        a_job("n3"), nodes=three()[2:], services=[], units=(a_unit(cache=on_disk(), replicas=1),)
    )

    assert [] == made(plan)
    assert {} == over(plan), "n2 is as good, but the job has begun"
    readiness = replicas.decisions[0].placements[0].readiness
    assert readiness is not None
    assert WarmthClass.WARMING is readiness.warmth


def test_a_done_job_makes_its_node_warm_without_any_reporter():
    """The next replica goes there, and estimates say so."""
    units = (a_unit(cache=on_disk(), replicas=1),)

    plan = the_plan(a_job("n3", DONE), nodes=three(), units=units, services=[])
    placement = plan.decisions[0].placements[0]

    assert "n3" == placement.node
    assert placement.readiness is not None
    assert WarmthClass.WARM is placement.readiness.warmth
    assert "a replica is there" == over(plan)["n3"]


def test_what_the_reporter_of_a_node_says_of_its_disk_outranks_a_done_job():
    """It lists other weights and not these: they were deleted since."""
    nodes = (*three()[:2], a_node("n3", gpus=1, weights=["b" * 40]))

    plan = the_plan(
        a_job("n3", DONE), nodes=nodes, units=(a_unit(cache=on_disk(), replicas=1),), services=[]
    )
    readiness = plan.decisions[0].placements[0].readiness

    assert readiness is not None
    assert WarmthClass.WARM is not readiness.warmth


def test_a_done_job_of_a_node_that_was_made_anew_makes_nothing_warm():
    plan = the_plan(a_job("n2", DONE, node_uid="uid-old"), nodes=three())

    assert ["n2"] == made(plan)
    assert {"n2": "node n2 is gone"} == over(plan)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (a_job("n2", image="registry.example/vllm:old"), "another image"),
        (a_job("n2", model_revision="b" * 40), "another image or model revision"),
        (a_job("n2", model_uri="", model_revision=""), "another image or model revision"),
        (a_job("n1", DONE), "a replica is there"),
        (a_job("n9"), "node n9 is gone"),
        (a_job("n2", DONE, age=DONE_FOR_MS // 1_000), "ended long ago"),
        (a_job("n2", FAILED, age=FAILED_FOR_MS // 1_000), "ended long ago"),
    ],
)  # fmt: skip
def test_a_job_that_is_no_longer_wanted_is_over(job, why):
    plan = the_plan(job, nodes=three())

    assert why in over(plan)[job.node]


@pytest.mark.parametrize("fields", [{"cordoned": True}, {"notice": a_notice()}])
def test_a_job_on_a_node_that_goes_away_is_over(fields):
    nodes = (a_node("n1", gpus=1), a_node("n2", gpus=1, **fields), a_node("n3", gpus=1))

    plan = the_plan(a_job("n2"), nodes=nodes)

    assert ["n2"] == list(over(plan))
    assert ["n3"] == made(plan)


def test_all_jobs_are_over_once_nothing_is_fetched_ahead():
    plan = the_plan(a_job("n2"), nodes=three(), units=(a_unit(cache=on_disk(0)),))

    assert {"n2": "nothing is fetched ahead any more"} == over(plan)


def test_more_jobs_than_wanted_are_over_the_done_ones_stay():
    plan = the_plan(a_job("n2"), a_job("n3", DONE), nodes=three())

    assert {"n2": "enough other nodes are warm"} == over(plan)


def test_a_job_on_a_node_that_is_full_now_goes_on_and_does_not_count():
    nodes = (a_node("n1", gpus=1), a_node("n2", gpus=1, used=1), a_node("n3", gpus=1))

    plan = the_plan(a_job("n2"), nodes=nodes)

    assert {} == over(plan)
    assert ["n3"] == made(plan)


def test_after_a_failure_another_node_fetches_and_the_plan_is_made_again_in_an_hour():
    plan = the_plan(a_job("n2", FAILED, age=60), nodes=three())

    assert ["n3"] == made(plan)
    assert {} == over(plan)
    assert NOW_MS - 60_000 + FAILED_FOR_MS == plan.wake_at_ms


def test_a_hint_warms_one_more_node_and_moves_nobody():
    """Design section 4: hints pre-warm only."""
    nodes = (a_node("n1", gpus=1, hint="rebalance"), *three()[1:])

    plan = the_plan(nodes=nodes)

    assert ["n2", "n3"] == sorted(made(plan))
    assert () == plan.decisions[0].retirements
    assert ["n1"] == [p.node for p in plan.decisions[0].placements]


def test_a_hint_warms_nothing_where_nothing_is_fetched_ahead():
    nodes = (a_node("n1", gpus=1, hint="rebalance"), *three()[1:])

    plan = the_plan(nodes=nodes, units=(a_unit(cache=on_disk(0)),))

    assert () == plan.prefetches


@pytest.mark.parametrize("what", ["jobs", "jobs/llm"])
def test_jobs_that_could_not_be_read_start_and_end_nothing(what):
    """Unknown is not empty: there may be one already."""
    job = a_job("n9")

    plan = the_plan(job, nodes=three(), unknown={what: "forbidden"})

    assert [] == made(plan)
    assert {} == over(plan)


@pytest.mark.parametrize("why", ["nodes", "pods", "deployments/llm/qwen"])
def test_a_service_that_could_not_be_read_keeps_its_jobs(why):
    plan = the_plan(a_job("n9"), nodes=three(), unknown={why: "timed out"})

    assert ["n9"] == [each.node for each in plan.prefetches]
    assert {} == over(plan)


def test_a_held_service_keeps_its_jobs_as_they_are():
    held = Held(a_ref(), HeldBy.SUSPENDED, "by hand", whole=True)

    plan = the_plan(a_job("n9"), nodes=three(), held=(held,))

    assert [("n9", "")] == [(each.node, each.over) for each in plan.prefetches]


def test_weights_that_no_node_keeps_are_left_out_of_a_job():
    """A shared volume holds them for all; only the image is fetched."""
    cache = Cache(CacheType.PVC, claim="models", prefetch_nodes=1)
    nodes = (three()[0], a_node("n2", gpus=1), a_node("n3", gpus=1, images=[IMAGE]))

    plan = the_plan(nodes=nodes, units=(a_unit(cache=cache),))

    assert [] == made(plan), "n3 holds the image: that is all there is to fetch"


STATES = st.sampled_from(list(PrefetchState))


@given(
    jobs=st.lists(st.tuples(st.integers(1, 5), STATES, st.integers(0, 100_000)), max_size=5),
    free=st.lists(st.booleans(), min_size=5, max_size=5),
    hinted=st.lists(st.booleans(), min_size=5, max_size=5),
    wanted=st.integers(0, 4),
    most=st.integers(0, 3),
)  # fmt: skip
def test_whatever_stands_the_bounds_hold(jobs, free, hinted, wanted, most):
    """Never over the budget, never twice on a node, never beside a replica, moving nobody."""
    nodes = tuple(
        a_node(f"n{i + 1}", gpus=1, used=int(not free[i]), hint="rebalance" if hinted[i] else "")
        for i in range(5)
    )
    live = tuple(
        a_job(f"n{n}", state, name=f"job-{k}", age=age) for k, (n, state, age) in enumerate(jobs)
    )
    units = (a_unit(cache=on_disk(wanted)), a_unit("other", cache=on_disk(wanted), replicas=0))

    plan = the_plan(*live, nodes=nodes, units=units, most=most)
    new = made(plan)
    running = sum(job.state is RUNNING for job in live)
    bare = the_plan(nodes=nodes, units=tuple(_without(unit) for unit in units), most=most)

    assert len(new) <= max(0, most - running)
    assert len(new) == len(set(new)), "both services serve one model"
    assert not set(new) & {node.name for node in nodes if node.hint}
    assert not set(new) & {p.node for d in plan.decisions for p in d.placements}
    stay = [each.node for each in plan.prefetches if not each.over]
    assert len(new) <= len(stay)
    for decision in plan.decisions:
        at = [each.node for each in decision.prefetches if not each.over]
        assert len(at) == len(set(at)), "one Job of a service on a node"
    assert [d.retirements for d in bare.decisions] == [d.retirements for d in plan.decisions]
    assert plan == the_plan(*reversed(live), nodes=tuple(reversed(nodes)), units=units, most=most)


def _without(unit):
    assert isinstance(unit.spec, ModelService)
    return replace(unit, spec=replace(unit.spec, cache=on_disk(0)))

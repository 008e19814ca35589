"""Ready-in is learned from this fleet's own starts, and nothing else hangs on what is learned."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import IMAGE, MODEL_REVISION, NOW_MS, a_node, a_placement, a_replica, a_unit
from stoker.decide.estimates import Estimates, node_class
from stoker.decide.ready_in import LEAST_SAMPLES, Facts, estimate
from stoker.model.fleet import CudaGraphs
from stoker.model.history import History
from stoker.model.snapshot import ReplicaPhase
from stoker.model.start_samples import NO_STARTS, OpenStart, Starts, StartSample
from unit.decide.index import a_case, an_index
from unit.decide.one import OLD, kept, leaving, planned

COLD = Facts()
FAST = {"node.kubernetes.io/instance-type": "fast"}


def pod(phase, node="n1", **times):
    """A pod made 100 s ago. `scheduled`, `started` and `ready` are seconds after that."""
    born = NOW_MS - 100_000
    stamps = {
        f"{name}_ms": born + 1_000 * times.pop(name)
        for name in ("scheduled", "started")
        if name in times
    }
    ready = times.pop("ready", None)
    found = a_replica("p", node, phase, age=100, **stamps, **times)
    return found if ready is None else replace(found, since_ms=born + 1_000 * ready)


EARLY = pod("ImagePull", scheduled=2)
DONE = pod("Ready", scheduled=2, started=30, ready=90)


def learned(*seen, starts=NO_STARTS, place="n1", **fields):
    """What is known after passes that saw the pod like this; None is a pass without it."""
    for each in seen:
        placements = () if each is None else (a_placement(place, each),)
        plan = planned(*placements, history=History(starts=starts), replicas=1, **fields)
        starts = plan.starts
    return starts


def samples(starts):
    return [sample for _, ring in starts.rings for sample in ring]


def test_a_start_that_was_followed_to_ready_is_one_sample():
    found = learned(EARLY, DONE)

    assert [StartSample(NOW_MS - 10_000, 2_000, 28_000, 60_000)] == samples(found)
    assert () == found.open


def test_a_pod_counts_once_however_often_it_is_seen():
    once = learned(EARLY, DONE)

    assert once == learned(EARLY, DONE, DONE, DONE)
    later = replace(DONE, since_ms=DONE.since_ms + 5_000)
    assert once == learned(EARLY, DONE, pod("Starting", scheduled=2, started=30), later)


@pytest.mark.parametrize(
    "seen",
    [
        (DONE,),
        (pod("Starting", scheduled=2, started=30), DONE),
    ],
    ids=["already Ready", "engine runs already"],
)
def test_a_start_that_was_seen_too_late_teaches_nothing(seen):
    """The image is on the node by then: nobody knows whether it was before."""
    assert [] == samples(learned(*seen))


@pytest.mark.parametrize(
    "trouble",
    [
        pod("Stuck", reason="ImagePullBackOff"),
        pod("Stuck", reason="ErrImagePull"),
        pod("Pending", node="", reason="Unschedulable"),
        pod("Pending", node="", reason="SchedulingGated"),
    ],
    ids=["throttled", "pull failed", "no room", "gated"],
)
def test_a_start_that_met_trouble_teaches_nothing(trouble):
    """Failed, throttled, or unscheduled for lack of room."""
    assert [] == samples(learned(trouble, EARLY, DONE))
    assert [] == samples(learned(EARLY, trouble, DONE))


def test_a_start_with_restarts_teaches_nothing():
    again = pod("Starting", scheduled=2, started=30, restarts=1)

    assert NO_STARTS == learned(EARLY, again, replace(DONE, restarts=1))
    assert [] == samples(learned(EARLY, replace(DONE, restarts=1)))


def test_a_start_over_its_deadline_teaches_nothing():
    assert [] == samples(learned(EARLY, DONE, cold_start_deadline_ms=50_000))


@pytest.mark.parametrize(
    "done",
    [
        replace(DONE, scheduled_ms=0),
        replace(DONE, started_ms=0),
        replace(DONE, started_ms=DONE.since_ms + 1),
        replace(DONE, scheduled_ms=DONE.created_ms - 1),
    ],
    ids=["not scheduled", "not started", "Ready before started", "bound before made"],
)
def test_instants_that_are_unknown_or_run_backwards_teach_nothing(done):
    """Unknown is not zero."""
    assert [] == samples(learned(EARLY, done))


def test_a_pod_that_landed_elsewhere_counts_for_where_it_runs():
    nodes = [a_node("n1"), a_node("n2", labels=FAST)]
    bound = pod("ImagePull", node="n2", scheduled=2)
    found = learned(
        pod("Pending", node=""), bound, replace(DONE, node="n2"), nodes=nodes, place="n1"
    )
    there = an_index(*nodes).start_key(a_case(a_unit(replicas=1), pools=()), "n2")

    assert [there] == [key for key, _ in found.rings]
    late = learned(EARLY, replace(DONE, node="n2"), nodes=nodes)
    assert [] == samples(late)


def test_a_pod_that_is_gone_is_forgotten_and_one_that_could_not_be_read_is_not():
    followed = learned(EARLY)

    assert ["uid-p"] == [each.uid for each in followed.open]
    assert () == learned(None, starts=followed).open
    assert followed == learned(None, starts=followed, unknown={"pods": "forbidden"})


def test_a_pod_of_an_older_rev_is_not_followed():
    """What it loads is not in the files any more."""
    plan = planned(a_placement("n1", EARLY, rev=OLD), history=History(), replicas=1)

    assert () == plan.starts.open


def test_a_terminating_pod_is_no_start():
    assert () == learned(EARLY, replace(EARLY, phase=ReplicaPhase.TERMINATING)).open


# ------------------------------------------------------------------ kinds of starts
def key_of(facts=COLD, labels=None, **spec):
    return Estimates(NO_STARTS).key(a_case(a_unit(**spec)), facts, labels or {})


def test_starts_of_another_kind_teach_nothing_about_this_one():
    kinds = [
        key_of(),
        key_of(Facts(image=True)),
        key_of(Facts(weights=True)),
        key_of(labels=FAST),
        key_of(labels={"nvidia.com/gpu.product": "L4"}),
        key_of(model_revision="0" * 40),
        key_of(engine_args=("--max-model-len", "8192")),
        key_of(cuda_graphs=CudaGraphs.CAPTURE),
        key_of(tensor_parallel=2),
    ]

    assert len(kinds) == len(set(kinds))
    assert key_of() == key_of(replicas=7, min_ready=3), "a count changes no start"
    assert key_of() == key_of(Facts(serving=True, warming=True)), "classes are words for people"


def test_services_of_one_model_share_what_is_learned():
    one, two = (a_case(a_unit(name)) for name in ("one", "two"))

    assert Estimates(NO_STARTS).key(one, COLD, {}) == Estimates(NO_STARTS).key(two, COLD, {})


def test_the_instance_type_tells_more_than_the_gpu():
    """Disk and network are part of it."""
    assert "fast" == node_class({**FAST, "nvidia.com/gpu.product": "L4"})
    assert "" == node_class({"pool": "l4"})


# ---------------------------------------------------------------------- estimates
def taught(key, *totals):
    ring = [StartSample(NOW_MS + n, 0, 0, ms) for n, ms in enumerate(totals)]
    return Starts.bounded({key: ring}, ())


@pytest.mark.parametrize("count", range(LEAST_SAMPLES))
def test_below_five_starts_the_prior_is_used_and_shown_as_such(count):
    case = a_case()
    found = Estimates(taught(key_of(), *[1_000] * count)).of(case, COLD, {})

    assert estimate(case.spec, COLD) == found
    assert "prior" == found.origin


def test_from_five_on_the_starts_are_used_and_counted():
    totals = (50_000, 10_000, 40_000, 20_000, 30_000)
    found = Estimates(taught(key_of(), *totals)).of(a_case(), COLD, {})

    assert (30_000, 50_000) == (found.p50_ms, found.p90_ms)
    assert "5 starts" == found.origin
    assert not found.prior


@given(st.lists(st.integers(0, 10**7), min_size=LEAST_SAMPLES, max_size=12))
def test_percentiles_are_starts_that_happened(totals):
    found = Estimates(taught(key_of(), *totals)).of(a_case(), COLD, {})

    assert {found.p50_ms, found.p90_ms} <= set(totals)
    assert found.p50_ms <= found.p90_ms
    assert 2 * sum(1 for ms in totals if ms <= found.p50_ms) >= len(totals)
    assert 10 * sum(1 for ms in totals if ms <= found.p90_ms) >= 9 * len(totals)


def test_a_node_whose_kind_starts_slowly_is_no_longer_the_first_choice():
    """n1 wins by name until five starts show that its kind of node is slow."""
    nodes = [a_node("n1"), a_node("n2", labels=FAST)]
    case = a_case()
    index = an_index(*nodes, cases=(case,))
    slow = taught(index.start_key(case, "n1"), *[3_600_000] * 5)
    again = an_index(*nodes, cases=(case,), starts=slow)
    ask = {"urgent": True, "own": set(), "barred": {}}

    assert "n1" == index.pick(case, **ask).node.name
    assert "n2" == again.pick(case, **ask).node.name


# ------------------------------------------------- what must not hang on it
KINDS = [key_of(facts, labels)
         for facts in (COLD, Facts(image=True), Facts(weights=True), Facts(True, True))
         for labels in ({}, FAST)]  # fmt: skip
histories = st.dictionaries(
    st.sampled_from(KINDS),
    st.lists(
        st.builds(StartSample, st.integers(1, 99), *[st.integers(0, 10**7)] * 3),
        min_size=1,
        max_size=12,
    ),
).map(lambda rings: Starts.bounded(rings, ()))
phases = st.sampled_from(["Ready", "Starting", "ImagePull", "Pending", "Stuck", "Terminating"])
standing = st.lists(
    st.tuples(st.sampled_from(["n1", "n2", "n3"]), phases, st.booleans()),
    max_size=3,
    unique_by=lambda each: each[0],
)
NODES = [
    a_node("n1", gpus=1, weights=(MODEL_REVISION,)),
    a_node("n2", gpus=1, labels=FAST, images=(IMAGE,)),
    a_node("n3", gpus=1),
]


@settings(max_examples=150, deadline=None)
@given(histories, histories, standing, st.integers(0, 3))
def test_what_is_learned_or_lost_never_shrinks_or_moves_anything(one, two, stands, replicas):
    """It ranks nodes for new starts: how many there are, and what stands, it does not touch."""
    placements = [
        a_placement(node, a_replica(f"p-{node}", node, phase), rev=OLD if old else "aaaaaaaa")
        for node, phase, old in stands
    ]
    answers = [
        planned(*placements, nodes=NODES, replicas=replicas, history=History(starts=starts))
        for starts in (NO_STARTS, one, two)
    ]

    told = [
        (
            plan.decisions[0].replicas,
            kept(plan.decisions[0]),
            leaving(plan.decisions[0]),
            plan.decisions[0].untouched,
            sum(p.count for p in plan.decisions[0].placements if not p.exists),
            plan.history,
            plan.wake_at_ms,
        )
        for plan in answers
    ]
    assert told[0] == told[1] == told[2]


@given(histories, st.lists(st.sampled_from([EARLY, DONE, None]), max_size=4))
def test_the_same_input_gives_the_same_starts_and_they_stay_within_bounds(starts, seen):
    found = learned(*seen, starts=starts)

    assert found == learned(*seen, starts=starts)
    assert found == Starts.from_text(found.text())


def test_more_starts_than_are_followed_at_a_time_keep_the_entries_there_are():
    known = Starts((), tuple(OpenStart(f"u{n:03}", "n9", "k") for n in range(256)))
    found = learned(
        EARLY, starts=known, unknown={"deployments/other": "forbidden"}, nodes=[a_node("n1")]
    )

    assert known == found

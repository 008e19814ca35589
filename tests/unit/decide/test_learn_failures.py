"""Failed starts: which nodes are left out, for how long, and when the rev is to blame."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS, REV, a_node, a_placement, a_ref, a_replica, a_state
from stoker.decide.learn_failures import LONGEST_MS, PROVEN_MS, SHORTEST_MS, learn_failures
from stoker.decide.quarantine import Quarantine
from stoker.model.blame import MAX_BAD_NODES, NO_FAILURES, BadNode, BadRev, Failures
from stoker.model.codec import to_data
from stoker.model.history import History, UnitHistory
from stoker.model.snapshot import Refusal
from stoker.objects.start_failures import FAILURES, Blame, blame_for
from unit.decide.index import a_case
from unit.decide.one import created, held, old, one_gpu, planned, ready, warming

MINUTE = 60_000
NODES = {name: a_node(name, gpus=1) for name in ("n1", "n2", "n3", "n4")}


def learned(*placements, past=NO_FAILURES, now_ms=NOW_MS, rev=REV, nodes=NODES):
    case = a_case(state=a_state(*placements), rev=rev)
    return learn_failures(past, case, nodes, now_ms)


def failing(node="n1", reason="CrashLoopBackOff", *, made=0, **fields):
    """A Deployment with a stuck pod that was made so many seconds after NOW_MS."""
    pod = a_replica(f"p-{node}-{made}", node, "Stuck", reason=reason, created_ms=_at(made))
    return a_placement(node, pod, **fields)


def refused(node="n1", *, made=0, reason="UnexpectedAdmissionError", **fields):
    refusal = Refusal(node, reason, _at(made))
    return a_placement(node, replicas=1, refusals=(refusal,), **fields)


def serving(node="n1", *, made=0, since=0, **fields):
    pod = a_replica(f"s-{node}-{made}", node, created_ms=_at(made))
    return a_placement(node, replace(pod, since_ms=_at(since)), **fields)


def _at(seconds: int) -> int:
    return NOW_MS + seconds * 1_000


def row(found: Failures, node: str = "n1") -> BadNode:
    known = found.node(f"uid-{node}")
    assert known is not None
    return known


# ---------------------------------------------------------------------- the table
def test_every_reason_of_the_table_says_where_it_comes_from_and_stands_once():
    reasons = [failure.reason for failure in FAILURES]

    assert sorted(set(reasons)) == sorted(reasons)
    assert all(failure.source for failure in FAILURES)


@pytest.mark.parametrize(
    ("reason", "refused", "blame"),
    [
        ("UnexpectedAdmissionError", True, Blame.NODE),
        ("OutOfnvidia.com/gpu", True, Blame.NODE),
        ("Preempting", True, Blame.NOBODY),
        ("SomethingElse", True, Blame.NOBODY),
        ("SomethingElse", False, Blame.EITHER),
        ("ImagePullBackOff", False, Blame.EITHER),
        ("InvalidImageName", False, Blame.REV),
    ],
)
def test_a_reason_blames(reason, refused, blame):
    assert blame is blame_for(reason, refused=refused)


# --------------------------------------------------------------------- one node
@pytest.mark.parametrize(
    "placement",
    [
        failing(),
        failing(reason="OOMKilled"),
        failing(reason="ErrImagePull"),
        failing(reason="DeadlineExceeded"),
        refused(),
        refused(reason="OutOfnvidia.com/gpu"),
    ],
    ids=["crash loop", "memory", "image", "deadline", "device plugin", "no device"],
)
def test_a_failed_start_leaves_its_node_out_for_ten_minutes(placement):
    found = row(learned(placement))

    assert (1, NOW_MS + SHORTEST_MS) == (found.strikes, found.until_ms)


def test_nodes_without_an_id_are_not_blamed_for_each_other():
    """cases.md row 127: two objects whose id was empty were matched with each other."""
    plan = planned(failing("n1"), nodes=one_gpu("n1", "n2", "n3", uid=""), replicas=1)

    assert {"n2": 1} == created(plan.decisions[0])
    assert "quarantined" not in dict(plan.decisions[0].rejected)
    assert () == History.from_records(plan.history).of(a_ref()).failures.nodes


@pytest.mark.parametrize("reason", ["InvalidImageName", "CreateContainerConfigError"])
def test_what_no_node_can_mend_strikes_none(reason):
    found = learned(failing(reason=reason))

    assert 0 == row(found).strikes
    assert found.bad_rev is not None
    assert (REV, reason, ("n1",)) == (found.bad_rev.rev, found.bad_rev.reason, found.bad_rev.nodes)


def test_a_pod_that_no_node_took_strikes_the_node_chosen_for_it():
    """cases.md row 161: the GPU resource never appears; the pod waits until its deadline."""
    pod = a_replica("p", "", "Stuck", reason="Unschedulable")

    assert 1 == row(learned(a_placement("n1", pod))).strikes
    assert NO_FAILURES == learned(a_placement("n1", pod, replicas=1), nodes={})


def test_one_failed_start_counts_once_however_often_it_is_seen():
    found = learned(failing())
    for minutes in range(1, 40):
        found = learned(failing(), past=found, now_ms=NOW_MS + minutes * MINUTE)

    assert 1 == row(found).strikes


def test_pods_made_anew_in_quarantine_are_no_further_strike():
    """A ReplicaSet makes the next pod at once; only a decision made since is a new try."""
    found = learned(refused(made=0))
    found = learned(refused(made=30), past=found, now_ms=NOW_MS + MINUTE)

    assert (1, _at(30)) == (row(found).strikes, row(found).made_ms)


def test_each_further_failure_doubles_to_a_day():
    found, now_ms, lengths = NO_FAILURES, NOW_MS, []
    for number in range(1, 11):
        found = learned(refused(made=(now_ms - NOW_MS) // 1000), past=found, now_ms=now_ms)
        lengths.append((row(found).until_ms - now_ms) // MINUTE)
        assert number == row(found).strikes
        now_ms = row(found).until_ms + 1_000

    assert [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440] == lengths
    assert LONGEST_MS == lengths[-1] * MINUTE


def test_a_node_made_anew_under_the_same_name_is_another():
    found = learned(failing())
    fresh = {"n1": a_node("n1", gpus=1, uid="uid-fresh")}
    quarantine = Quarantine({a_ref(): found}, (), fresh.values(), NOW_MS)

    assert () == quarantine.of(a_ref(), REV, a_state()).bars


def test_a_start_that_has_been_ready_for_three_minutes_clears_its_node():
    found = learned(refused())
    again = serving(made=700, since=760)
    before = learned(again, past=found, now_ms=_at(760) + PROVEN_MS - 1)
    after = learned(again, past=found, now_ms=_at(760) + PROVEN_MS)

    assert 1 == row(before).strikes
    assert (0, 0) == (row(after).strikes, row(after).until_ms)


def test_a_replica_that_stood_before_the_failure_clears_nothing():
    long_there = serving(made=-3600, since=-3500)
    found = learned(long_there, refused(service="other"))

    assert 1 == row(learned(long_there, past=found, now_ms=NOW_MS + 60 * MINUTE)).strikes


def test_a_cleared_node_is_not_struck_again_by_the_same_pods():
    """Failed pods stand for long after the start that went well."""
    found = learned(refused())
    both = (refused(), serving(made=700, since=760))
    found = learned(*both, past=found, now_ms=_at(760) + PROVEN_MS)
    found = learned(refused(), past=found, now_ms=_at(3000))

    assert 0 == row(found).strikes


def test_what_is_long_over_is_forgotten():
    found = learned(failing())

    assert NO_FAILURES == learned(past=found, now_ms=row(found).until_ms + 86_400_000)


# ----------------------------------------------------------------------- the rev
def test_the_same_rev_on_two_nodes_blames_the_rev_and_clears_the_nodes():
    found = learned(failing("n1"), failing("n2"))

    assert BadRev(REV, NOW_MS, "CrashLoopBackOff", ("n1", "n2")) == found.bad_rev
    assert (0, 0) == (row(found, "n1").strikes, row(found, "n2").strikes)


def test_two_nodes_that_refuse_blame_no_rev():
    found = learned(refused("n1"), refused("n2"))

    assert found.bad_rev is None
    assert (1, 1) == (row(found, "n1").strikes, row(found, "n2").strikes)


def test_a_failure_here_and_one_there_later_add_up():
    found = learned(failing("n1"))
    found = learned(failing("n2", made=60), past=found, now_ms=NOW_MS + 5 * MINUTE)

    assert found.bad_rev is not None


def test_a_rev_that_serves_on_more_nodes_than_it_fails_on_is_innocent():
    others = [serving(node, made=-60, since=-50) for node in ("n3", "n4", "n5")]
    nodes = {**NODES, "n5": a_node("n5")}

    assert learned(failing("n1"), failing("n2"), *others, nodes=nodes).bad_rev is None


def test_the_breaker_stays_while_nothing_stands_and_ends_with_git_or_with_a_good_start():
    found = learned(failing("n1"), failing("n2"))

    assert learned(past=found, now_ms=NOW_MS + 60 * MINUTE).bad_rev is not None
    assert learned(past=found, rev="bbbbbbbb").bad_rev is None
    proven = serving("n1", made=0, since=60)
    assert learned(proven, past=found, now_ms=_at(60)).bad_rev is not None
    assert learned(proven, past=found, now_ms=_at(60) + PROVEN_MS).bad_rev is None


def test_a_fix_may_use_the_nodes_on_which_only_the_rev_before_failed():
    """One node, a crash loop, a commit: nobody waits ten minutes for the fix."""
    found = learned(failing("n1"), past=learned(failing("n1")), rev="bbbbbbbb")
    quarantine = Quarantine({a_ref(): found}, (), NODES.values(), NOW_MS)

    assert (1, 0) == (row(found).strikes, row(found).until_ms)
    assert () == quarantine.of(a_ref(), "bbbbbbbb", a_state()).bars


def test_a_node_that_refused_the_rev_before_stays_out():
    found = learned(past=learned(refused("n1")), rev="bbbbbbbb")

    assert NOW_MS + SHORTEST_MS == row(found).until_ms


# ------------------------------------------------------------------- in decisions
def test_the_node_is_left_out_with_its_reason_and_instant():
    past = learned(failing("n1"))
    plan = planned(ready("n2"), nodes=one_gpu("n1", "n2"), history=_history(past))

    assert ({}, ["HeldNoCapacity"]) == (created(plan.decisions[0]), held(plan.decisions[0]))
    told = [(a.node, a.rule) for a in plan.decisions[0].attempts if a.rule]
    assert ("n1", "quarantined") == told[0]
    assert "until 2025-11-24T16:10:00Z: 1 start failed here" in _verdict(plan.decisions[0])
    assert NOW_MS + SHORTEST_MS == plan.wake_at_ms
    assert "1 node by rule quarantined" in plan.decisions[0].holds[0].message


def test_when_the_quarantine_is_over_the_node_is_tried_with_one_start_at_a_time():
    past = learned(failing("n1", made=-3600), now_ms=NOW_MS - 3_600_000)
    nodes = [a_node("n1", gpus=4)]
    again = planned(nodes=nodes, history=_history(past)).decisions[0]
    meanwhile = planned(warming("n1"), nodes=nodes, history=_history(past)).decisions[0]

    assert {"n1": 1} == created(again)
    assert {} == created(meanwhile)
    assert "until the start there is Ready or fails" in _verdict(meanwhile)


def test_two_services_that_failed_on_a_node_keep_a_third_one_off():
    bad = learned(refused("n1"))
    history = History(
        (
            (a_ref("alpha"), UnitHistory(failures=bad)),
            (a_ref("beta"), UnitHistory(failures=bad)),
        )
    )
    one = replace(history, entries=history.entries[:1])

    assert {"n1": 1} == created(_alone(one))
    assert {} == created(_alone(history))
    assert "2 starts of 2 services failed here" in _verdict(_alone(history))


def test_a_start_of_anybody_that_proved_itself_ends_the_quarantine_for_all():
    bad = learned(refused("n1"))
    refs = [a_ref("alpha"), a_ref("beta")]
    now_ms = _at(300) + PROVEN_MS
    good = serving("n1", made=200, since=300, service="gamma")
    quarantine = Quarantine(
        dict.fromkeys(refs, bad), [a_state(good, name="gamma")], NODES.values(), now_ms
    )

    assert () == quarantine.of(a_ref("delta"), REV, a_state()).bars
    assert 1 == len(quarantine.of(a_ref("alpha"), REV, a_state()).bars)


def test_a_refusing_node_is_left_at_once_for_another():
    """kubernetes#108152: its ReplicaSet would make pods without end."""
    plan = planned(refused("n1"), nodes=one_gpu("n1", "n2"), replicas=1).decisions[0]

    assert {"n2": 1} == created(plan)
    assert ["ScaleToZero"] == [r.stage.value for r in plan.retirements]


def test_what_could_not_be_read_changes_nothing_of_what_is_remembered():
    past = learned(failing("n1"))
    plan = planned(
        failing("n2"), history=_history(past), unknown={"pods": "timeout"}, now_ms=NOW_MS + MINUTE
    )

    assert past == History.from_records(plan.history).of(a_ref()).failures


def test_an_old_rev_that_fails_leaves_no_node_out():
    failed = old("n3", a_replica("x", "n3", "Stuck", reason="CrashLoopBackOff"))
    plan = planned(old("n1"), failed, nodes=one_gpu("n1", "n2", "n3", "n4"))

    assert not [a for a in plan.decisions[0].attempts if a.rule == "quarantined"]


# ------------------------------------------------------------------------- memory
def test_failures_read_back_from_history():
    found = replace(learned(failing("n1"), failing("n2")), in_a_row=3)
    history = _history(found)

    assert history == History.from_records(history.records())


@pytest.mark.parametrize(
    "damage",
    [
        {"nodes": 7},
        {"nodes": [{"uid": "x"}]},
        {"nodes": [{"uid": 1, "made_ms": 1, "at_ms": 1}]},
        {"nodes": [{"uid": "x", "made_ms": "1", "at_ms": 1}]},
        {"in_a_row": -1},
        {"in_a_row": True},
        {"bad_rev": {"rev": "x", "since_ms": 1, "nodes": [1]}},
        {"else": 1},
        [],
        "text",
    ],
)
def test_damaged_failures_are_forgotten_and_the_rest_is_kept(damage):
    text = json.dumps({"wanted": 3, "failures": damage})

    assert History(((a_ref(), UnitHistory(wanted=3)),)) == History.from_records([(a_ref(), text)])


moments = st.lists(
    st.tuples(
        st.sampled_from(["n1", "n2", "n3"]),
        st.sampled_from(["fails", "refuses", "serves", "gone"]),
        st.sampled_from([REV, "bbbbbbbb"]),
        st.integers(1, 40),
    ),
    max_size=12,
)


@given(moments)
def test_memory_is_bounded_settled_and_readable_whatever_happens(happenings):
    """Learning twice from the same facts is learning once; what is kept can be read again."""
    found, now_ms = NO_FAILURES, NOW_MS
    for node, what, rev, minutes in happenings:
        now_ms += minutes * MINUTE
        made = (now_ms - NOW_MS) // 1000
        standing = {
            "fails": (failing(node, made=made, rev=rev),),
            "refuses": (refused(node, made=made, rev=rev),),
            "serves": (serving(node, made=made - 600, since=made - 300, rev=rev),),
            "gone": (),
        }[what]
        found = learned(*standing, past=found, now_ms=now_ms)

        assert found == learned(*standing, past=found, now_ms=now_ms)
        assert found == Failures.read(to_data(found))
        assert all(r.until_ms <= now_ms + LONGEST_MS for r in found.nodes)
        if found.bad_rev is not None:
            assert REV == found.bad_rev.rev
            assert not [r for r in found.nodes if r.strikes and r.rev == REV]


@given(st.lists(st.integers(0, 30), min_size=MAX_BAD_NODES + 1, max_size=40, unique=True))
def test_only_so_many_nodes_are_remembered_the_newest(numbers):
    nodes = {f"m{number}": a_node(f"m{number}") for number in numbers}
    found = NO_FAILURES
    for place, name in enumerate(nodes):
        now_ms = NOW_MS + place * MINUTE
        found = learned(refused(name, made=place * 60), past=found, now_ms=now_ms, nodes=nodes)

    newest = sorted(f"uid-{name}" for name in list(nodes)[-MAX_BAD_NODES:])
    assert newest == [r.uid for r in found.nodes]
    assert 3_000 > len(str(to_data(found)))


def _history(failures: Failures) -> History:
    return History(((a_ref(), UnitHistory(failures=failures)),))


def _alone(history: History):
    return planned(nodes=one_gpu("n1"), replicas=1, history=history).decisions[0]


def _verdict(decision) -> str:
    return next(a.verdict for a in decision.attempts if a.rule == "quarantined")

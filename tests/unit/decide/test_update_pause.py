"""`update`: a budget of its own, a pause after the first replicas, a rev that failed."""

from __future__ import annotations

from dataclasses import replace

from builders import (
    COMMIT,
    NOW_MS,
    REV,
    a_desired,
    a_node,
    a_notice,
    a_placement,
    a_pool,
    a_ref,
    a_replica,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
)
from stoker.decide import decide
from stoker.model.flow import Held, HeldBy
from stoker.model.history import History, UnitHistory
from stoker.model.moves import OnFailure, Pause, Update
from stoker.model.update_history import UpdateHistory
from unit.decide.one import created, held, kept, leaving, old, one_gpu, planned, ready, stuck

MINUTE = 60_000
FIVE = one_gpu("n1", "n2", "n3", "n4", "n5")


def fresh(node: str, *, seconds: int):
    """A replica of the new rev that has been Ready for so long."""
    return a_placement(node, a_replica(f"p-{node}", node, age=seconds))


def paused(after: int = 1, minutes: int = 15, **fields) -> Update:
    return Update(pause=Pause(after, minutes * MINUTE), **fields)


def known(**fields) -> History:
    return History(((a_ref(), UnitHistory(update=UpdateHistory(**fields))),))


def told(plan) -> UpdateHistory:
    """What the plan remembers of updates."""
    return History.from_records(plan.history).of(a_ref()).update


def test_an_update_pauses_once_so_many_new_replicas_are_ready():
    plan = planned(
        old("n1"), old("n2"), fresh("n3", seconds=60), nodes=FIVE, replicas=3, update=paused()
    )
    decision = plan.decisions[0]

    assert ({}, []) == (created(decision), leaving(decision))
    assert ["UpdatePaused"] == held(decision)
    assert NOW_MS + 14 * MINUTE == plan.wake_at_ms
    assert (REV, NOW_MS - MINUTE) == (told(plan).tried_rev, told(plan).tried_since_ms)


def test_the_replaced_replica_still_leaves_during_the_pause():
    """The step is finished; only the next one waits."""
    decision = planned(
        old("n1"), old("n2"), fresh("n3", seconds=5), nodes=FIVE, update=paused()
    ).decisions[0]

    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(decision)]
    assert {} == created(decision)


def test_before_the_pause_no_more_start_than_it_names():
    """Three at once are allowed, but two are to be looked at first."""
    update = paused(after=2, max_concurrent=3)
    nodes = one_gpu("n1", "n2", "n3", "n4", "n5", "n6")
    decision = planned(
        old("n1"), old("n2"), old("n3"), nodes=nodes, replicas=3, update=update
    ).decisions[0]

    assert 2 == len(created(decision))


def test_the_pause_counts_from_when_the_last_of_them_was_ready():
    two = (fresh("n3", seconds=600), fresh("n4", seconds=60))
    plan = planned(old("n1"), *two, nodes=FIVE, replicas=3, update=paused(after=2))

    assert NOW_MS - MINUTE == told(plan).tried_since_ms


def test_after_the_pause_the_update_goes_on_and_does_not_pause_again():
    """Also when the replica that was looked at is gone since."""
    history = known(tried_rev=REV, tried_since_ms=NOW_MS - 16 * MINUTE)
    plan = planned(old("n1"), old("n2"), nodes=FIVE, update=paused(), history=history)

    assert 1 == len(created(plan.decisions[0]))
    assert [] == held(plan.decisions[0])
    assert NOW_MS - 16 * MINUTE == told(plan).tried_since_ms


def test_a_replica_that_is_lost_during_the_pause_starts_it_anew():
    history = known(tried_rev=REV, tried_since_ms=NOW_MS - 5 * MINUTE)
    plan = planned(old("n1"), old("n2"), nodes=FIVE, update=paused(), history=history)

    assert None is told(plan).tried_since_ms


def test_another_rev_pauses_for_itself():
    history = known(tried_rev="99999999", tried_since_ms=NOW_MS - 60 * MINUTE)
    plan = planned(
        old("n1"), old("n2"), fresh("n3", seconds=60), nodes=FIVE, update=paused(), history=history
    )

    assert ["UpdatePaused"] == held(plan.decisions[0])


def test_an_instant_in_the_future_pauses_no_longer_than_asked():
    ahead = a_placement("n3", a_replica("p-n3", "n3", age=-3_600))
    plan = planned(old("n1"), old("n2"), ahead, nodes=FIVE, update=paused())

    assert NOW_MS + 15 * MINUTE == plan.wake_at_ms


def test_a_pause_ends_with_its_update():
    history = known(tried_rev=REV, tried_since_ms=NOW_MS - MINUTE)
    plan = planned(ready("n1"), ready("n2"), nodes=FIVE, update=paused(), history=history)

    assert ("", None) == (told(plan).tried_rev, told(plan).tried_since_ms)


def test_a_notice_is_answered_during_the_pause():
    nodes = [a_node("n1", gpus=1, notice=a_notice(120)), *one_gpu("n2", "n3", "n4", "n5")]
    decision = planned(
        old("n1"), old("n2"), fresh("n3", seconds=60), nodes=nodes, replicas=3, update=paused()
    ).decisions[0]

    assert 1 == len(created(decision))


def test_an_update_has_its_own_budget():
    decision = planned(old("n1"), old("n2"), nodes=FIVE, update=Update(max_concurrent=2)).decisions[
        0
    ]

    assert 2 == len(created(decision))


def test_other_moves_keep_theirs():
    cordoned = [a_node(n, gpus=1, cordoned=True) for n in ("n1", "n2")]
    nodes = [*cordoned, *one_gpu("n3", "n4")]
    decision = planned(
        ready("n1"), ready("n2"), nodes=nodes, update=Update(max_concurrent=2)
    ).decisions[0]

    assert 1 == len(created(decision))


def test_a_rev_that_fails_on_two_nodes_beside_an_older_one_is_remembered_as_blocked():
    """One failed start is the node's as well as the rev's (note 27)."""
    plan = planned(old("n1"), old("n2"), stuck("n3"), stuck("n4"), nodes=FIVE)

    assert (REV, COMMIT) == (told(plan).blocked_rev, told(plan).blocked_commit)
    assert told(plan).blocked_why.startswith("2 of 2 replicas of rev aaaaaaaa stuck: n3")
    assert NOW_MS == plan.wake_at_ms


def test_a_blocked_rev_is_not_bought_again_when_its_failed_replica_is_gone():
    """Where its older commit is lost: else the service is worked on at that one."""
    history = known(blocked_rev=REV, blocked_commit="9be0a17" + "0" * 33, blocked_why="it crashed")
    decision = planned(old("n1"), old("n2"), nodes=FIVE, history=history).decisions[0]

    assert ({}, ["UpdateFailed"]) == (created(decision), held(decision))
    assert (
        "it crashed; 2 of the old rev still serving; blocked 9be0a17" == decision.holds[0].message
    )


def test_a_blocked_rev_whose_replica_is_ready_after_all_goes_on():
    history = known(blocked_rev=REV, blocked_commit=COMMIT, blocked_why="it crashed")
    plan = planned(old("n1"), old("n2"), ready("n3"), nodes=FIVE, history=history)

    assert "" == told(plan).blocked_rev
    assert [] == held(plan.decisions[0])


def test_another_rev_in_git_lifts_the_block():
    history = known(blocked_rev="99999999", blocked_commit=COMMIT, blocked_why="it crashed")
    plan = planned(old("n1"), old("n2"), nodes=FIVE, history=history)

    assert "" == told(plan).blocked_rev
    assert 1 == len(created(plan.decisions[0]))


def test_the_last_rev_that_was_whole_is_remembered_with_its_commit():
    plan = planned(ready("n1"), ready("n2"))

    assert (REV, COMMIT) == (told(plan).good_rev, told(plan).good_commit)
    assert "" == told(planned(old("n1"), ready("n2"))).good_rev
    assert "" == told(planned(ready("n1"))).good_rev


# ---------------------------------------------------------- worked on at the older commit
BAD = "bbbbbbbb"
BLOCKED = UpdateHistory(
    good_rev=REV,
    good_commit="4f1c2d9" + "0" * 33,
    blocked_rev=BAD,
    blocked_commit="9be0a17" + "0" * 33,
    blocked_why="1 of 2 replicas of rev bbbbbbbb stuck: n3 (CrashLoopBackOff)",
)


def put_back(*placements, on_failure: OnFailure, nodes=FIVE, past: UpdateHistory = BLOCKED):
    """The plan of a service whose template went back to REV."""
    unit = a_unit(replicas=2, update=Update(on_failure=on_failure))
    desired = replace(
        a_desired(unit, pools=(a_pool("l4"),)),
        held=(Held(unit.ref, HeldBy.FAILED, "failed", whole=False),),
    )
    snapshot = a_snapshot(*nodes, services=[a_state(*placements)])
    history = History(((unit.ref, UnitHistory(update=past)),))
    return decide(desired, (a_shape(unit),), snapshot, history, NOW_MS)


def failed(node: str, phase: str = "Stuck"):
    return a_placement(node, a_replica(f"bad-{node}", node, phase), rev=BAD)


def test_revert_takes_away_what_failed_and_says_what_is_blocked():
    plan = put_back(ready("n1"), ready("n2"), failed("n3"), on_failure=OnFailure.REVERT)
    decision = plan.decisions[0]

    assert ["ScaleToZero"] == [stage for stage, _, _ in leaving(decision)]
    assert {"n1": 1, "n2": 1} == kept(decision)
    assert "UpdateFailed" == decision.holds[0].code
    assert decision.holds[0].message.endswith("2 of the old rev still serving; blocked 9be0a17")
    assert BLOCKED == told(plan)


def test_hold_leaves_what_failed_where_it_is():
    plan = put_back(ready("n1"), ready("n2"), failed("n3"), on_failure=OnFailure.HOLD)
    decision = plan.decisions[0]

    assert ([], {}) == (leaving(decision), created(decision))
    assert (failed("n3").name,) == decision.untouched
    assert decision.updating
    assert BLOCKED == told(plan)


def test_beside_a_blocked_rev_the_old_one_is_replaced_on_a_notice():
    """Else a bad commit and a spot notice together would end the service."""
    nodes = [a_node("n1", gpus=1, notice=a_notice(600)), *one_gpu("n2", "n3", "n4")]
    for on_failure in OnFailure:
        plan = put_back(ready("n1"), ready("n2"), failed("n3"), on_failure=on_failure, nodes=nodes)

        assert {"n4": 1} == created(plan.decisions[0])
        assert {REV} == {p.rev for p in plan.decisions[0].placements}


def test_under_hold_a_failed_replica_that_is_ready_after_all_lifts_the_block():
    plan = put_back(ready("n1"), ready("n2"), failed("n3", "Ready"), on_failure=OnFailure.HOLD)

    assert ("", REV) == (told(plan).blocked_rev, told(plan).good_rev)
    assert NOW_MS == plan.wake_at_ms


def test_nothing_is_learned_of_a_rev_that_is_kept_for_another_reason():
    unit = a_unit(replicas=2)
    desired = replace(
        a_desired(unit, pools=(a_pool("l4"),)),
        held=(Held(unit.ref, HeldBy.DEPENDENCY, "waits", whole=False),),
    )
    snapshot = a_snapshot(*FIVE, services=[a_state(ready("n1"), ready("n2"))])
    plan = decide(desired, (a_shape(unit),), snapshot, History(), NOW_MS)

    assert UpdateHistory() == told(plan)

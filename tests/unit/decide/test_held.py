"""A held service in the plan: what stands is left exactly as it is, and says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    NOW_MS,
    REV,
    a_desired,
    a_node,
    a_placement,
    a_ref,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
)
from stoker.decide import decide
from stoker.model.flow import Held, HeldBy
from stoker.model.history import History
from unit.decide.one import OLD

QWEN = a_ref("qwen")


def plan_of(held: Held, *placements, replicas: int = 2, rev: str = REV):
    unit = a_unit(replicas=replicas)
    nodes = [a_node(f"n{number}", gpus=1) for number in (1, 2, 3)]
    snapshot = a_snapshot(*nodes, services=[a_state(*placements)])
    desired = replace(a_desired(unit), held=(held,))
    return decide(desired, (a_shape(unit, rev=rev),), snapshot, History(), NOW_MS)


@pytest.mark.parametrize("by", HeldBy)
@pytest.mark.parametrize("rev", [REV, OLD], ids=["count", "template"])
def test_nothing_is_started_moved_or_retired(by, rev):
    """Too few of an old rev stand: without the hold both would change."""
    standing = a_placement("n1", rev=rev)

    plan = plan_of(Held(QWEN, by, "why"), standing)

    decision = plan.decisions[0]
    assert ((), ()) == (decision.placements, decision.retirements)
    assert (standing.name,) == decision.untouched
    assert (2, 1, 1) == (decision.replicas, decision.floor, decision.ready)
    assert [(by.value, "why")] == [(hold.code, hold.message) for hold in decision.holds]
    assert decision.holds[0].remedy
    assert () == plan.history, "what was not acted on is not learned"


def test_a_hold_that_ends_by_itself_says_when():
    plan = plan_of(Held(QWEN, HeldBy.SUSPENDED, "why", until_ms=NOW_MS))

    assert plan.decisions[0].holds[0].remedy.startswith("ends by itself at 20")


def test_a_unit_that_goes_on_as_it_was_is_decided():
    plan = plan_of(Held(QWEN, HeldBy.DEPENDENCY, "why", whole=False))

    assert 2 == len(plan.decisions[0].placements)


def test_gpus_of_a_held_service_are_not_given_away():
    """Its pods are still to come: the Deployment asks for them."""
    other = a_unit("other", replicas=3)
    held = a_unit("qwen", replicas=1)
    nodes = [a_node(f"n{number}", gpus=1) for number in (1, 2, 3)]
    waiting = a_placement("n1", replicas=1)
    snapshot = a_snapshot(*nodes, services=[a_state(waiting)])
    desired = replace(a_desired(held, other), held=(Held(QWEN, HeldBy.SUSPENDED, "why"),))

    plan = decide(desired, (a_shape(held), a_shape(other)), snapshot, History(), NOW_MS)

    placed = plan.decision(other.ref)
    assert placed is not None
    assert ["n2", "n3"] == sorted(p.node for p in placed.placements)

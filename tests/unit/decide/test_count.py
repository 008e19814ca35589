"""How many replicas are wanted, and who says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_placement,
    a_ref,
    a_replica,
    a_service,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
)
from stoker.decide import decide
from stoker.decide.case import case_from
from stoker.decide.count import wanted
from stoker.model.fleet import PlacementMode
from stoker.model.flow import Override, UnreadOverride
from stoker.model.history import History, UnitHistory
from stoker.model.scaling import ScalingMode
from stoker.model.snapshot import ServiceState
from stoker.model.times import rfc3339
from unit.decide.one import decided, planned

EXTERNAL: dict[str, Any] = {"replicas": None, "scaling_mode": ScalingMode.EXTERNAL}
SCHEDULER: dict[str, Any] = {"placement_mode": PlacementMode.SCHEDULER}
HPA = "HorizontalPodAutoscaler/qwen"


def the_case(*placements, **service):
    spec = a_service(**service)
    unit = a_unit(spec=spec)
    state = a_state(*placements) if placements else ServiceState(unit.ref)
    return case_from(unit.ref, spec, a_shape(unit), a_desired(unit).fleet, state)


def count(*placements, remembered=None, override=None, **service):
    found = wanted(the_case(*placements, **service), remembered, override)
    return found.replicas, found.reason.source


def home(replicas, **fields):
    return a_placement("", replicas=replicas, **fields)


def node(name, replicas=1, **fields):
    return a_placement(name, replicas=replicas, **fields)


@pytest.mark.parametrize(
    ("placements", "service", "expected"),
    [
        ([], {"replicas": 3}, (3, "Git")),
        ([node("n1", 9)], {"replicas": 3}, (3, "Git")),
        ([node("n1", 9, externally_scaled=HPA)], {"replicas": 3}, (3, "Git")),
        ([home(7)], {"replicas": 3, **SCHEDULER}, (3, "Git")),
        ([home(7, externally_scaled=HPA)], {"replicas": 3, **SCHEDULER}, (7, HPA)),
        ([home(0, externally_scaled=HPA)], {"replicas": 3, **SCHEDULER}, (0, HPA)),
        ([home(7)], {**EXTERNAL, **SCHEDULER}, (7, "External")),
        ([home(0)], {**EXTERNAL, **SCHEDULER}, (0, "External")),
        ([home(5, externally_scaled=HPA)], {**EXTERNAL, **SCHEDULER}, (5, HPA)),
        ([], {**EXTERNAL, **SCHEDULER}, (1, "External")),
        ([home(7, terminating=True)], {**EXTERNAL, **SCHEDULER}, (1, "External")),
        ([], EXTERNAL, (1, "External")),
        ([node("n1", 2), node("n2")], EXTERNAL, (3, "External")),
        ([node("n1", 2), node("n2", terminating=True)], EXTERNAL, (2, "External")),
        ([node("n1", 0)], EXTERNAL, (0, "External")),
        ([home(2), node("n1"), node("n2")], {**EXTERNAL, **SCHEDULER}, (4, "External")),
    ],
)
def test_an_owner_keeps_its_count_while_it_exists_else_git_rules(placements, service, expected):
    """cases.md rows 59 and 109: replicas are left to the autoscaler, zero included."""
    assert expected == count(*placements, **service)


@pytest.mark.parametrize(
    "service", [EXTERNAL, {**EXTERNAL, **SCHEDULER}], ids=["nodes", "crossing"]
)
def test_copies_of_a_move_are_not_taken_for_wanted_replicas(service):
    """What was decided last tells them apart; the sum would ratchet up with every move."""
    assert (2, "External") == count(node("n1"), node("n2"), node("n3"), remembered=2, **service)


def test_history_is_not_asked_where_git_or_a_live_owner_knows():
    assert (3, "Git") == count(replicas=3, remembered=9)
    assert (7, "External") == count(home(7), remembered=9, **EXTERNAL, **SCHEDULER)


def test_an_update_of_an_external_count_does_not_grow_it():
    """From pass to pass the count decided last is handed on."""
    old = a_placement("n1", a_replica("a", "n1"), rev="00000000")
    first = planned(old, **EXTERNAL)
    history = History.from_records(first.history)
    surge = a_placement("n2", a_replica("b", "n2", "Starting"))
    second = planned(old, surge, history=history, **EXTERNAL)

    assert [1, 1] == [plan.decisions[0].replicas for plan in (first, second)]
    assert UnitHistory(wanted=1) == History.from_records(second.history).of(a_ref())


def test_the_reason_is_told():
    assert "spec.replicas" == decided().count.detail
    assert "nothing stands yet" == decided(**EXTERNAL).count.detail


def an_override(replicas: int, reason: str = "") -> Override:
    return Override(a_ref("qwen"), replicas, NOW_MS + 1000, reason)


@pytest.mark.parametrize(
    ("placements", "service", "expected"),
    [
        ((), {"replicas": 4}, (3, "Override")),
        ((home(5),), {"replicas": 4, **SCHEDULER}, (3, "Override")),
        ((home(5, externally_scaled=HPA),), {"replicas": 4, **SCHEDULER}, (5, HPA)),
        ((node("n1", 2),), EXTERNAL, (2, "External")),
        ((), EXTERNAL, (1, "External")),
    ],
    ids=["git", "scheduler", "autoscaler", "external", "external-with-nothing"],
)
def test_an_override_outranks_git_and_nobody_else(placements, service, expected):
    assert expected == count(*placements, override=an_override(3), **service)


@pytest.mark.parametrize(
    ("placements", "service", "owner"),
    [
        ((home(5, externally_scaled=HPA),), {"replicas": 4, **SCHEDULER}, HPA),
        ((node("n1", 2),), EXTERNAL, "External"),
        ((), EXTERNAL, "External"),
    ],
    ids=["autoscaler", "external", "external-with-nothing"],
)
def test_an_override_of_an_owned_count_is_refused_by_name(placements, service, owner):
    """Typed by hand on the mirror it would else do nothing, and say nothing."""
    case = the_case(*placements, **service)

    found = wanted(case, None, an_override(3, "launch"))

    assert owner == found.reason.source
    until = rfc3339(NOW_MS + 1000)
    assert f"3 until {until}: refused, {owner} owns the count (launch)" == found.reason.refused
    assert "" == wanted(case, None).reason.refused


@pytest.mark.parametrize(
    ("replicas", "reason", "told"),
    [
        (3, "", "Git wants 4"),
        (2, "calm", "Git wants 4, below the floor (3): calm"),
        (9, "launch", "Git wants 4: launch"),
    ],
    ids=["plain", "below-the-floor", "above"],
)
def test_an_override_says_until_when_what_git_wants_and_why(replicas, reason, told):
    snapshot = replace(a_snapshot(a_node("n1")), overrides=(an_override(replicas, reason),))
    unit = a_unit(replicas=4)

    plan = decide(a_desired(unit), (a_shape(unit),), snapshot, History(), NOW_MS)

    decision = plan.decisions[0]
    assert (replicas, "Override") == (decision.replicas, decision.count.source)
    assert decision.count.detail == f"until {rfc3339(NOW_MS + 1000)}, {told}"
    assert plan.wake_at_ms is not None
    assert plan.wake_at_ms <= NOW_MS + 1000


def test_a_lapsed_override_is_none():
    snapshot = replace(a_snapshot(a_node("n1")), overrides=(an_override(3),))
    unit = a_unit(replicas=4)

    plan = decide(a_desired(unit), (a_shape(unit),), snapshot, History(), NOW_MS + 1000)

    assert (4, "Git") == (plan.decisions[0].replicas, plan.decisions[0].count.source)


UNREAD = UnreadOverride(a_ref("qwen"), '{"replicas": 9}')
COUNTS = st.integers(0, 20)


@given(COUNTS, st.none() | COUNTS, st.lists(COUNTS, max_size=3))
def test_an_override_that_cannot_be_read_never_lowers_a_count(of_git, remembered, standing):
    """It may have asked for more; what Git raises is raised all the same."""
    placements = [node(f"n{number}", count) for number, count in enumerate(standing)]
    before = remembered if remembered is not None else sum(standing)

    found = wanted(the_case(*placements, replicas=of_git), remembered, UNREAD)

    assert max(of_git, before) == found.replicas
    assert UNREAD.text in found.reason.detail + found.reason.refused


@pytest.mark.parametrize(
    ("placements", "service", "expected"),
    [
        ((home(5, externally_scaled=HPA),), {"replicas": 9, **SCHEDULER}, (5, HPA)),
        ((node("n1", 2),), EXTERNAL, (2, "External")),
    ],
    ids=["autoscaler", "external"],
)
def test_an_owner_counts_beside_an_override_that_cannot_be_read(placements, service, expected):
    case = the_case(*placements, **service)

    found = wanted(case, None, UNREAD)

    assert expected == (found.replicas, found.reason.source)
    assert UNREAD.text in found.reason.refused


def test_an_override_that_became_unreadable_holds_its_count_in_the_plan():
    """The copies it asked for run; back to Git's count they would be drained unasked."""
    unit = a_unit(replicas=1)
    standing = a_state(
        a_placement("n1", a_replica("a", "n1")), a_placement("n2", a_replica("b", "n2"))
    )
    snapshot = replace(
        a_snapshot(a_node("n1", gpus=1), a_node("n2", gpus=1), services=[standing]),
        unread_overrides=(UNREAD,),
    )
    history = History(((unit.ref, UnitHistory(wanted=2)),))

    (found,) = decide(a_desired(unit), (a_shape(unit),), snapshot, history, NOW_MS).decisions

    assert (2, "Override", ()) == (found.replicas, found.count.source, found.retirements)

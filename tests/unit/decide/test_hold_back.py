"""What is held is neither written nor deleted, and what left Git goes in reverse order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import a_desired, a_ref, a_unit
from stoker.decide.hold_back import hold_back
from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.flow import Held, HeldBy, Standing
from stoker.model.plan import Retirement, RetireStage
from stoker.model.refs import ObjectRef, UnitRef

WEB = a_ref("web")


def change(action: Action, name: str = "x") -> Change:
    return Change(ObjectRef("", "ConfigMap", "llm", name), action, payload={"kind": "ConfigMap"})


def changes(unit: UnitRef, *actions: Action) -> UnitChanges:
    leaving = Retirement("web-1", "uid", RetireStage.DRAIN, "moves")
    return UnitChanges(
        unit, tuple(change(a, f"{unit.name}-{n}") for n, a in enumerate(actions)), (leaving,)
    )


def after(*units: UnitChanges, desired=None, standings=(), fleet=""):
    """Actions and codes by unit."""
    desired = desired if desired is not None else a_desired(a_unit("web"))
    known = {standing.ref: standing for standing in standings}
    found = hold_back(ChangeSet(units), desired, known, fleet)
    return {u.unit.name: [(str(c.action), c.code) for c in u.changes] for u in found.units}, found


@pytest.mark.parametrize("by", HeldBy)
def test_nothing_of_a_held_unit_is_sent_or_deleted(by):
    held = Held(WEB, by, "why")
    desired = replace(a_desired(a_unit("web")), held=(held,))

    told, found = after(changes(WEB, *Action), desired=desired)

    assert not {Action.CREATE, Action.CHANGE, Action.DELETE} & {
        c.action for c in found.units[0].changes
    }
    assert 3 == [code for _, code in told["web"]].count(held.code)
    assert () == found.units[0].retirements
    assert all(
        c.payload is None for c in found.units[0].changes if c.action is Action.WAIT and c.code
    )
    assert {f"{by}: why"} == {c.note for c in found.units[0].changes if c.code == held.code}


def test_a_unit_that_goes_on_as_it_was_is_not_touched():
    held = Held(WEB, HeldBy.DEPENDENCY, "why", whole=False)
    desired = replace(a_desired(a_unit("web")), held=(held,))
    before = changes(WEB, *Action)

    assert (before,) == after(before, desired=desired)[1].units


def test_units_that_are_not_held_are_not_touched():
    before = changes(WEB, *Action)

    assert (before,) == after(before)[1].units


def leaving(name: str, *depends_on: str, suspended: bool = False):
    refs = tuple(a_ref(each) for each in depends_on)
    return Standing(a_ref(name), suspended=suspended, depends_on=refs)


def test_dependents_go_first():
    units = [changes(a_ref(name), Action.DELETE) for name in ("base", "top", "web")]
    standings = [leaving("base"), leaving("top", "web"), leaving("web", "base")]

    told, _ = after(*units, desired=a_desired(a_unit("other")), standings=standings)

    assert [("wait", "dependents-first")] == told["base"] == told["web"]
    assert [("delete", "")] == told["top"]


def test_a_dependent_whose_objects_are_all_kept_holds_nothing_up():
    units = [changes(a_ref("base"), Action.DELETE), changes(a_ref("web"), Action.KEEP)]
    standings = [leaving("base"), leaving("web", "base")]

    told, _ = after(*units, desired=a_desired(a_unit("other")), standings=standings)

    assert [("delete", "")] == told["base"]


def test_what_is_kept_of_a_unit_that_goes_later_stays_kept():
    units = [
        changes(a_ref("base"), Action.DELETE, Action.KEEP),
        changes(a_ref("web"), Action.DELETE),
    ]
    standings = [leaving("base"), leaving("web", "base", "gone")]

    told, _ = after(*units, desired=a_desired(a_unit("other")), standings=standings)

    assert [("wait", "dependents-first"), ("keep", "")] == told["base"]


def test_a_long_way_round_is_no_circle():
    units = [changes(a_ref(name), Action.DELETE) for name in ("base", "left", "right", "top")]
    standings = [
        leaving("base", "x", "y"),
        leaving("x", "z"),
        leaving("y", "z"),
        leaving("left", "base"),
        leaving("right", "base"),
        leaving("top", "left", "right"),
    ]

    told, _ = after(*units, desired=a_desired(a_unit("other")), standings=standings)

    assert ["top"] == [name for name, found in told.items() if found == [("delete", "")]]


def test_units_that_wait_for_each_other_wait_for_nobody():
    """Such files are refused; what was reported of older ones must not block for ever."""
    units = [changes(a_ref(name), Action.DELETE) for name in ("base", "web")]
    standings = [leaving("base", "web"), leaving("web", "base")]

    told, _ = after(*units, desired=a_desired(a_unit("other")), standings=standings)

    assert [("delete", "")] == told["base"] == told["web"]


@pytest.mark.parametrize(
    ("named", "action"),
    [
        ((), "keep"),
        (("ModelService/llm/base",), "delete"),
        (("llm/base",), "delete"),
        (("all",), "delete"),
    ],
    ids=["nobody", "full", "short", "all"],
)
def test_what_was_suspended_when_it_left_is_kept_until_named(named, action):
    desired = replace(a_desired(a_unit("other")), allow_delete=named)

    told, _ = after(
        changes(a_ref("base"), Action.DELETE),
        desired=desired,
        standings=[leaving("base", suspended=True)],
    )

    assert action == told["base"][0][0]


def test_a_suspended_fleet_deletes_nothing_of_units_that_left():
    told, _ = after(
        changes(a_ref("base"), Action.DELETE), desired=a_desired(a_unit("x")), fleet="audit"
    )

    assert [("keep", "suspended")] == told["base"]

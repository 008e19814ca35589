"""Who is held, and what of it goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS, a_desired, a_ref, a_snapshot, a_unit
from stoker.decide.gates import Admitted, gates, not_judged
from stoker.model.flow import Flow, Held, HeldBy, Standing, Suspension
from stoker.model.refs import UnitRef

WEB, BASE = a_ref("web"), a_ref("base")
FLEET = UnitRef("Fleet", "stoker-system", "prod")


def unit(name: str, digest: str = "", **flow):
    return replace(a_unit(name), digest=(digest or f"new-{name}") * 4, flow=Flow(**flow))


def stands(name: str, digest: str = "", *, synced: bool = True, healthy: bool = True):
    made = unit(name, digest)
    return Standing(made.ref, made.digest[:12], synced, healthy, why="a reason")


def held(desired, *, standings=(), admitted=None, suspensions=(), waits=True, judge=not_judged):
    """What holds each unit that is held, by name, and what `gates` gave."""
    snapshot = replace(a_snapshot(), suspensions=tuple(suspensions))
    known = {standing.ref: standing for standing in standings}
    found = gates(desired, snapshot, known, admitted or {}, NOW_MS, waits=waits, judge=judge)
    return {each.unit.name: each for each in found.desired.held}, found


def fleet_of(*units):
    return a_desired(*units)


WAITING = unit("web", depends_on=(BASE,))


@pytest.mark.parametrize(
    ("standing", "why"),
    [
        (None, "it was not looked at yet"),
        (stands("base", "old-base"), "it has not applied this revision (a reason)"),
        (stands("base", synced=False), "it has not applied this revision (a reason)"),
        (stands("base", healthy=False), "it is not Healthy (a reason)"),
        (stands("base"), ""),
    ],
    ids=["unknown", "older", "not-synced", "unwell", "ready"],
)
def test_a_unit_waits_for_applied_and_healthy(standing, why):
    found, _ = held(fleet_of(WAITING, unit("base")), standings=[standing] if standing else [])

    message = f"waits for {BASE}: {why}" if why else None
    assert message == (found["web"].message if found else None)


def by(ref, expression):
    """A judge to whom only `up` is ready."""
    return "" if expression == "up" else f"{ref.name} {expression} is false"


@pytest.mark.parametrize(
    ("asks", "healthy", "why"),
    [
        (("up",), False, ""),
        (("down",), True, "base down is false"),
        (("", "up"), False, "it is not Healthy (a reason)"),
        (("", "up"), True, ""),
        (("", "down"), True, "base down is false"),
    ],
)
def test_an_expression_takes_the_place_of_healthy(asks, healthy, why):
    """Only where no second entry of the same unit asks for Healthy too."""
    waiting = unit("web", depends_on=(BASE,), ready=tuple((BASE, text) for text in asks))
    standings = [stands("base", healthy=healthy)]

    found, _ = held(fleet_of(waiting, unit("base")), standings=standings, judge=by)

    message = f"waits for {BASE}: {why}" if why else None
    assert message == (found["web"].message if found else None)


def test_an_expression_asks_nothing_of_a_revision_that_is_not_applied():
    waiting = unit("web", depends_on=(BASE,), ready=((BASE, "up"),))

    found, _ = held(fleet_of(waiting, unit("base")), standings=[stands("base", "old")], judge=by)

    assert "it has not applied this revision" in found["web"].message


def test_where_nobody_judges_an_expression_is_waited_for():
    waiting = unit("web", depends_on=(BASE,), ready=((BASE, "up"),))

    found, _ = held(fleet_of(waiting, unit("base")), standings=[stands("base")])

    assert f"waits for {BASE}: it was not looked at yet" == found["web"].message


def test_a_dependency_whose_files_are_wrong_is_waited_for():
    desired = replace(fleet_of(WAITING), broken=(BASE,))

    assert held(desired)[0]["web"].message.endswith("its files are wrong")


def test_one_that_is_missing_is_waited_for_too():
    """Files that could not be read may hold it: unknown is not empty."""
    assert held(fleet_of(WAITING))[0]["web"].message.endswith("the fleet does not have it")


def test_what_stands_already_is_not_held():
    standings = [stands("web"), stands("base", healthy=False)]

    assert {} == held(fleet_of(WAITING, unit("base")), standings=standings)[0]


def test_what_was_let_through_is_not_held_again():
    admitted = {WEB: Admitted(WAITING)}

    found, gated = held(fleet_of(WAITING, unit("base")), admitted=admitted)

    assert {} == found
    assert WAITING == gated.admitted[WEB].unit


def test_a_waiting_unit_goes_on_as_it_was():
    old = unit("web", "old-web", depends_on=(BASE,))

    found, gated = held(fleet_of(WAITING, unit("base")), admitted={WEB: Admitted(old)})

    assert [False] == [each.whole for each in found.values()]
    assert old == gated.desired.unit(WEB)
    assert old == gated.admitted[WEB].unit, "it is still what was let through"


def test_with_other_templates_nothing_of_a_waiting_unit_is_written():
    """Its old revision cannot be rendered as it was."""
    from stoker.model.fleet import Blob  # noqa: PLC0415

    old = unit("web", "old-web", depends_on=(BASE,))
    desired = replace(fleet_of(WAITING, unit("base")), templates=(Blob("t", "1"),))

    found, gated = held(desired, admitted={WEB: Admitted(old)})

    assert found["web"].whole
    assert WAITING == gated.desired.unit(WEB)


def test_a_preview_waits_for_nothing():
    assert {} == held(fleet_of(WAITING, unit("base")), waits=False)[0]


def test_git_and_people_suspend():
    until = NOW_MS + 1000
    desired = fleet_of(unit("git", suspend=True), unit("hand"), unit("lapsed"), unit("free"))

    found, gated = held(
        desired,
        suspensions=[
            Suspension(a_ref("hand"), "why", NOW_MS - 1, until),
            Suspension(a_ref("lapsed"), "", None, NOW_MS),
        ],
    )

    assert ["git", "hand"] == sorted(found)
    assert {HeldBy.SUSPENDED} == {each.by for each in found.values()}
    assert (NOW_MS - 1, until) == (found["hand"].since_ms, found["hand"].until_ms)
    assert until == gated.wake_at_ms


def test_a_suspended_fleet_holds_every_unit():
    desired = fleet_of(unit("a"), unit("b", depends_on=(BASE,)))
    name = desired.fleet.name
    by_git = replace(desired, fleet=replace(desired.fleet, suspend=True))
    by_hand = [Suspension(UnitRef("Fleet", "stoker-system", name), "audit")]
    other = [Suspension(UnitRef("Fleet", "stoker-system", f"{name}-2"))]

    assert ["a", "b"] == sorted(held(by_git)[0])
    assert {"the fleet: suspended by hand: audit"} == {
        each.message for each in held(desired, suspensions=by_hand)[0].values()
    }
    assert ["b"] == sorted(held(desired, suspensions=other)[0])


def test_a_unit_that_is_held_already_stays_so():
    window = Held(WEB, HeldBy.WINDOW, "later")
    desired = replace(fleet_of(unit("web"), unit("base")), held=(window,))

    assert {"web": window} == held(desired)[0]


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(
    st.dictionaries(NAMES, st.tuples(st.booleans(), st.sets(NAMES), st.sampled_from("xy"))),
    st.dictionaries(NAMES, st.tuples(st.sampled_from("xy"), st.booleans(), st.booleans())),
)
def test_units_and_their_order_are_kept_and_held_is_sorted(units, known):
    made = [
        unit(name, digest * 3, suspend=suspend, depends_on=tuple(map(a_ref, sorted(after))))
        for name, (suspend, after, digest) in sorted(units.items())
    ]
    standings = [
        stands(name, digest * 3, synced=synced, healthy=healthy)
        for name, (digest, synced, healthy) in known.items()
    ]

    found, gated = held(fleet_of(*made), standings=standings)

    assert [each.ref for each in made] == [each.ref for each in gated.desired.units]
    assert [each.unit for each in gated.desired.held] == sorted(
        each.unit for each in found.values()
    )
    for each in made:
        if each.flow.suspend:
            assert HeldBy.SUSPENDED is found[each.ref.name].by
        elif not each.flow.depends_on:
            assert each.ref.name not in found

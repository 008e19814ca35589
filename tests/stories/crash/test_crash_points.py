"""The controller dies at any port call, and the fleet comes out as if it had not.

research c.1 rows 1 to 4 and 8: all state of the process is dropped before and after requests
and Git operations, lost answers included. The first death of a phase goes through its calls in
turn, evenly; those after it come at random numbers of a fixed seed.
"""

from __future__ import annotations

import random

import pytest

from stories.crash.life import Life
from stories.crash.oracle import BRANCH, NOTES, git
from stories.crash.phases import Phase, beginning, cycle
from stories.crash.rig import Point, When

CALLS = {
    "begin": 90,
    "install": 170,
    "update": 500,
    "shrink": 170,
    "move": 80,
    "restart": 110,
    "remove": 140,
}
"""Port calls of each phase until everything stands, when nobody dies."""
DEATHS = {
    "begin": 5,
    "install": 6,
    "update": 10,
    "shrink": 5,
    "move": 4,
    "restart": 4,
    "remove": 5,
}
"""How often the controller dies in a phase; more where it takes longer."""
SPARE, FULL = 6, 5
"""Nodes: five are just enough, six leave one GPU for a surge."""


def points(phase: Phase, turn: int, turns: int, deaths: int) -> tuple[Point, ...]:
    """Where to die in a phase: first at the call whose turn it is, then anywhere."""
    dice = random.Random(f"{phase.name} {turn} {turns}")
    calls = CALLS[phase.name]
    first = Point(calls * turn // turns, (When.BEFORE, When.AFTER)[turn % 2])
    further = [
        Point(dice.randrange(2 * calls // deaths), dice.choice(list(When)))
        for _ in range(deaths - 1)
    ]
    return (first, *further)


def live(life: Life, turns: range, of: int, deaths: dict[str, int]) -> None:
    """Begin, then go through a cycle for each turn, dying in every phase of it."""
    first = beginning()
    life.go_through(first, *points(first, turns[0], of, deaths[first.name]))
    for turn in turns:
        life.note(f"turn {turn}")
        for phase in cycle(turn):
            life.go_through(phase, *points(phase, turn, of, deaths[phase.name]))
    assert f"turn {turns[-1]}" == git(life.world, "show", f"{BRANCH}:{NOTES}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("start", [0, *(pytest.param(n, marks=pytest.mark.full) for n in (1, 2))])
def test_a_fleet_comes_out_right_wherever_its_controller_dies(new_life, start):
    """Three lives of 67 points and more; every promise is checked after each phase.

    The second and third are long: `make live-full` lives them.
    """
    life = new_life((SPARE, FULL)[start % 2])
    live(life, range(start, 6, 3), 6, DEATHS)

    assert life.points >= 67


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("start", range(8))
def test_a_fleet_comes_out_right_after_each_single_death(new_life, start):
    """Eight lives of 36 deaths, one a phase: nothing but that one call is lost."""
    life = new_life((SPARE, FULL)[start % 2])
    live(life, range(start, 48, 8), 48, dict.fromkeys(CALLS, 1))

    assert life.points >= 36


@pytest.mark.timeout(300)
def test_a_crash_loop_buys_nothing_twice(new_life):
    """a.5 W6: row 8: twenty short lives in a row, each a few calls longer than the one before."""
    life = new_life(SPARE)
    life.go_through(beginning())
    install = cycle(0)[0]
    lives = [Point(calls, (When.BEFORE, When.AFTER)[calls // 4 % 2]) for calls in range(9, 89, 4)]
    life.go_through(install, *lives)

    assert len(life.crashes.deaths) >= 15
    created = [entry.path for entry in life.world.memory.audit if entry.status == 201]
    assert 1 + install.tiny == sum(
        "/deployments/tiny-" in path or path.endswith("/deployments/pack") for path in created
    )

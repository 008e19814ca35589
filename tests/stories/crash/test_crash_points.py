"""The controller dies at any port call, and the fleet comes out as if it had not.

research c.1 rows 1 to 4 and 8: all state of the process is dropped before and after requests
and Git operations, lost answers included. The first death of a phase goes through its calls in
turn, evenly; those after it come at random numbers of a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stoker.render import Renderer
from stories.crash.life import Life
from stories.crash.oracle import NOTES, BRANCH, git
from stories.crash.phases import Phase, beginning, cycle
from stories.crash.rig import Point, When

DEATHS = {"begin": 4, "install": 3, "update": 5, "shrink": 3, "move": 2, "restart": 2, "remove": 3}
"""How often the controller dies in a phase; more where it takes longer."""
SPARE, FULL = 6, 5
"""Nodes: five are just enough, six leave one GPU for a surge."""

NewLife = Callable[[int], Life]
Lengths = dict[str, int]


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(1) as made:
        yield made


@pytest.fixture
def new_life(tmp_path: Path, renderer: Renderer) -> Iterator[NewLife]:
    lives: list[Life] = []

    def make(nodes: int) -> Life:
        folder = tmp_path / f"life-{len(lives)}"
        folder.mkdir()
        lives.append(Life(folder, nodes, renderer))
        return lives[-1]

    yield make
    for life in lives:
        life.world.close()


@pytest.fixture(scope="module")
def lengths(tmp_path_factory: pytest.TempPathFactory, renderer: Renderer) -> Lengths:
    """How many port calls each phase takes when nobody dies."""
    life = Life(tmp_path_factory.mktemp("undisturbed"), SPARE, renderer)
    found = {phase.name: life.go_through(phase) for phase in (beginning(), *cycle(0))}
    life.world.close()
    return found


def points(phase: Phase, length: int, place: int, places: int) -> tuple[Point, ...]:
    """Where to die in a phase: first at the call whose turn it is, then anywhere."""
    dice = random.Random(f"{phase.name} {place} {places}")
    first = Point(length * place // places, (When.BEFORE, When.AFTER)[place % 2])
    further = [
        Point(dice.randrange(max(1, length // 2)), dice.choice(list(When)))
        for _ in range(DEATHS[phase.name] - 1)
    ]
    return (first, *further)


def live(life: Life, lengths: Lengths, turns: range, places: int) -> None:
    """Begin, then one cycle for each turn, dying in every phase of it."""
    first = beginning()
    life.go_through(first, *points(first, lengths["begin"], turns[0], places))
    for turn in turns:
        life.note(f"turn {turn}")
        for phase in cycle(turn):
            life.go_through(phase, *points(phase, lengths[phase.name], turn, places))
    assert f"turn {turns[-1]}" == git(life.world, "show", f"{BRANCH}:{NOTES}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("nodes", [SPARE, FULL], ids=["with a spare node", "with none to spare"])
def test_a_fleet_comes_out_right_wherever_its_controller_dies(new_life, lengths, nodes, start):
    """At least 200 points over the eight lives; every promise is checked after each phase."""
    life = new_life(nodes)
    live(life, lengths, range(start, 8, 4), 8)

    assert life.points >= 26

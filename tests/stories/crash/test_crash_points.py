"""The controller dies at any port call, and the fleet comes out as if it had not.

research c.1 rows 1 to 4 and 8: all state of the process is dropped before and after each
request and Git operation in turn, lost answers included.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.cli.world import World, WorldNode
from stoker.objects import names
from stoker.render import Renderer
from stoker.sim.start_times import StartTimes
from stories.crash.oracle import (
    Before,
    before,
    check_at_rest,
    check_linear,
    check_on_the_way,
    fleet_id,
    write_a_note,
)
from stories.crash.foreign import plant
from stories.crash.phases import Phase, bare_fleet, cycle
from stories.crash.rig import Call, Crashes, Point, Rig, When

AT_ONCE = StartTimes(
    default_image_bytes=0,
    default_weights_bytes=0,
    init_seconds=0.5,
    capture_seconds=0.0,
    plain_seconds=0.5,
    stop_seconds=0.5,
)
LONGEST = 240
"""Virtual seconds within which a fleet comes to rest after a crash."""


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    """Render children for all controllers: only their start is saved, nothing is kept."""
    with Renderer(1) as made:
        yield made


class Life:
    """A world that goes through the phases, with a controller that may die in each."""

    def __init__(self, world: World, crashes: Crashes) -> None:
        self.world = world
        self.crashes = crashes
        self.phase: Phase | None = None
        self.rig = Rig(world, crashes, self._look)

    def _look(self) -> None:
        if self.phase is not None:
            check_on_the_way(self.world, self.phase)

    def go_through(self, phase: Phase, point: Point | None) -> bool:
        """Live through a phase and check its end; whether the controller died in it."""
        world = self.world
        was = before(world)
        self.phase = phase
        self.crashes.arm(point)
        if phase.files is None:
            world.stop_controller()
            commit = world._git("rev-parse", "HEAD")
        else:
            commit = world.commit(phase.name, phase.files)
        self.rig.rest(seconds=LONGEST)
        check_at_rest(world, phase, was, commit)
        return self.crashes.died


@pytest.fixture
def new_life(tmp_path, renderer):
    worlds: list[World] = []

    def make(nodes: int) -> Life:
        crashes = Crashes()
        folder = tmp_path / str(len(worlds))
        folder.mkdir()
        world = World(
            folder,
            tuple(WorldNode(f"gpu-{number}") for number in range(1, nodes + 1)),
            times=AT_ONCE,
            wrap=crashes.transport,
            wrap_repo=crashes.repo,
            renderer=renderer,
        )
        worlds.append(world)
        return Life(world, crashes)

    yield make
    for world in worlds:
        world.close()


def test_x(new_life):
    import time
    life = new_life(6)
    world = life.world
    plant(world)
    world.commit("First", bare_fleet())
    life.rig.rest(seconds=60)
    write_a_note(world, "mine")
    for n in (0, 1):
        for phase in cycle(n):
            t=time.process_time()
            life.go_through(phase, None)
            print(phase.name, len(life.crashes.calls), sum(c.writes for c in life.crashes.calls), max((i for i,c in enumerate(life.crashes.calls) if c.writes), default=0), time.process_time()-t)
            if n==1:
                for c in life.crashes.calls:
                    if c.writes: print("   ", c.text)

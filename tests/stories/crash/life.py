"""One world that lives through phases, with a controller that may die in each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stoker.cli.world import World, WorldNode
from stoker.render import Renderer
from stoker.sim.start_times import StartTimes
from stories.crash.foreign import plant
from stories.crash.oracle import before, check_at_rest, check_on_the_way, git, write_a_note
from stories.crash.phases import Phase
from stories.crash.rig import Crashes, Point, Rig
from stories.files import URI

LONGEST = 300
"""Virtual seconds within which a fleet comes to rest, crashes included."""
AT_ONCE = StartTimes(
    default_image_bytes=0,
    weights_bytes={URI: 1},
    init_seconds=0.5,
    capture_seconds=0.0,
    plain_seconds=0.5,
    stop_seconds=0.5,
)


class Life:
    """A world of so many nodes with foreign objects in it, and its controllers.

    `points` counts the deaths so far. Render children are shared between processes, which
    only saves their start: what a controller remembers of them goes with it.
    """

    def __init__(self, folder: Path, nodes: int, renderer: Renderer) -> None:
        self.crashes = Crashes()
        self.world = World(
            folder,
            tuple(WorldNode(f"gpu-{number}") for number in range(1, nodes + 1)),
            times=AT_ONCE,
            wrap=self.crashes.transport,
            wrap_repo=self.crashes.repo,
            renderer=renderer,
        )
        self.points = 0
        self._phase: Phase | None = None
        self._rig = Rig(self.world, self.crashes, self._look)
        plant(self.world)
        self.world.advance(5, passes=False)

    def go_through(self, phase: Phase, *points: Point) -> int:
        """Live through a phase, dying at these points, and check its end; how many calls it took.

        A point that the phase does not reach is none.
        """
        world = self.world
        was = before(world)
        self._phase = phase
        self.crashes.arm(*points)
        try:
            if phase.files is None:
                world.stop_controller()
            else:
                world.commit(phase.name, phase.files)
            self._rig.rest(seconds=LONGEST)
            check_at_rest(world, phase, was, git(world, "rev-parse", "main"))
        except BaseException as error:
            error.add_note(f"in phase {phase.name}, died {self.crashes.deaths or 'never'}")
            raise
        finally:
            self._phase = None
        self.points += len(self.crashes.deaths)
        return len(self.crashes.calls)

    def note(self, text: str) -> None:
        """A person commits to the status branch."""
        write_a_note(self.world, text)

    def _look(self) -> None:
        if self._phase is not None:
            check_on_the_way(self.world, self._phase)


NewLife = Callable[[int], Life]
"""What the fixture `new_life` gives."""

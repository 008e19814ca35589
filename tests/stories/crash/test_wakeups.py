"""A fleet comes to rest on events and wake-ups alone: nothing waits for the full pass.

Elsewhere stories run a pass every second, which hides a wake-up that nobody set. Here passes
run only when a watch would tell of something new (never of our own writes, for these are in
the caches already), when Git moved, or when the pass before asked for it.
"""

from __future__ import annotations

import pytest

from stoker.loop.loop import PassRequest
from stoker.loop.step import PassKind
from stoker.observe.events import events_from
from stories.crash.life import Life
from stories.crash.oracle import before, check_at_rest, check_on_the_way, git
from stories.crash.phases import Phase, beginning, cycle

LONGEST = 240
QUIET = 8
"""Seconds without a write or a pass; longer than anything of these fleets is waited for."""


class Eventful:
    """The controller of a life, run as its loop would run it."""

    def __init__(self, life: Life) -> None:
        self.world = life.world
        self.wake_at_ms: int | None = 0
        self.passes = 0

    def second(self) -> None:
        """One second of the cluster, and a pass if there is a reason for one."""
        world = self.world
        world.advance(1, passes=False)
        if world.work is None:
            self._begin()
            return
        work, now_ms = world.work, world.clock.now_ms()
        revision = work.parts.repo.fetch()
        news = self._watched() or revision != work.state.desired.revision  # type: ignore[union-attr]
        if news or (self.wake_at_ms is not None and self.wake_at_ms <= now_ms):
            self.passes += 1
            verdict = work.run(PassRequest(PassKind.FULL, revision))
            wish = verdict.wake_in
            self.wake_at_ms = None if wish is None else now_ms + round(wish * 1000)
        work.publisher.turn()

    def _begin(self) -> None:
        self.world.one_pass()
        assert self.world.work is not None
        self.world.work.publisher.on_change = self._wake

    def _wake(self) -> None:
        self.wake_at_ms = 0

    def _watched(self) -> bool:
        """What the watch threads would tell since the last second."""
        assert self.world.work is not None
        observer = self.world.work.parts.observer
        told = False
        for reflector in observer._all():
            changes = reflector.relist() or ()
            observer._absorb(reflector.key, changes)
            told = bool(events_from(reflector.key, changes)) or told
        return told

    def rest(self, phase: Phase) -> None:
        still = 0
        for _ in range(LONGEST):
            version, passes = self.world.memory.resource_version, self.passes
            self.second()
            check_on_the_way(self.world, phase)
            moved = version != self.world.memory.resource_version or passes != self.passes
            still = 0 if moved or self.world.is_busy else still + 1
            if still >= QUIET:
                return
        raise TimeoutError(f"no rest within {LONGEST} s")


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(6, id="with a spare node"),
        pytest.param(5, id="with none to spare", marks=pytest.mark.full),
    ],
)
def test_every_phase_comes_to_its_end_without_the_full_pass(new_life, nodes):
    life = new_life(nodes)
    rig = Eventful(life)
    world = life.world
    for phase in (beginning(), *cycle(0)):  # the Fleet mirror names the newest status commit
        was = before(world)
        if phase.files is None:
            continue
        world.commit(phase.name, phase.files)
        rig.rest(phase)
        world.memory.audit.clear()
        world.one_pass()

        written = [entry.path for entry in world.memory.audit if entry.method != "GET"]
        assert [] == [path for path in written if "/fleets/" not in path]
        check_at_rest(world, phase, was, git(world, "rev-parse", "main"))

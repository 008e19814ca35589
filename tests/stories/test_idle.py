"""A fleet at rest is silent: no write, no commit, no event, however long it is watched."""

from __future__ import annotations

import pytest

from stoker.report import Event
from stories.files import a_service, the_village
from stories.looks import a_pass, is_clean

PLACEMENT = {"mode": "Scheduler", "pools": [{"name": "gpu"}]}
FLEETS = {
    "by nodes": the_village(),
    "by the scheduler": the_village(tiny=a_service(replicas=2, placement=PLACEMENT)),
    "asleep": the_village(tiny=a_service(replicas=0)),
    "with a wrong file": the_village(tiny=a_service(replicas=2, oops=1)),
    "held": the_village(tiny=a_service(replicas=9)),
}


@pytest.mark.parametrize("files", FLEETS.values(), ids=FLEETS.keys())
def test_twenty_idle_passes_write_nothing_and_say_nothing(settled, faults, files):
    """cases.md rows 13 and 99."""
    world = settled(files)
    world.advance(3)
    commits = world.status_commits()
    faults.asked.clear()

    events: list[Event] = []
    for _ in range(20):
        world.advance(1, passes=False)
        report = a_pass(world).report
        assert report is not None
        events += report.events

    assert [] == faults.writes
    assert [] == events
    assert commits == world.status_commits()


def test_an_idle_pass_reads_little(world, faults):
    """Lists of what is watched and one look at the inventory: nothing per object."""
    world.advance(2)
    world.work.parts.observer.refresh = lambda: None
    faults.asked.clear()

    a_pass(world)

    assert 3 >= len(faults.asked), [f"{r.method} {r.path}" for r in faults.asked]


def test_silence_means_dead(world):
    """A heartbeat an hour, so that a status older than two of them is known to be stale."""
    commits = world.status_commits()

    world.clock.wait(3500)
    world.advance(1)
    assert commits == world.status_commits()

    world.clock.wait(120)
    world.advance(2)
    assert commits + 1 == world.status_commits()
    assert is_clean(world)

"""A fleet at rest is silent: no write, no commit, no event, however long it is watched."""

from __future__ import annotations

import pytest

from stoker.model.refs import ObjectRef
from stoker.report import Event
from stories.faults import forbidding
from stories.files import NEW, a_service, the_village
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


def lists(faults) -> set[str]:
    """The collections that were asked for."""
    return {r.path.rpartition("/")[2] for r in faults.asked if ("limit", "500") in r.query}


def test_a_world_lists_anew_what_was_written_and_all_where_something_stands_between(world, faults):
    """What a story sees must not hang on what its world leaves out to be quick."""
    world.advance(2)
    faults.asked.clear()
    a_pass(world)
    assert not lists(faults) & {"configmaps", "deployments", "nodes", "pods"}

    side = ObjectRef("", "ConfigMap", "llm", "side")
    world.cluster.patch(side, "merge", {"data": {"more": "x"}}, manager="kubectl-edit")
    a_pass(world)
    assert "configmaps" in lists(faults)
    assert not lists(faults) & {"deployments", "nodes"}

    faults.asked.clear()
    faults.refuse = forbidding("/nothing-of-that-name")
    a_pass(world)
    assert {"configmaps", "deployments", "nodes", "pods"} <= lists(faults)


def test_what_a_world_knows_is_what_whole_lists_show(world):
    """Through an update with everything that comes and goes on the way."""
    world.commit("New", {"models/tiny.yaml": a_service(replicas=1, revision=NEW)})
    for _ in range(12):
        world.advance(1)
        observer = world.work.parts.observer
        observer.refresh(world._news.unwritten(world.server, world._wrap))
        known = observer.kinds()
        observer.refresh()

        for before, after in zip(known, observer.kinds(), strict=True):
            newer = [n for n, e in after.entries.items() if before.entries.get(n) != e]
            assert (before.why_unknown, []) == (after.why_unknown, newer), before.key
            assert before.entries.keys() == after.entries.keys()


def test_an_idle_pass_reads_little(world, faults):
    """Lists of what is watched and one look at the inventory: nothing per object."""
    world.advance(2)
    world.work.parts.observer.refresh = lambda *_: None
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

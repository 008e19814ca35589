"""What follows a pass: the report handed on, mirrors, metrics, and when to run the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import NOW_MS, a_ref, a_snapshot
from stoker.cli.world import CLUSTER_UID, World, WorldNode
from stoker.errors import Finding, SourceLocation
from stoker.loop import work
from stoker.loop.loop import PassAborted, PassRequest, PassVerdict
from stoker.loop.step import PassKind
from stoker.loop.work import LOOK_AGAIN_SECONDS, RETRY_SECONDS, Work
from stoker.metrics import Metrics
from stoker.model.readings import LoadReading, Sample, ServiceReadings, Unmeasurable
from stoker.model.refs import SourceRevision
from stoker.parts import Pass
from stoker.render import Renderer
from stoker.report import MirrorWriter, Submission, mirrors_write
from stoker.report.mirrors_write import MirrorsWritten
from stories.files import FLEET, QUICK, a_fleet, a_service, the_fleet

WIDGET = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: one}\nspec: {size: 1}\n"

NewWorld = Callable[..., World]


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(1) as made:
        yield made


@pytest.fixture
def settled(tmp_path: Path, renderer: Renderer) -> Iterator[NewWorld]:
    """Make a world of two nodes with these files in it, at rest."""
    made: list[World] = []

    def make(files: dict[str, str] | None = None) -> World:
        nodes = (WorldNode("gpu-1"), WorldNode("gpu-2"))
        world = World(tmp_path, nodes, times=QUICK, renderer=renderer)
        made.append(world)
        world.commit("First", files or the_fleet(a_service()))
        world.settle()
        return world

    yield make
    for world in made:
        world.close()


def work_of(world: World) -> Work:
    assert world.work is not None
    return world.work


def run(
    world: World,
    revision: str,
    finding: Finding | None = None,
    kind: PassKind = PassKind.FULL,
) -> PassVerdict:
    """One pass of the world's own Work, on caches that are up to date."""
    work = work_of(world)
    work.parts.observer.refresh()
    return work.run(PassRequest(kind, SourceRevision("main", revision), finding))


def fetched(world: World, message: str, files: dict[str, str | None]) -> str:
    commit = world.commit(message, files)
    assert commit == work_of(world).parts.repo.fetch().commit
    return commit


def writes(world: World) -> list[str]:
    return [
        f"{entry.method} {entry.path}"
        for entry in world.memory.audit
        if entry.user_agent == "stoker" and entry.method != "GET"
    ]


def test_a_pass_with_nothing_to_do_wishes_for_no_other(settled):
    world = settled()
    head = work_of(world).parts.repo.fetch().commit
    world.memory.audit.clear()

    assert PassVerdict(failed=False, wake_in=None) == run(world, head)
    assert [] == writes(world)


def test_a_unit_that_waits_is_looked_at_again_without_an_event(settled):
    """Row 65: its kind may come from somebody whom nobody watches."""
    world = settled()
    bundle = the_fleet(a_service(), odd={"widget.yaml": WIDGET})
    verdict = run(world, fetched(world, "Odd", dict(bundle)))

    assert not verdict.failed
    assert verdict.wake_in is not None
    assert 0 < verdict.wake_in <= RETRY_SECONDS


def test_a_pass_that_wrote_something_is_followed_by_another(settled):
    """No watch tells of our own writes: a drain would stop at its first step."""
    world = settled(the_fleet(a_service(replicas=2)))
    verdict = run(world, fetched(world, "Less", dict(the_fleet(a_service(replicas=1)))))
    done = work_of(world).last

    assert done is not None
    assert done.plan is not None
    assert done.plan.wake_at_ms is None
    assert PassVerdict(failed=False, wake_in=LOOK_AGAIN_SECONDS) == verdict


def test_a_source_without_news_fails_no_pass(settled):
    """The last good revision is worked on, and the report says what is wrong."""
    world = settled()
    finding = Finding(SourceLocation(), "repository-unreachable", "no answer")
    verdict = run(world, "f" * 40, finding)
    done = work_of(world).last

    assert not verdict.failed
    assert done is not None
    assert finding == done.failure
    assert done.outcome is not None


def test_a_notice_is_answered_before_a_new_commit_is_read(settled):
    """Design 2: a notice pass works on the last good revision, of which all is rendered."""
    world = settled()
    work = work_of(world)
    good = work.parts.repo.fetch().commit
    more = fetched(world, "More", dict(the_fleet(a_service(), a_service("other"))))
    rendered, read = work.parts.renderer.jobs, work.parts.source_memo.parsed

    run(world, more, kind=PassKind.NOTICE)

    assert work.last is not None
    assert work.last.attempted is not None
    assert good == work.last.attempted.commit
    assert (rendered, read) == (work.parts.renderer.jobs, work.parts.source_memo.parsed)
    run(world, more)
    assert more == work.last.attempted.commit
    assert work.parts.renderer.jobs > rendered


def test_a_notice_before_any_commit_was_read_is_a_pass_like_any_other(settled):
    world = settled()
    work = work_of(world)
    head = work.parts.repo.fetch().commit
    work.state.desired = None

    assert not run(world, head, kind=PassKind.NOTICE).failed
    assert work.last is not None
    assert work.last.outcome is not None


def test_a_pass_that_stopped_early_failed(settled):
    """The loop backs off; in another cluster nothing is written, mirrors included."""
    world = settled()
    other = a_fleet(cluster={"uid": CLUSTER_UID.replace("1", "2")})
    commit = fetched(world, "Elsewhere", {FLEET: other})
    world.memory.audit.clear()

    assert run(world, commit).failed
    assert [] == writes(world)


def test_mirrors_that_did_not_fit_into_a_pass_follow_at_once(settled, monkeypatch):
    """A thousand new services must not keep a pass, nor wait for the next event."""
    world = settled()
    commit = fetched(world, "Two", dict(the_fleet(a_service(), a_service("other"))))
    monkeypatch.setattr(mirrors_write, "AT_ONCE", 1)

    assert 0.0 == run(world, commit).wake_in
    monkeypatch.undo()
    assert 0.0 != run(world, commit).wake_in


def test_trouble_with_mirrors_and_its_end_are_told_by_another_pass(settled, monkeypatch):
    """They are written after the report, so it would name what is over until something happens."""
    world = settled()
    work = work_of(world)
    write = work.mirrors.write
    told = (Finding(SourceLocation(), "mirrors-not-written", "no answer"),)

    def refused(report, **options):
        write(report, **options)
        work.mirrors.warnings = told
        return MirrorsWritten(told, 0, pending=False)

    work.parts.warnings = lambda: work.mirrors.warnings
    head = work.parts.repo.fetch().commit
    monkeypatch.setattr(
        MirrorWriter, "write", lambda _, *args, **options: refused(*args, **options)
    )
    asked = [run(world, head).wake_in for _ in range(2)]
    monkeypatch.undo()
    asked += [run(world, head).wake_in for _ in range(2)]

    assert [RETRY_SECONDS, None, RETRY_SECONDS, None] == asked


def test_the_report_is_handed_on_before_the_mirrors_are_written(settled, monkeypatch):
    """A stop that comes between must not lose what was found."""
    world = settled()
    work = work_of(world)
    offers: list[Submission] = []
    monkeypatch.setattr(work.publisher, "offer", offers.append)
    commit = fetched(world, "Two", dict(the_fleet(a_service(), a_service("other"))))
    world.memory.audit.clear()

    def checkpoint() -> None:
        if any("/apis/stoker.dev/" in path for path in writes(world)):
            raise PassAborted("stopping")

    work.parts.checkpoint = checkpoint

    with pytest.raises(PassAborted):
        run(world, commit)
    assert 1 == len(offers)


def test_a_decision_is_recorded_with_the_history_it_was_made_from(settled, monkeypatch):
    """`stoker replay` decides again: what the pass itself learned is no input of it."""
    world = settled()
    work = work_of(world)
    before = work.state.history
    offers: list[Submission] = []
    monkeypatch.setattr(work.publisher, "offer", offers.append)
    run(world, fetched(world, "More", dict(the_fleet(a_service(replicas=2)))))

    assert offers[0].decision is not None
    assert before is offers[0].decision.history


def test_metrics_tell_what_was_written_and_what_serves(settled):
    world = settled()
    run(world, fetched(world, "More", dict(the_fleet(a_service(replicas=2)))))
    metrics = work_of(world).metrics
    assert metrics is not None
    text = metrics.text().decode()

    assert lines(text, "stoker_writes_total", 'result="created"')[0] >= 1
    assert [1.0] == lines(text, "stoker_replicas", 'service="tiny"', 'state="ready"')
    assert [2.0] == lines(text, "stoker_replicas", 'service="tiny"', 'state="want"')
    assert [] == lines(text, "stoker_quarantined_nodes{")

    metrics.set_quarantined({("llm", "tiny"): 2})
    assert [2.0] == lines(metrics.text().decode(), "stoker_quarantined_nodes", 'service="tiny"')
    metrics.set_quarantined({})
    assert [] == lines(metrics.text().decode(), "stoker_quarantined_nodes{")


def test_readings_are_counted_by_why_they_cannot_be_used():
    """reliability-security row 75: a counter a cause, so that an alert can name it."""
    why = Unmeasurable("stale", "it was measured 60 s ago", NOW_MS)
    sample = Sample(1.0, NOW_MS, 1_000)
    readings = ServiceReadings(
        a_ref(),
        metrics=(("queue", sample), ("kv", why)),
        load=LoadReading(why, estimated=True),
        wake=(("router", why),),
    )
    snapshot = replace(a_snapshot(), readings=(readings, ServiceReadings(a_ref("idle"))))
    metrics = Metrics()
    work._count(metrics, Pass(NOW_MS, snapshot=snapshot))
    text = metrics.text().decode()

    assert [1.0] == lines(text, "stoker_signals", 'code="ok"')
    assert [3.0] == lines(text, "stoker_signals", 'code="stale"')


def lines(text: str, *parts: str) -> list[Any]:
    """Values of the samples that hold all of the parts."""
    return [
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith(parts[0]) and all(part in line for part in parts[1:])
    ]

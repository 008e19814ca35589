import threading
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import Refused, StokerError, Unreachable
from stoker.model.history import History
from stoker.model.ports import PushResult
from stoker.report.previous import PreviousStatus
from stoker.report.publish import Publisher, Submission
from stoker.report.publish_when import BackOff, PublishState, due_at
from stoker.report.records import DecisionInputs
from stoker.report.report import report
from stoker.sim.clock import VirtualClock
from unit.report.report_builders import (
    NOW,
    QWEN,
    decision,
    desired,
    finding,
    inputs,
    next_pass,
    plan,
    ready_on,
    service,
    snapshot,
)

BRANCH = "refs/heads/stoker-status/prod-eu"
RECORDS = "refs/stoker/prod-eu"


class Forge:
    """A Repo whose refs are dicts; `trouble` is raised or answered by the next pushes."""

    def __init__(self) -> None:
        self.refs: dict[str, dict[str, bytes]] = {}
        self.commits: list[tuple[str, dict[str, bytes | None], str]] = []
        self.trouble: dict[str, StokerError | str] = {}

    def read_branch(self, branch: str, prefix: str = "") -> dict[str, bytes]:
        self._maybe_fail("read")
        files = self.refs.get(branch, {})
        return {path: content for path, content in files.items() if path.startswith(prefix)}

    def commit_files(
        self, branch: str, files: dict[str, bytes | None], message: str, *, attempts: int = 5
    ) -> PushResult:
        refused = self._maybe_fail(branch)
        if refused:
            return PushResult("", pushed=False, rejected=refused)
        standing = self.refs.setdefault(branch, {})
        after = {p: c for p, c in (standing | files).items() if c is not None}
        if after == standing:
            return PushResult(f"{len(self.commits):040}", pushed=False)
        self.refs[branch] = after
        self.commits.append((branch, files, message))
        return PushResult(f"{len(self.commits):040}", pushed=True)

    def _maybe_fail(self, what: str) -> str:
        trouble = self.trouble.get(what, "")
        if isinstance(trouble, StokerError):
            raise trouble
        return trouble

    def pushed(self, branch: str = BRANCH) -> list[dict[str, bytes | None]]:
        return [files for ref, files, _ in self.commits if ref == branch]


class World:
    """A publisher and passes given to it."""

    def __init__(self, forge: Forge | None = None, clock: VirtualClock | None = None) -> None:
        self.forge = forge or Forge()
        self.clock = clock or VirtualClock(NOW)
        self.counted: list[str] = []
        repo: Any = self.forge
        self.publisher = Publisher(
            repo, self.clock, version="0.1.0", fleet_id="c0ffee01", count=self.counted.append
        )
        self.memory = self.publisher.read_previous("stoker-status/prod-eu")

    def look(self, **changes: Any) -> Any:
        """One pass whose report is offered, without a turn of the publisher."""
        now = next_pass(inputs(), self.memory, **changes)
        now = replace(now, now_ms=self.clock.now_ms(), written=self.publisher.written)
        made = report(now)
        self.memory = made.memory
        call = None
        if now.desired is not None and now.snapshot is not None and now.plan is not None:
            call = DecisionInputs(now.desired, (), now.snapshot, History(), now.plan)
        self.publisher.offer(Submission(made, "prod-eu", "stoker-status/prod-eu", decision=call))
        return made

    def wait(self, seconds: float) -> None:
        """Time passes and the publisher takes every turn it asks for."""
        end = self.clock.monotonic() + seconds
        while (look := self.publisher.turn()) is not None:
            if self.clock.monotonic() + look > end:
                break
            self.clock.wait(look)
        self.clock.wait(end - self.clock.monotonic())


def fewer(ready: int) -> dict[str, Any]:
    return {"plan": plan(decision(ready=ready)), "snapshot": snapshot(ready_on(QWEN, ready))}


def test_the_first_report_is_committed_at_once():
    world = World()
    world.look()
    world.wait(0)

    assert {"status.yaml", "units/modelservice.llm.qwen-7b.yaml"} == set(world.forge.refs[BRANCH])
    assert ["pushed"] == world.counted


def test_an_idle_fleet_commits_nothing():
    """cases.md rows 13 and 99: 20 polls, 0 commits."""
    world = World()
    world.look()
    world.wait(30)
    for _ in range(20):
        world.look()
        world.wait(30)

    assert 1 == len(world.forge.pushed())
    assert 1 == len(world.forge.pushed(RECORDS))


def test_what_another_controller_wrote_meanwhile_is_not_taken_for_ours():
    """A lease that changed hands and came back: the branch says what the other one saw."""
    world = World()
    world.look()
    world.wait(0)
    mine = dict(world.forge.refs[BRANCH])
    other = World(world.forge, world.clock)
    world.clock.wait(120)
    other.look(**fewer(1))
    other.wait(0)
    assert mine != world.forge.refs[BRANCH]
    world.publisher.forget()
    world.look()
    world.wait(120)

    unit = "units/modelservice.llm.qwen-7b.yaml"
    assert mine[unit] == world.forge.refs[BRANCH][unit]


def test_what_waited_while_another_wrote_is_dropped():
    """I8: it tells of a cluster that the other has changed since (note 14)."""
    world = World()
    world.look()
    world.wait(0)
    before = len(world.forge.pushed())
    world.look(**fewer(1))
    world.publisher.forget()
    world.wait(120)

    assert before == len(world.forge.pushed())


def test_only_a_branch_that_begins_or_ceases_to_take_commits_wakes_a_pass():
    """The condition StatusWritten is shown by the next pass; a commit alone changes none."""
    world = World()
    woken: list[int] = []
    world.publisher.on_change = lambda: woken.append(world.clock.now_ms())
    world.look()
    world.wait(0)
    assert 1 == len(woken)
    world.look(**fewer(1))
    world.wait(120)
    assert 1 == len(woken)
    world.forge.trouble[BRANCH] = Unreachable("gone", code="repository-unreachable")
    world.look()
    world.wait(120)
    assert 2 == len(woken)
    world.forge.trouble.clear()
    world.wait(600)

    assert 3 == len(woken)


def test_trouble_with_the_data_ref_and_its_end_wake_a_pass():
    """Only another report can take the warning out of status.yaml; while it lasts none is asked."""
    world = World()
    world.look()
    world.wait(0)
    woken: list[int] = []
    world.publisher.on_change = lambda: woken.append(world.clock.now_ms())
    world.forge.trouble[RECORDS] = "refs/stoker is not allowed here"
    for replicas, times in ((3, 1), (2, 1)):
        world.look(**fewer(replicas))
        world.wait(60)
        assert times == len(woken)
    world.forge.trouble.clear()
    world.look(**fewer(1))
    world.wait(60)

    assert 2 == len(woken)


def test_a_warning_that_flaps_commits_once_a_flush_interval():
    """A pass may run every second; the branch is for people."""
    world = World()
    world.look()
    world.wait(0)
    before = len(world.forge.pushed())
    for number in range(120):
        world.look(warnings=(finding("flapping"),) if number % 2 else ())
        world.wait(1)

    assert len(world.forge.pushed()) - before in {1, 2}


def test_a_restart_of_an_idle_fleet_commits_nothing():
    world = World()
    world.look()
    world.wait(30)

    again = World(world.forge, world.clock)
    again.look()
    again.wait(30)

    assert 1 == len(world.forge.pushed())


def test_changes_are_coalesced_by_the_flush_interval():
    world = World()
    world.look(**fewer(3))
    world.wait(120)
    for ready in (2, 1, 0):
        world.look(**fewer(ready))
        world.wait(20)

    first, second = world.forge.pushed()[1:]
    assert b"ready: 2" in (first["units/modelservice.llm.qwen-7b.yaml"] or b"")
    assert b"ready: 0" in (second["units/modelservice.llm.qwen-7b.yaml"] or b"")


def test_a_transition_of_ready_goes_out_at_once():
    world = World()
    world.look()
    world.wait(5)
    world.look(**fewer(3))
    world.wait(1)

    assert 2 == len(world.forge.pushed())


def test_silence_is_broken_by_a_heartbeat():
    """The status says when it was made; older than two heartbeats means nobody works."""
    world = World()
    world.look()
    for _ in range(61):
        world.wait(60)
        world.look()

    assert 2 == len(world.forge.pushed())
    assert ["status.yaml"] == list(world.forge.pushed()[1])


def test_a_loop_that_stands_still_sends_no_heartbeat():
    world = World()
    world.look()
    world.wait(4 * 3_600)

    assert 1 == len(world.forge.pushed())


def test_only_files_that_differ_are_committed():
    other = service(replace(QWEN, name="embed"))
    both = desired(service(), other)
    world = World()
    world.look(desired=both)
    world.wait(60)
    world.look(desired=both, **fewer(3))
    world.wait(60)

    assert {"status.yaml", "units/modelservice.llm.qwen-7b.yaml"} == set(world.forge.pushed()[1])


def test_the_file_of_a_unit_that_left_git_is_removed_and_foreign_files_stay():
    """Reliability c.3 row 71: only what is ours is touched."""
    forge = Forge()
    forge.refs[BRANCH] = {"README.md": b"mine", "units/notes.txt": b"mine too"}
    other = service(replace(QWEN, name="embed"))
    world = World(forge)
    world.look(desired=desired(service(), other))
    world.wait(60)
    world.look()
    world.wait(60)

    assert {
        "README.md",
        "status.yaml",
        "units/modelservice.llm.qwen-7b.yaml",
        "units/notes.txt",
    } == set(forge.refs[BRANCH])


def test_no_file_is_removed_while_the_set_of_units_is_not_known():
    other = service(replace(QWEN, name="embed"))
    world = World()
    world.look(desired=desired(service(), other))
    world.wait(60)
    world.look(desired=desired(service(), unit_set_known=False))
    world.wait(60)

    assert "units/modelservice.llm.embed.yaml" in world.forge.refs[BRANCH]


def test_a_file_that_a_person_broke_is_written_again():
    """Reliability c.3 row 71."""
    world = World()
    world.look()
    world.wait(60)
    world.forge.refs[BRANCH]["status.yaml"] = b"<<<<<<< mine"

    again = World(world.forge, world.clock)
    again.look()
    again.wait(60)

    assert "FleetStatus" == yaml.safe_load(world.forge.refs[BRANCH]["status.yaml"])["kind"]


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (Unreachable("no route to host", code="repository-unreachable"), "repository-unreachable"),
        (Refused("denied", code="repository-denied"), "repository-denied"),
        ("protected branch hook declined", "push-rejected"),
    ],
    ids=["unreachable", "denied", "rejected"],
)
def test_a_push_that_fails_is_told_and_tried_again(trouble, code):
    """Reliability c.3 row 69: never called a success, and nothing waits for it."""
    world = World()
    world.forge.trouble[BRANCH] = trouble
    made = world.look()
    world.wait(1)
    failing = world.publisher.written
    told = report(replace(next_pass(inputs(), made.memory), written=failing)).conditions[-1]
    world.forge.trouble.clear()
    world.wait(60)

    assert code == failing.code
    assert ("StatusWritten", "False") == (told.type, told.status)
    assert "" == world.publisher.written.code
    assert 1 == len(world.forge.pushed())


def test_retries_slow_down():
    world = World()
    world.forge.trouble[BRANCH] = "no"
    world.look()
    world.wait(3_600)

    # 5, 10, 20, 40, 80, 160 seconds, then every 300.
    assert 17 == world.counted.count("failed")


def test_the_last_pushed_commit_is_known():
    """cases.md row 99."""
    world = World()
    world.look()
    world.wait(0)

    assert ("stoker-status/prod-eu", f"{1:040}", NOW) == (
        world.publisher.written.branch,
        world.publisher.written.commit,
        world.publisher.written.pushed_at_ms,
    )


def test_a_branch_that_cannot_be_read_at_the_start_is_read_before_the_first_commit():
    world = World()
    world.publisher._branch.files = None
    world.forge.trouble["read"] = Unreachable("down", code="repository-unreachable")
    world.look()
    world.wait(1)
    failing = world.publisher.written.code
    world.forge.trouble.clear()
    world.wait(60)

    assert "repository-unreachable" == failing
    assert 1 == len(world.forge.pushed())


def test_the_commit_says_what_happened_and_starts_no_pipeline():
    world = World()
    world.look(**fewer(3))
    world.wait(0)

    message = world.forge.commits[0][2]
    subject, _, trailers = message.partition("\n")
    assert "status: Progressing 1 of 1, Synced main@9be0a17 [skip ci]" == subject
    assert "Stoker-Fleet: prod-eu\nStoker-Fleet-Id: c0ffee01\n" in trailers


def test_decisions_are_recorded_beside_the_status():
    world = World()
    world.look()
    world.wait(60)
    world.look(**fewer(3))
    world.wait(60)

    records = [p for p in world.forge.refs[RECORDS] if p.startswith("records/")]
    assert 2 == len(records)
    assert {"input.json", "plan.json", "snapshot.json"} <= set(world.forge.refs[RECORDS])


def test_a_data_ref_that_is_refused_never_hurts_the_status():
    world = World()
    world.forge.trouble[RECORDS] = "refs/stoker is not allowed here"
    world.look()
    world.wait(60)

    assert "" == world.publisher.written.code
    assert ["records-not-written"] == [f.code for f in world.publisher.warnings]
    world.forge.trouble.clear()
    world.look(**fewer(3))
    world.wait(60)
    assert () == world.publisher.warnings
    assert "input.json" in world.forge.refs[RECORDS]


def test_flush_publishes_at_once_and_says_whether_it_worked():
    """`run --once` and stop: the thread does it, with a deadline of its own (row 95)."""
    world = World()
    world.look(**fewer(3))
    assert world.publisher.flush(10.0)
    world.look(**fewer(2))
    assert world.publisher.flush(10.0)
    world.publisher.stop()

    assert 2 == len(world.forge.pushed())


def test_flush_of_nothing_new_commits_nothing():
    world = World()
    world.look()
    assert world.publisher.flush(10.0)
    world.look()
    assert world.publisher.flush(10.0)
    world.publisher.stop()

    assert 1 == len(world.forge.pushed())


def test_a_flush_asked_for_during_a_push_is_honoured_after_it():
    """The push in flight carries older documents; its end must not answer the flush."""
    world = World()
    good = world.forge.commit_files
    entered, leave = threading.Event(), threading.Event()

    def commit_files(*args: Any, **options: Any) -> PushResult:
        entered.set()
        assert leave.wait(10.0)
        return good(*args, **options)

    world.forge.commit_files = commit_files  # type: ignore[method-assign]
    world.look()
    world.publisher.start()
    assert entered.wait(10.0)
    world.look(**fewer(3))
    threading.Timer(0.05, leave.set).start()
    done = world.publisher.flush(10.0)
    world.publisher.stop()

    assert done
    assert b"ready: 3" in world.forge.refs[BRANCH]["units/modelservice.llm.qwen-7b.yaml"]


def test_flush_gives_up_at_its_deadline():
    world = World()
    leave = threading.Event()

    def commit_files(*args: Any, **options: Any) -> PushResult:
        leave.wait(10.0)
        return PushResult("", pushed=False)

    world.forge.commit_files = commit_files  # type: ignore[method-assign]
    world.look()
    done = world.publisher.flush(0.05)
    leave.set()
    world.publisher.stop()

    assert not done


def test_flush_before_any_report_has_nothing_to_do():
    world = World()

    assert world.publisher.flush(10.0)
    world.publisher.stop()


def test_flush_of_a_branch_that_refuses_us_says_no():
    world = World()
    world.forge.trouble[BRANCH] = "protected"
    world.look()

    assert not world.publisher.flush(10.0)
    world.publisher.stop()


def test_a_bug_does_not_end_the_thread():
    world = World()
    good = world.forge.commit_files
    broken = threading.Event()

    def commit_files(*args: Any, **options: Any) -> PushResult:
        if not broken.is_set():
            broken.set()
            raise ZeroDivisionError
        return good(*args, **options)

    world.forge.commit_files = commit_files  # type: ignore[method-assign]
    world.look()
    first = world.publisher.flush(10.0)
    second = world.publisher.flush(10.0)
    alive = world.publisher.alive
    world.publisher.stop()

    assert (False, True, True) == (first, second, alive)
    assert "bug" in world.counted


@given(
    published=st.sampled_from(["a", "b"]),
    urgent=st.booleans(),
    committed=st.none() | st.floats(0, 1e6),
    retry=st.none() | st.floats(0, 1e6),
)
def test_no_commit_is_due_without_a_newer_report(published, urgent, committed, retry):
    state = PublishState(
        published, "a", urgent, newer=False, committed_at=committed, retry_at=retry
    )

    assert due_at(state, 60, 3600) is None


@given(committed=st.floats(0, 1e6), urgent=st.booleans(), retry=st.none() | st.floats(0, 1e6))
def test_commits_are_never_closer_than_a_second(committed, urgent, retry):
    state = PublishState("a", "b", urgent, newer=True, committed_at=committed, retry_at=retry)
    due = due_at(state, 60, 3600)

    assert due is not None
    assert due >= committed + 1
    assert retry is None or due >= retry


def test_back_off_starts_over_after_a_success():
    back_off = BackOff()
    waits = [back_off.failed() for _ in range(8)]
    back_off.worked()

    assert [5, 10, 20, 40, 80, 160, 300, 300] == waits
    assert 5 == back_off.failed()


def test_a_fleet_without_a_readable_file_still_reports():
    world = World()
    world.look(
        desired=None, snapshot=None, plan=None, changes=None, live=None, failure=finding("schema")
    )
    world.wait(0)

    status = yaml.safe_load(world.forge.refs[BRANCH]["status.yaml"])
    assert "prod-eu" == status["metadata"]["name"]
    assert ["schema"] == [error["code"] for error in status["errors"]]


def test_the_previous_status_of_an_empty_branch_is_nothing():
    assert PreviousStatus() == World().memory

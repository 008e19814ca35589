"""Two controllers of one fleet on one cluster: one writes, the other is ready to.

Each is put together as `stoker run` does, behind a gate that asks its lease. Standing still is
what SIGSTOP does: nothing of that process goes on, in none of its threads, while time does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from stoker.cli.controller import _catch_up, build_work
from stoker.cli.session import Session, Target
from stoker.cli.world import World
from stoker.git import GitRepo
from stoker.kube.client import Client
from stoker.kube.gate import Gated, WriteGate, is_write
from stoker.kube.transport import Request, Response
from stoker.loop.keeper import LeaseKeeper
from stoker.loop.lease import Lease
from stoker.loop.loop import PassAborted, PassRequest
from stoker.loop.step import PassKind
from stoker.metrics import Metrics
from stoker.model.outcome import Result
from stoker.render import Renderer
from stories.files import a_config_map, a_service, the_fleet
from stories.looks import data, fleet_status

QUIET = 20
"""Seconds of silence: longer than any lease lasts."""


class Contender:
    """A controller process. `frozen_at` is the write before which it stands still for a while."""

    def __init__(
        self, world: World, folder: Path, name: str, renderer: Renderer, *, gated: bool = True
    ) -> None:
        self.url = "https://127.0.0.1"
        self.world = world
        self.written: list[str] = []
        self.frozen_at = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self.following = False
        self.term = 0
        self._lock = threading.RLock()
        self._count = 0
        gate = WriteGate()
        repo = GitRepo(
            str(world.bare),
            "main",
            folder / name,
            clock=world.clock,
            allow_file=True,
            before_push=gate.check,
        )
        self.session = Session(
            repo,
            Target(fleet_path="clusters/local/fleet.yaml"),
            clock=world.clock,
            cluster=Client(Gated(self, gate), user_agent="stoker"),
            render_workers=1,
            shared_renderer=renderer,
            load_probe=lambda _address: None,
            gate=gate,
        )
        self.work = build_work(self.session, repo.fetch(), Metrics())
        self.lease = Lease(
            Client(world.server),
            world.clock,
            namespace="default",
            name="stoker-local",
            holder=name,
        )
        self.keeper = LeaseKeeper(self.lease)
        if gated:
            gate.guard(self.lease.admit, self.lease.timing.write_seconds)
            self.work.parts.checkpoint = self._checkpoint

    def live(self) -> None:
        """What its threads do at one instant: renew, then warm up or make a pass and publish."""
        self.keeper.turn()
        revision = self.session.repo.fetch()
        self.work.parts.observer.refresh()
        if not self.lease.held:
            self.following = True
            self.work.warm(revision)
            return
        if self.following or self.term != self.lease.term:
            self.following = False
            _catch_up(self.work)
        self.term = self.lease.term
        self.lease.begin(self.term)
        with suppress(PassAborted):
            self.work.run(PassRequest(PassKind.FULL, revision))
        self.work.publisher.turn()

    def _checkpoint(self) -> None:
        if not self.following and not self.lease.admits:
            raise PassAborted("the lease is lost")

    # --------------------------------------------------------------- as a Transport
    def send(self, request: Request) -> Response:
        with self._lock:
            if is_write(request):
                self._count += 1
                if self._count == self.frozen_at:
                    self.meanwhile()
            if request.before_bytes is not None:
                request.before_bytes()
            if is_write(request):
                self.written.append(f"{request.method} {request.path}")
            return self.world.server.send(request)

    def stream(self, request: Request) -> Iterator[bytes]:
        return self.world.server.stream(request)

    def close(self) -> None:
        """Nothing: the server outlives it."""


Contest = tuple[World, Contender, Contender]
FILES = the_fleet(a_service(replicas=2), side={"side.yaml": a_config_map("side", {"key": "old"})})
NEWS = the_fleet(
    a_service(replicas=2),
    side={"side.yaml": a_config_map("side", {"key": "new"})},
    more={f"{name}.yaml": a_config_map(name, {"key": "new"}) for name in ("m1", "m2", "m3")},
)


@pytest.fixture
def contest(new_world, tmp_path: Path, renderer: Renderer) -> Contest:
    """A fleet at rest; one leads, the other has seen that."""
    world = new_world()
    world.commit("First", FILES)
    one, two = (Contender(world, tmp_path, name, renderer) for name in ("one", "two"))
    run(world, 10, one, two)
    return world, one, two


def run(world: World, seconds: int, *alive: Contender) -> None:
    for _ in range(seconds):
        world.clock.wait(1)
        world.cluster_step()
        for contender in alive:
            contender.live()


def settle(world: World, *alive: Contender) -> None:
    """Until nothing was written for five seconds."""
    for _ in range(60):
        before = world.memory.resource_version, [len(c.written) for c in alive]
        run(world, 5, *alive)
        if before[1] == [len(c.written) for c in alive] and not world.is_busy:
            return
    raise TimeoutError("no rest")


def test_one_writes_and_the_other_only_looks(contest):
    world, one, two = contest

    assert one.written
    assert [] == two.written
    assert {"key": "old"} == data(world, "side")
    assert two.work.state.desired is not None


def test_a_new_leader_has_the_fleet_rendered_already(contest):
    """Issue B: its caches are warm, for it watches while it waits."""
    world, one, two = contest
    settle(world, one, two)
    before = two.work.parts.renderer.jobs
    run(world, QUIET, two)

    assert two.lease.held
    assert before == two.work.parts.renderer.jobs


@pytest.mark.parametrize("number", [1, 2, 5], ids=lambda n: f"before write {n}")
def test_who_stood_still_within_a_pass_writes_nothing_after_it(contest, number):
    """a.6 L3: research c.1 row 7, I1: its threads go on where they stood, on what they believed."""
    world, one, two = contest
    settle(world, one, two)
    world.commit("News", NEWS)
    one.written.clear()
    one._count, one.frozen_at = 0, number
    one.meanwhile = lambda: run(world, QUIET, two)
    one.live()

    assert number - 1 == len(one.written), "it stood still, and then wrote nothing more"
    assert two.lease.held
    assert {"key": "new"} == data(world, "side")
    run(world, 5, one, two)
    assert number - 1 == len(one.written)
    settle(world, two)
    status = fleet_status(world)
    assert status["lastAttemptedRevision"] == status["lastAppliedRevision"]


def test_who_leads_again_reads_everything_anew(contest):
    """What it kept of history, status and mirrors is what stood before another worked."""
    world, one, two = contest
    settle(world, one, two)
    run(world, QUIET, two)
    world.commit("News", NEWS)
    settle(world, two)
    two.lease.release()
    one.written.clear()
    run(world, 5, one)

    assert one.lease.held
    assert [] == [write for write in one.written if "/configmaps/" in write and "llm" in write]
    assert {"key": "new"} == data(world, "side")


def test_a_status_that_waited_is_never_pushed_by_who_stood_still(contest):
    """I8, I12: it tells of a cluster that another has changed since."""
    world, one, two = contest
    settle(world, one, two)
    world.commit("News", NEWS)
    one.keeper.turn()
    one.work.parts.observer.refresh()
    one.work.run(PassRequest(PassKind.FULL, one.session.repo.fetch()))
    run(world, QUIET, two)
    before = world.status_commits()
    for _ in range(3):
        one.work.publisher.turn()
        world.clock.wait(61)

    assert before == world.status_commits()
    assert "lease-lost" == one.work.publisher.written.code


def test_a_stale_leader_without_a_lease_stops_at_its_first_union(new_world, tmp_path, renderer):
    """Design section 6: shards carry the resourceVersion; fencing that needs no clock at all."""
    world = new_world()
    world.commit("First", FILES)
    one, two = (Contender(world, tmp_path, name, renderer, gated=False) for name in ("one", "two"))
    run(world, 10, one)
    world.commit("News", NEWS)
    run(world, 1)
    one.written.clear()
    one._count, one.frozen_at = 0, 1  # the union is what it writes first

    def meanwhile() -> None:
        world.commit("Later", {**NEWS, **the_fleet(a_service(replicas=1))})
        for _ in range(3):
            run(world, QUIET, two)

    one.meanwhile = meanwhile
    before = len(two.written)
    one.lease._standing = None
    one.work.parts.observer.refresh()
    one.work.run(PassRequest(PassKind.FULL, one.session.repo.fetch()))

    assert len(two.written) > before
    assert 1 == len([write for write in one.written if "stoker.dev" not in write])
    assert one.work.last is not None
    assert one.work.last.failure is not None
    assert "conflict" == one.work.last.failure.code
    assert one.work.last.outcome is None or not any(
        item.result is Result.CREATED
        for unit in one.work.last.outcome.units
        for item in unit.objects
    )

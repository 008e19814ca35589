"""Rounds of a reporter: what ends up in its NodeState, and what it says when it cannot write."""

from __future__ import annotations

import threading

import httpx
import pytest

from stoker.clock import SystemClock
from stoker.model.times import rfc3339
from stoker.node.gpu import Gpus
from stoker.node.notice import NodeNotice, NoticeKind, Told, Unknown
from stoker.node.reporter import Reporter, ReporterSettings
from stoker.node.state_writer import HEARTBEAT_SECONDS
from stoker.sim.clock import DEFAULT_START_MS as T0
from stoker.sim.engine import Engine
from unit.node.fake_nvml import FakeNvml, Gpu
from unit.node.reporter_builders import REF, Cloud, World
from unit.node.test_cache import A, Hub

NOTICE = NodeNotice(NoticeKind.SPOT, "azure", "id-1", T0, T0 + 30_000)


@pytest.fixture
def world():
    return World()


def reporter(world, nvml=None, cloud=None, holder="first", pods=None, **settings):
    gpus = Gpus(lambda: nvml if nvml is not None else "no driver")
    told = ReporterSettings(**{"interval_seconds": 15.0, "scrape_seconds": 5.0, **settings})
    return Reporter(told, world.writer(holder), world.clock, gpus=gpus, source=cloud, pods=pods)


def generate(engine, tokens):
    body = {"model": "model", "prompt": "hello", "max_tokens": tokens}
    httpx.post(f"http://{engine.address}/v1/completions", json=body, timeout=20)


def test_a_machine_where_nothing_can_be_measured_reports_that_and_nothing_else(world):
    working = reporter(world)
    working.round()

    assert world.status().keys() == {"lastReportTime", "reporter", "unknown"}
    assert world.status()["unknown"] == [{"what": "gpus", "why": "no driver"}]
    assert working.parts() == (
        True,
        {
            "state": "written",
            "notices": "not asked",
            "gpus": "no driver",
            "engines": "answered",
            "cache": "read",
        },
    )


def test_tokens_and_joules_of_one_window_become_tokens_per_joule(world):
    gpu = Gpu(millijoules=1000)
    with Engine() as engine:
        working = reporter(world, FakeNvml(gpu), engines=(engine.address,))
        working.round()
        first = world.status()
        generate(engine, 8)
        gpu.millijoules += 4000
        world.clock.advance(15_000)
        working.round()

    assert "tokensPerJoule" not in first, "the first round measures nothing"
    assert world.status()["tokensPerJoule"] == 2.0
    assert world.status()["tokensPerJouleObservedAt"] == rfc3339(T0 + 15_000)
    assert world.status()["requestsRunning"] == 0


def test_a_round_with_a_gap_is_no_baseline(world):
    """Energy that was used while an engine could not be asked belongs to no known tokens."""
    gpu = Gpu(millijoules=1000)
    with Engine() as engine, Engine() as other:
        both = (engine.address, other.address)
        working = reporter(world, FakeNvml(gpu), engines=both, scrape_seconds=5.0)
        working.round()
        gpu.millijoules += 1000
        generate(engine, 4)
        working.round()
        measured = world.status().get("tokensPerJoule")
    gpu.millijoules += 1000
    working.round()

    assert measured == 4.0
    assert "tokensPerJoule" not in world.status()
    assert [part["what"] for part in world.status()["unknown"]] == ["engines"]


def test_the_cache_is_told_and_is_walked_only_now_and_then(world, tmp_path):
    hub = Hub(tmp_path)
    working = reporter(world, cache=tmp_path)
    working.round()
    empty = world.status()["cache"]
    hub.whole()
    working.round()
    still = world.status()["cache"]
    world.clock.advance(60_000)
    working.round()

    assert (empty, still) == ([], [])
    assert world.status()["cache"] == [
        {"uri": "hf://org/tiny", "revision": A, "bytes": 10, "complete": True}
    ]


def test_a_notice_is_written_and_taken_back_when_the_cloud_does(world):
    cloud = Cloud(Told(NOTICE))
    working = reporter(world, cloud=cloud)
    working.notices.look()
    working.round()
    told = world.status()["notice"]
    cloud.answer = Unknown("hung")
    working.notices.look()
    working.round()
    held = world.status()
    cloud.answer = Told()
    working.notices.look()
    working.round()

    assert (told["kind"], told["deadline"]) == ("spot-interruption", rfc3339(T0 + 30_000))
    assert held["notice"] == told, "an unanswered question takes nothing back"
    assert {"what": "notice", "why": "hung"} in held["unknown"]
    assert "notice" not in world.status()
    assert "spot" not in world.status()


def test_a_notice_is_told_without_looking_at_anything_else(world):
    cloud = Cloud()
    working = reporter(world, cloud=cloud, engines=("127.0.0.1:1",))
    working.round()
    world.writes()
    cloud.answer = Told(NOTICE)
    working.notices.look()
    working.tell()

    assert world.status()["notice"]["id"] == "id-1"
    assert len(world.writes()) == 1


def test_an_event_is_acknowledged_once_and_only_when_the_engines_that_ran_are_gone(world):
    """Earlier it would cut off the answers of a replica that drains."""
    cloud = Cloud(Told(NOTICE))
    with Engine() as engine:
        working = reporter(world, cloud=cloud, engines=(engine.address,))
        working.notices.look()
        working.round()
        running = list(cloud.acknowledged)
    working.round()
    working.round()

    assert (running, cloud.acknowledged) == ([], [NOTICE])


@pytest.mark.parametrize("engines", [(), ("127.0.0.1:1",)], ids=["none named", "none ever seen"])
def test_a_node_whose_engines_were_never_seen_acknowledges_nothing(world, engines):
    cloud = Cloud(Told(NOTICE))
    working = reporter(world, cloud=cloud, engines=engines)
    working.notices.look()
    working.round()

    assert cloud.acknowledged == []


def test_an_api_server_that_is_away_is_told_and_tried_again(world):
    working = reporter(world)
    world.wire.cut = True
    working.round()
    away = working.parts()
    world.wire.cut = False
    working.round()

    assert away[0] is False
    assert away[1]["state"] == "unreachable"
    assert working.parts()[0] is True
    assert world.status()["reporter"] == {"holder": "first"}


def test_a_second_reporter_is_not_ready_and_says_for_whom_it_stands_back(world):
    reporter(world, holder="first").round()
    second = reporter(world, holder="second")
    second.round()

    assert second.parts()[0] is False
    assert second.parts()[1]["state"] == "first reports for this node"
    assert world.status()["reporter"] == {"holder": "first"}


def test_a_quiet_node_writes_heartbeats_and_nothing_more(world):
    working = reporter(world, FakeNvml(Gpu()))
    rounds = 9
    for _ in range(rounds):
        working.round()
        world.clock.advance(15_000)

    patches = [line for line in world.writes() if line.startswith("PATCH")]
    assert len(patches) == 1 + (rounds - 1) * 15 // int(HEARTBEAT_SECONDS)


def test_a_bug_of_ours_ends_no_round(world):
    class Broken(Gpus):
        def read(self, at_seconds=None):
            raise RuntimeError("a bug")

    working = Reporter(ReporterSettings(), world.writer(), world.clock, gpus=Broken())
    working.round()

    assert world.status()["reporter"] == {"holder": "first"}


@pytest.mark.parametrize(("asked", "expected"), [(5, 5), (None, 15.0)])
def test_the_node_state_may_ask_for_another_interval(world, asked, expected):
    """semantics.md 1.1: spec.reportIntervalSeconds."""
    working = reporter(world)
    working.round()
    spec = {"spec": {"reportIntervalSeconds": asked}}
    world.cluster.patch(REF, "merge", spec, manager="hand")
    world.clock.advance(60_000)
    working.round()

    assert working.interval_seconds == expected


def test_rounds_that_do_not_end_are_unhealthy(world):
    working = reporter(world)
    working.round()
    fresh = working.healthy()
    world.clock.advance(3_600_000)

    assert (fresh, working.healthy()) == (True, False)


# ------------------------------------------------------------------------ threads


def test_it_runs_tells_a_notice_at_once_and_gives_the_object_up_at_the_end(world):
    """The interval is an hour: only the notice's own call can have written it."""
    cloud = Cloud()
    told = ReporterSettings(interval_seconds=3600)
    working = Reporter(told, world.writer(), SystemClock(), gpus=Gpus(lambda: "-"), source=cloud)
    stopped = threading.Event()
    thread = threading.Thread(target=working.run, args=(stopped,))
    thread.start()
    cloud.answer = Told(NOTICE)
    for _ in range(1000):
        if working.notices.standing.notice and "spot" in _status(world):
            break
        SystemClock().wait(0.01)
    working.stop(stopped)
    thread.join(10)

    assert not thread.is_alive()
    assert world.status()["notice"]["id"] == "id-1"
    assert "reporter" not in world.status()


def test_a_poller_that_crashes_is_told_and_asks_again(world):
    class Crashing(Cloud):
        def poll(self):
            if not self.acknowledged:
                self.acknowledged.append(NOTICE)
                raise RuntimeError("a bug")
            return super().poll()

    working = reporter(world, cloud=Crashing(Told(NOTICE)))
    seen = threading.Event()
    working.notices._changed = seen.set
    working.notices.start()
    answered = seen.wait(10)
    working.notices.stop()

    assert answered
    assert working.notices.standing.notice == NOTICE


def _status(world):
    from stoker.kube.errors import NotFound

    try:
        return world.status()
    except NotFound:
        return {}

"""A notice is answered once, wherever the controller dies and whatever answers are lost.

cases.md row 137: a replacement was launched twice after a crash between the mark and the launch,
or while a cache did not show it yet.
"""

from __future__ import annotations

import pytest

from stoker.cli.world import World, WorldNode
from stoker.errors import Unreachable
from stoker.kube.transport import Request, Response, Transport
from stories.crash.rig import Crashes, Point, Rig, When
from stories.files import a_service, the_fleet
from stories.looks import is_clean, rest

NODES = (WorldNode("gpu-1"), WorldNode("gpu-2"), WorldNode("gpu-3"))
SERVICE = the_fleet(a_service("tiny", replicas=1))


@pytest.fixture
def noticed(settled):
    """A world at rest whose only replica is on a node that goes in two minutes."""

    def make(wrap) -> tuple[World, int]:
        world = settled(SERVICE, *NODES, wrap=wrap)
        now_ms = world.clock.now_ms()
        world.kubelet.node_states.give_notice(
            "gpu-1", "spot", at_ms=now_ms, deadline_ms=now_ms + 120_000
        )
        return world, len(world.memory.audit)

    return make


def launches(world: World, since: int) -> list[str]:
    """Deployments that were created since then, dry runs left out."""
    return [
        entry.path.split("?")[0]
        for entry in world.memory.audit[since:]
        if entry.status == 201 and "/deployments/" in entry.path and "dryRun" not in entry.path
    ]


def moved_once(world: World, since: int) -> None:
    """One successor was launched, it serves on another node, and nothing else is left."""
    pods = world.ready_pods()

    assert len(set(launches(world, since))) == len(launches(world, since)) == 1
    assert ["gpu-2"] == [pod["spec"]["nodeName"] for pod in pods]
    assert 1 == len(world.objects("apps", "Deployment", "llm"))


def writes_to_the_launch(noticed) -> list[int]:
    """The numbers of the calls that write, up to the launch, when nobody dies."""
    crashes = Crashes()
    world, since = noticed(crashes.transport)
    crashes.arm()
    Rig(world, crashes, lambda: None).rest(seconds=120)
    moved_once(world, since)
    numbers = [number for number, call in enumerate(crashes.calls) if call.writes]
    launch = next(n for n in numbers if "/deployments/" in crashes.calls[n].text)
    return [number for number in numbers if number <= launch]


@pytest.mark.timeout(300)
def test_a_death_around_the_launch_launches_exactly_one_successor(noticed):
    """cases.md row 137: before the mark and the launch, and after each with its answer lost."""
    numbers = writes_to_the_launch(noticed)
    assert len(numbers) > 1, "the mark in the inventory comes first"
    for number in numbers[-2:]:
        for when in When:
            crashes = Crashes()
            world, since = noticed(crashes.transport)
            crashes.arm(Point(number, when))
            Rig(world, crashes, lambda: None).rest(seconds=120)

            assert 1 == len(crashes.deaths), (number, when)
            moved_once(world, since)
            assert is_clean(world)


class LostAnswers:
    """Carries out writes to Deployments and loses the answers of the first `most`."""

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self, inner: Transport) -> Transport:
        return _Losing(inner, self)


class _Losing:
    def __init__(self, inner: Transport, losses: LostAnswers) -> None:
        self.url = inner.url
        self._inner, self._losses = inner, losses
        self.stream, self.close = inner.stream, lambda: None

    def send(self, request: Request) -> Response:
        answer = self._inner.send(request)
        writes = request.method != "GET" and ("dryRun", "All") not in request.query
        if writes and "/deployments" in request.path and self._losses.left:
            self._losses.left -= 1
            raise Unreachable("no answer")
        return answer


@pytest.mark.parametrize("most", [1, 3])
def test_an_answer_that_is_lost_launches_nothing_twice(noticed, most):
    """cases.md row 137: what a cache does not show yet is unknown, and read before the next word."""
    losses = LostAnswers(0)
    world, since = noticed(losses)
    losses.left = most
    rest(world)

    assert 0 == losses.left
    moved_once(world, since)
    assert is_clean(world)

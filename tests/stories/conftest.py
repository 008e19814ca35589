"""Worlds for stories: each ends with its test, whatever happened."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stoker.cli.app import run
from stoker.cli.world import World, WorldNode
from stoker.cli.world_repository import Polled
from stoker.kube.client import Client
from stoker.render import Renderer
from stories.faults import Faults
from stories.files import QUICK, the_village
from stories.looks import a_pass, rest
from stories.twins import twin_of

NewWorld = Callable[..., World]


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    """One render child for all stories: starting one takes longer than most of them."""
    with Renderer(1) as shared:
        yield shared


@pytest.fixture(scope="session")
def played() -> Iterator[dict[str, World]]:
    """Worlds at rest, by what they were made of: each is played once and copied from then on."""
    worlds: dict[str, World] = {}
    yield worlds
    for world in worlds.values():
        world.close()


def _small(folder: Path, shared: Renderer, *nodes: WorldNode, **options: Any) -> World:
    plain = tuple(WorldNode(f"gpu-{number}") for number in (1, 2, 3))
    usual: dict[str, Any] = {"times": QUICK, "renderer": shared}
    if "ref" not in options:
        usual["wrap_repo"] = Polled
    return World(folder, nodes or plain, **{**usual, **options})


@pytest.fixture
def new_world(tmp_path: Path, renderer: Renderer) -> Iterator[NewWorld]:
    """Make a world of three nodes with a GPU each, or as told; closed after the test."""
    made: list[World] = []
    numbers = itertools.count(1)

    def make(*nodes: WorldNode, **options: Any) -> World:
        folder = tmp_path / f"world-{next(numbers)}"
        folder.mkdir()
        made.append(_small(folder, renderer, *nodes, **options))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def faults() -> Faults:
    """What stands between the controller of `world` and its API server."""
    return Faults()


@pytest.fixture
def settled(
    new_world: NewWorld,
    renderer: Renderer,
    faults: Faults,
    played: dict[str, World],
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
) -> Iterator[Callable[..., World]]:
    """Make a world with these files (and nodes, and options), at rest, its controller running.

    The controller has begun anew at rest; where a test gives its own `wrap_repo`, and looks
    at what the controller asked Git for, the world is played under its eyes.
    """
    made: list[World] = []

    def make(files: Mapping[str, str], *nodes: WorldNode, **options: Any) -> World:
        if "wrap_repo" in options:
            world = new_world(*nodes, **{"wrap": faults, **options})
            world.commit("First", files)
            rest(world)
            return world
        wrap = options.pop("wrap", faults)
        key = repr((sorted(files.items()), nodes, sorted(options.items())))
        if key not in played:
            world = _small(tmp_path_factory.mktemp("played"), renderer, *nodes, **options)
            world.commit("First", files)
            rest(world)
            world.stop_controller()
            played[key] = world
        folder = tmp_path / f"settled-{len(made)}"
        folder.mkdir()
        made.append(twin_of(played[key], folder, wrap=wrap))
        a_pass(made[-1])
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(settled: Callable[..., World]) -> World:
    """`the_village`, at rest on 3 nodes, all of whose GPUs it takes."""
    return settled(the_village())


class _Clock:
    """The world's clock: waiting for it moves the world on, as time does."""

    def __init__(self, world) -> None:
        self._world = world
        self.now_ms, self.monotonic = world.clock.now_ms, world.clock.monotonic

    def wait(self, seconds: float) -> None:
        self._world.advance(seconds, passes=False)


@pytest.fixture
def leave(monkeypatch, capsys):
    """Run `stoker uninstall` on a world whose controller has stopped: code, stdout, stderr."""

    def command(world, *arguments: str, faults: Faults | None = None) -> tuple[int, str, str]:
        world.stop_controller()
        wrap = faults or Faults()
        monkeypatch.setattr(
            "stoker.cli.session.connect", lambda *_a, **_k: Client(wrap(world.server))
        )
        monkeypatch.setattr("stoker.clock.SystemClock", lambda: _Clock(world))
        monkeypatch.setattr("stoker.cli.session.probe_load", lambda _address: 0)
        capsys.readouterr()
        code = run(["uninstall", "--path", str(world.work_tree), *arguments])
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return command

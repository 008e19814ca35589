"""Worlds for stories: each ends with its test, whatever happened."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stoker.cli.world import World, WorldNode
from stoker.render import Renderer
from stories.faults import Faults
from stories.files import QUICK, the_village
from stories.looks import rest

NewWorld = Callable[..., World]


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    """One render child for all stories: starting one takes longer than most of them."""
    with Renderer(1) as shared:
        yield shared


@pytest.fixture
def new_world(tmp_path: Path, renderer: Renderer) -> Iterator[NewWorld]:
    """Make a world of three nodes with a GPU each, or as told; closed after the test."""
    made: list[World] = []
    numbers = itertools.count(1)

    def make(*nodes: WorldNode, **options: Any) -> World:
        folder = tmp_path / f"world-{next(numbers)}"
        folder.mkdir()
        plain = tuple(WorldNode(f"gpu-{number}") for number in (1, 2, 3))
        made.append(
            World(folder, nodes or plain, **{"times": QUICK, "renderer": renderer, **options})
        )
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def faults() -> Faults:
    """What stands between the controller of `world` and its API server."""
    return Faults()


@pytest.fixture
def world(new_world: NewWorld, faults: Faults) -> World:
    """`the_village`, at rest on 3 nodes, all of whose GPUs it takes."""
    world = new_world(wrap=faults)
    world.commit("First", the_village())
    world.settle()
    return world


@pytest.fixture
def settled(new_world: NewWorld, faults: Faults) -> Callable[..., World]:
    """Make a world with these files (and nodes, and options), at rest."""

    def make(files: Mapping[str, str], *nodes: WorldNode, **options: Any) -> World:
        world = new_world(*nodes, **{"wrap": faults, **options})
        world.commit("First", files)
        rest(world)
        return world

    return make

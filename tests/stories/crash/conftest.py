"""Lives for crash tests: each ends with its test, whatever happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.render import Renderer
from stories.crash.life import Life, NewLife


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    """Render children that all controllers of a module share."""
    with Renderer(1) as made:
        yield made


@pytest.fixture
def new_life(tmp_path: Path, renderer: Renderer) -> Iterator[NewLife]:
    """Make a life on so many nodes."""
    lives: list[Life] = []

    def make(nodes: int) -> Life:
        folder = tmp_path / f"life-{len(lives)}"
        folder.mkdir()
        lives.append(Life(folder, nodes, renderer))
        return lives[-1]

    yield make
    for life in lives:
        life.world.close()

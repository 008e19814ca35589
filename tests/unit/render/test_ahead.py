"""Rendering ahead of the pass: the same results, once, and never two threads at the children."""

from __future__ import annotations

import threading

import pytest

from stoker.errors import Unreachable
from stoker.model.fleet import Bundle
from stoker.render import Renderer, shape, shape_ahead
from stoker.render.shape import _shapes
from unit.render.builders import FLEET_ID, FakeRepo, desired, unit

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\ndata: {{a: b}}\n"


@pytest.fixture
def renderer():
    with Renderer(1) as made:
        yield made


def bundle(repo, name):
    text = CONFIG.format(name)
    return unit(Bundle(manifests=(repo.add(f"{name}/a.yaml", text),)), name, path=f"{name}.yaml")


class Away(FakeRepo):
    """A repository that cannot be read."""

    def read(self, blobs):
        raise Unreachable("the repository is away")


def test_what_is_rendered_ahead_is_not_rendered_again(renderer):
    repo = FakeRepo()
    wanted = desired(bundle(repo, "a"), bundle(repo, "b"))

    shape_ahead(wanted, repo, renderer)
    found = shape(wanted, repo, renderer, FLEET_ID)

    assert (1, 2) == (repo.reads, renderer.jobs)
    assert ["a", "b"] == sorted(n.objects[0].ref.name for n in found.neutral.values())


def test_the_pass_renders_what_it_wants_whatever_was_begun(renderer):
    """Between the two, a gate may put a unit back to what it was."""
    repo = FakeRepo()
    newest, held = desired(bundle(repo, "a")), desired(bundle(repo, "b"))

    shape_ahead(newest, repo, renderer)
    found = shape(held, repo, renderer, FLEET_ID)

    assert found.neutral == shape(held, repo, renderer, FLEET_ID).neutral
    assert ["b"] == [n.objects[0].ref.name for n in found.neutral.values()]


def test_jobs_count_in_the_pass_that_waits_for_them(renderer):
    """The log of a pass says how many units it rendered, whenever that began."""
    repo = FakeRepo()
    done, go_on = threading.Event(), threading.Event()

    def act(checkpoint):
        _shapes(desired(bundle(repo, "a")), repo, renderer, checkpoint)
        done.set()
        go_on.wait()

    renderer.begin(act)
    done.wait()
    before = renderer.jobs
    go_on.set()
    renderer.finish()

    assert (0, 1) == (before, renderer.jobs)


def test_what_fails_ahead_is_said_by_the_pass(renderer):
    repo = FakeRepo()
    wanted = desired(bundle(repo, "a"))

    shape_ahead(wanted, Away(), renderer)
    with pytest.raises(Unreachable):
        shape(wanted, Away(), renderer, FLEET_ID)

    assert not shape(wanted, repo, renderer, FLEET_ID).findings


def test_a_bug_ahead_leaves_the_pass_as_it_is(renderer):
    def act(_checkpoint):
        raise KeyError("a bug")

    renderer.begin(act)
    repo = FakeRepo()

    assert not shape(desired(bundle(repo, "a")), repo, renderer, FLEET_ID).findings


def test_close_ends_what_nobody_waits_for():
    """A pass that stops early must not render to the end first."""
    turns = threading.Event()

    def act(checkpoint):
        while True:
            checkpoint()
            turns.set()

    with Renderer(1) as renderer:
        renderer.begin(act)
        turns.wait()

    assert "render" not in {thread.name for thread in threading.enumerate()}

"""A bad change: what history tells of it, and the way back by a branch that is merged."""

from __future__ import annotations

import subprocess

import pytest

from stoker.cli.app import run
from stoker.cli.world import World, WorldNode
from stoker.sim.kubelet_run import FaultKind, PodFault
from stories.files import NEW, OLD, a_patient_fleet, a_service, the_fleet
from stories.looks import is_clean, pod_uids, rest, revisions, serving, watch

BAD = "registry.example/vllm:broken"
NODES = tuple(WorldNode(f"gpu-{number}") for number in range(1, 5))


def tiny(revision: str = OLD, **spec) -> dict[str, str]:
    service = a_service(replicas=2, revision=revision, **spec)
    return the_fleet(service, fleet=a_patient_fleet())


def git(world: World, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=world.work_tree, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def command(world: World, capsys: pytest.CaptureFixture[str], *arguments: str):
    """Exit code and what was printed."""
    git(world, "fetch", "-q", "origin")
    capsys.readouterr()
    code = run([*arguments, "--path", str(world.work_tree)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_bad_change_is_told_and_taken_back(settled, capsys):
    world = settled(tiny(NEW), *NODES)
    good = git(world, "rev-parse", "HEAD")
    world.kubelet.faults.append(PodFault(FaultKind.IMAGE_PULL, image=BAD))
    before = pod_uids(world)
    bad = world.commit("A bad image", tiny(NEW, engine={"type": "vllm", "image": BAD}))
    watch(world, 40, lambda: None)

    code, out, _ = command(world, capsys, "history", "tiny")
    assert 0 == code
    assert "UpdateFailed" in out.splitlines()[1]
    assert f"blocked {bad[:7]}" in out
    code, out, _ = command(world, capsys, "history")
    assert [bad[:7], good[:7]] == [line.split()[0] for line in out.splitlines()[1:3]]

    code, out, _ = command(world, capsys, "rollback", "tiny", "--to", good)
    branch = out.split()[0]
    assert (0, f"rollback/tiny-{good[:7]}") == (code, branch)
    assert bad == git(world, "rev-parse", "HEAD")
    git(world, "merge", "-q", "--ff-only", branch)
    git(world, "push", "-q", "origin", "main")
    rest(world)

    assert before == pod_uids(world)
    assert 2 == len(serving(world))
    assert {"b"} == {found[0] for found in revisions(world)}
    assert is_clean(world)


def test_without_the_status_branch_history_says_what_to_fetch(settled, capsys):
    world = settled(tiny(), *NODES[:2])
    git(world, "update-ref", "-d", "refs/remotes/origin/stoker-status/local")
    capsys.readouterr()
    code = run(["history", "tiny", "--path", str(world.work_tree)])

    assert 3 == code
    assert "git fetch origin" in capsys.readouterr().err

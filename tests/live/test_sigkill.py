"""The process is killed at requests that the audit log shows, and the fleet comes out right.

Research c.1 rows 1 to 4 on the real API server: SIGKILL has no mercy with threads, children,
sockets or a Git mirror that is half written. The phases and what must be true after each are
those of the crash stories.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from live.running import CLOCK, Audit, Running, gone, is_write, until
from stoker.cli.world import World, WorldNode
from stoker.sim.controlplane import ControlPlane
from stories.crash.foreign import plant
from stories.crash.life import AT_ONCE
from stories.crash.oracle import (
    BRANCH,
    NOTES,
    before,
    check_objects,
    check_on_the_way,
    check_refs,
    check_status,
    git,
    units_standing,
    write_a_note,
)
from stories.crash.phases import Phase, beginning, cycle

pytestmark = pytest.mark.live

NODES = 6
START_REQUESTS = 20
"""A start asks for at least as much before it writes anything."""
START_SECONDS = 60
"""How long a start may take on a busy machine before it asks for anything."""
QUIET_SECONDS = 6
"""After so long without a request there is nothing left to do."""
WRITES = {
    "begin": 10,
    "install": 24,
    "update": 40,
    "shrink": 10,
    "move": 4,
    "restart": 1,
    "remove": 14,
}


@pytest.fixture
def scene(tmp_path: Path, fresh_control_plane: ControlPlane) -> Iterator[Scene]:
    made = Scene(tmp_path, fresh_control_plane)
    try:
        yield made
    finally:
        made.close()


class Scene:
    """A real cluster with simulated nodes, a fleet, foreign objects, and a killer."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        nodes = tuple(WorldNode(f"gpu-{number}") for number in range(1, NODES + 1))
        self._folder = folder
        self._plane = plane
        self.world = World(folder, nodes, times=AT_ONCE, plane=plane)
        self.audit = Audit(plane.audit_log)
        self.kills: list[str] = []
        self._process: Running | None = None
        self._numbers = itertools.count(1)
        self._stop = threading.Event()
        self._kubelet = threading.Thread(target=self.world.kubelet.run, args=(self._stop,))
        self._kubelet.start()
        plant(self.world)
        until(self._lookalike_stands)

    def _lookalike_stands(self) -> bool:
        (found,) = self.world.objects("apps", "Deployment", "llm")
        status = found.get("status") or {}
        return status.get("availableReplicas") == 1 and "kube-root-ca.crt" in {
            body["metadata"]["name"] for body in self.world.objects("", "ConfigMap", "llm")
        }

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._stop.set()
        self._kubelet.join(30)
        self.audit.close()
        self.world.close()

    def start(self) -> Running:
        """A process that remembers nothing; its predecessor is dead.

        Every other one finds the Git mirror that dead ones have left, as in a restarted pod.
        """
        list(self.audit.news())
        number = next(self._numbers)
        self._process = Running(
            self._folder / f"run-{number}",
            *("--repo", str(self.world.bare), "--allow-file"),
            *("--fleet", "clusters/local/fleet.yaml", "--poll-interval", "1s", "--listen", ""),
            *("--kubeconfig", str(self._plane.kubeconfig_path), "--no-lease"),
            *("--render-workers", "1"),
            state=self._folder / "left-behind" if number % 2 else None,
        )
        return self._process

    def kill_at(self, process: Running, number: int, *, writes: bool, phase: Phase) -> bool:
        """Kill it as soon as its so-manyth request (or write) shows; False when none comes."""
        seen, counted, quiet_since = 0, 0, CLOCK.monotonic()
        while CLOCK.monotonic() < quiet_since + (QUIET_SECONDS if seen else START_SECONDS):
            for request in self.audit.news():
                quiet_since = CLOCK.monotonic()
                counted += is_write(request) or not writes
                seen += 1
                if counted >= number:
                    children = process.children()
                    process.kill()
                    self.kills.append(f"{phase.name}: {' '.join(request)}")
                    check_on_the_way(self.world, phase)
                    for child in children:
                        until(partial(gone, child), seconds=10)
                    return True
            assert process.returncode is None, process.log.read_text(encoding="utf-8")[-3000:]
            CLOCK.wait(0.005)
        return False

    def go_through(self, phase: Phase, kills: int) -> None:
        """Commit, kill so many processes on the way, let the last one finish, and check."""
        was = before(self.world)
        dice = random.Random(f"{phase.name} {kills} {len(self.kills)}")
        if phase.files is not None:
            self.world.commit(phase.name, phase.files)
        try:
            self._kill_on_the_way(phase, kills, dice)
            self._finish(phase, was)
        except BaseException as error:
            error.add_note(f"in phase {phase.name}, killed at {self.kills[-kills:]}")
            raise

    def _kill_on_the_way(self, phase: Phase, kills: int, dice: random.Random) -> None:
        """A write while there are some left to do, else any request of a start."""
        wanted = len(self.kills) + kills
        while len(self.kills) < wanted:
            process = self.start()
            write = dice.random() < 0.7
            number = dice.randint(1, WRITES[phase.name] if write else START_REQUESTS)
            if self.kill_at(process, number, writes=write, phase=phase):
                continue
            process.kill()
            number = dice.randint(1, START_REQUESTS)
            assert self.kill_at(self.start(), number, writes=False, phase=phase)

    def _finish(self, phase: Phase, was) -> None:
        process = self.start()
        commit = git(self.world, "rev-parse", "main")

        def is_right() -> bool:
            check_on_the_way(self.world, phase)
            assert process.returncode is None, process.log.read_text(encoding="utf-8")[-3000:]
            with suppress(AssertionError, KeyError):
                check_status(self.world, commit, units_standing(self.world))
                check_objects(self.world, phase, was)
                return True
            return False

        try:
            until(is_right, seconds=120, every=0.5)
        except TimeoutError:
            check_objects(self.world, phase, was)
            check_status(self.world, commit, units_standing(self.world))
        process.kill()
        check_refs(self.world, was)
        self.check_diff_is_empty()

    def check_diff_is_empty(self) -> None:
        """`stoker diff` of a fresh process finds nothing to do."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "stoker", "diff", "--path", str(self.world.work_tree)),
                *("--fleet", "clusters/local/fleet.yaml"),
                *("--kubeconfig", str(self._plane.kubeconfig_path)),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        assert "Plan: 0 to create, 0 to change, 0 to replace, 0 to delete" in done.stdout


def live(scene: Scene, kills: dict[str, int]) -> None:
    first = beginning()
    scene.go_through(first, kills[first.name])
    write_a_note(scene.world, "mine")
    for phase in cycle(0):
        scene.go_through(phase, kills[phase.name])
    assert sum(kills.values()) == len(scene.kills)
    assert "mine" == git(scene.world, "show", f"{BRANCH}:{NOTES}")


@pytest.mark.timeout(600)
def test_ten_kills_on_the_real_api_server(scene):
    live(
        scene,
        {"begin": 1, "install": 2, "update": 3, "shrink": 1, "move": 1, "restart": 1, "remove": 1},
    )


@pytest.mark.full
@pytest.mark.timeout(2400)
def test_fifty_kills_on_the_real_api_server(scene):
    live(
        scene,
        {"begin": 6, "install": 9, "update": 14, "shrink": 6, "move": 5, "restart": 4, "remove": 6},
    )

"""The virtual day: a fleet on the in-memory cluster, two minutes of virtual time a step.

Run by bench_soak in a process of its own, with units and hours as arguments; prints the
samples of the first and of the last hour as JSON. Controller, simulated cluster and Git
repository share the process, so what only the simulation gathers is dropped every hour:
its log of requests and the history that watches would read. The simulated cluster keeps two
old ReplicaSets of each Deployment, as W1 asks: every unit is changed twice at first, so that
what the cluster holds is at its bound before the first sample.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import w1
from bench_soak import Held
from churn import Churn
from w1_rig import NAMESPACE

from stoker.cli.world import World

STEP_SECONDS = 120
STEPS_AN_HOUR = 30


def day(folder: Path, units: int, hours: int) -> tuple[list[Held], list[Held]]:
    """Samples of the first hour after the install, and of the last one."""
    world = World(folder, (), fleet_path="fleet.yaml")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    world.cluster.apply(space, manager="bench")
    w1.write(world.work_tree, units=units, cluster_uid=world.cluster_uid, namespace=NAMESPACE)
    world.commit_all("install")
    for cpu in ("2m", "3m"):
        _step(world)
        for number in range(1, units + 1):
            for path, text in w1.unit_files(number, namespace=NAMESPACE, cpu=cpu).items():
                (world.work_tree / path).write_text(text, encoding="utf-8")
        world.commit_all(f"every unit asks for {cpu}")
    _step(world)
    churn = Churn(
        world.work_tree, world.cluster, units=units, namespace=NAMESPACE, remote=world.bare
    )
    hourly: list[list[Held]] = []
    for hour in range(hours + 1):
        samples = []
        for _ in range(STEPS_AN_HOUR):
            churn.act()
            _step(world)
            samples.append(Held.of(os.getpid()))
        world.memory.audit.clear()
        world.memory.compact()
        gc.collect()
        hourly.append(samples)
        print(f"hour {hour}: {samples[-1]}", file=sys.stderr)
    world.close()
    return hourly[1], hourly[-1]


def _step(world: World) -> None:
    world.clock.wait(STEP_SECONDS)
    world.cluster_step()
    world.one_pass()
    failure = world.work.last.failure if world.work and world.work.last else world.source_failure
    if failure is not None:
        raise RuntimeError(f"a pass failed: {failure}")


def main() -> None:
    """Print the samples."""
    units, hours = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as scratch:
        found = day(Path(scratch), units, hours)
    print(json.dumps([[asdict(held) for held in samples] for samples in found]))


if __name__ == "__main__":
    main()

"""Seeded mixes of faults against a real API server, judged by what it and Git have noted.

`make faults` runs ten minutes of them, several at a time; `make faults SEEDS=200` runs
so many, `make faults SEED=7` that one again. Issue B: no violation, and convergence within a
minute after the last fault.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faults.lanes import SLICE
from faults.plan import plan_of
from faults.proxy import make_certificate
from faults.rig import Rig, Verdict
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer

pytestmark = [
    pytest.mark.live,
    pytest.mark.faults,
    pytest.mark.timeout(SLICE.longest_seconds),
    # threads of the proxy that a fault left in the middle of a read end with the process
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("fault-proxy"))


@pytest.mark.parametrize("lane", range(SLICE.lanes))
def test_a_fleet_comes_through_mixes_of_faults(
    lane: int,
    tmp_path: Path,
    bare_control_plane: ControlPlane,
    certificate: tuple[Path, Path],
    record_property: Any,
) -> None:
    """Research part c: I1 to I9 and I12 hold whatever goes wrong."""
    failed = []
    for seed in SLICE.seeds(lane):
        plan = plan_of(seed, SLICE.seconds)
        folder = tmp_path / str(seed)
        folder.mkdir()
        with GitServer(folder / "git-host") as git:
            verdict = Rig(folder, bare_control_plane, git, certificate, plan).run()
        line = told(seed, verdict, plan.summary)
        record_property("seed", line)
        with (tmp_path / "seeds.log").open("a", encoding="utf-8") as log:
            log.write(line + "\n")
        if verdict.violations:
            failed.append(line)

    assert [] == failed


def told(seed: int, verdict: Verdict, summary: str) -> str:
    """One line about a seed, and under it what it violated and how to run it again."""
    met = ", ".join(f"{name} {count}" for name, count in sorted(verdict.met.items()))
    rest = "never" if verdict.converged is None else f"after {verdict.converged:.1f} s"
    took = f"{verdict.seconds:.0f} s in all, {verdict.began:.0f} to begin"
    first = f"seed {seed}: at rest {rest}, {took}; met {met}; {summary}"
    if not verdict.violations:
        return first
    again = f"again with: make faults SEED={seed} SECONDS={SLICE.seconds:g}"
    return "\n  ".join([first, *verdict.violations, again])

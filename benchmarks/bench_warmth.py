"""The shipped rehearsals on the real control plane, three seeds each, section warmth.

A row a bar: the worst that any seed came to. Nodes and engines are simulated, the rest is
real. A count that must be at least so much is given as what was lacking.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import row

from stoker.cli.rehearse_plane import PlaneGround
from stoker.rehearse.judge import Judgement, Verdict, judge
from stoker.rehearse.play import play
from stoker.rehearse.record import Recording
from stoker.rehearse.scenario import scenario_named, shipped_scenarios
from stoker.rehearse.schema import ScenarioFile
from stoker.sim.controlplane import ControlPlane

SEEDS = tuple(range(1, int(os.environ.get("WARMTH_SEEDS", "3")) + 1))
SPEED = float(os.environ.get("WARMTH_SPEED", "2"))
"""How much faster than the scenarios say; every figure in ms is in real time."""
SCENARIOS = tuple(name for name in os.environ.get("WARMTH_SCENARIOS", "").split(",") if name)
NEVER = 1_000_000.0
"""Stands for unknown, which holds no bar."""


def run() -> list[dict[str, Any]]:
    """Every scenario, or those named in WARMTH_SCENARIOS."""
    rows = []
    for name in SCENARIOS or shipped_scenarios():
        scenario = scenario_named(name)
        judgements = [_played(scenario, seed) for seed in SEEDS]
        rows += rows_of(name, judgements)
    return rows


def _played(scenario: ScenarioFile, seed: int) -> Judgement:
    with tempfile.TemporaryDirectory() as made, ControlPlane(Path(made) / "plane") as plane:
        ground = PlaneGround(Path(made), scenario.spec, seed, plane, SPEED)
        try:
            recording = play(scenario, ground, seed)
        finally:
            ground.close()
    judgement = judge(scenario.spec, recording)
    _tell(scenario, recording, judgement)
    return judgement


def rows_of(name: str, judgements: list[Judgement]) -> list[dict[str, Any]]:
    """The worst of each bar; a run that never began holds none."""
    if not all(judgement.began for judgement in judgements):
        return [row(f"{name}: never began", 1, "runs", 0, section="warmth")]
    by_bar: dict[tuple[str, str], list[Verdict]] = {}
    for judgement in judgements:
        for verdict in judgement.verdicts:
            by_bar.setdefault((verdict.of, verdict.measure), []).append(verdict)
    return [
        row(
            f"{name}: {of} {measure}{', lacking' if found[0].least else ''}",
            max(_badness(verdict) for verdict in found),
            "ms" if measure == "gap" else "",
            0 if found[0].least else found[0].bar,
            section="warmth",
        )
        for (of, measure), found in by_bar.items()
    ]


def _badness(verdict: Verdict) -> float:
    if verdict.found is None:
        return NEVER
    return max(0, verdict.bar - verdict.found) if verdict.least else verdict.found


def _tell(scenario: ScenarioFile, recording: Recording, judgement: Judgement) -> None:
    for count in judgement.services:
        print(
            f"{scenario.metadata.name} seed {recording.seed}: {count.name} {count.requests}, "
            f"TTFT {count.ttft_ms} ms, gap {count.gap_ms} ms, {count.reasons}",
            file=sys.stderr,
        )

"""The shipped scenarios, played in memory. One seed of some; `full` plays three of each."""

from __future__ import annotations

import pytest

from stoker.cli.rehearse_memory import MemoryGround
from stoker.rehearse.judge import Judgement, judge
from stoker.rehearse.play import play
from stoker.rehearse.record import Recording
from stoker.rehearse.scenario import scenario_named, shipped_scenarios

QUICK = {"preemption"}
"""Played in every run of the tests."""


def _cases():
    for name in shipped_scenarios():
        for seed in (1, 2, 3):
            full = [] if seed == 1 and name in QUICK else [pytest.mark.full]
            yield pytest.param(name, seed, marks=full, id=f"{name}-{seed}")


def played(name, seed, folder, renderer) -> tuple[Recording, Judgement]:
    scenario = scenario_named(name)
    ground = MemoryGround(folder, scenario.spec, seed, renderer)
    try:
        recording = play(scenario, ground, seed)
    finally:
        ground.close()
    return recording, judge(scenario.spec, recording)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "seed"), list(_cases()))
def test_every_bar_of_a_scenario_holds(name, seed, tmp_path, renderer):
    _, judgement = played(name, seed, tmp_path, renderer)

    assert judgement.began
    reasons = {count.name: count.reasons for count in judgement.services}
    assert [] == [verdict for verdict in judgement.verdicts if not verdict.holds], reasons

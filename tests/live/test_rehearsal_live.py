"""Rehearsals on a real control plane: real scheduler, endpoints, leases and HTTP requests.

Fewer requests and shorter times than the scenarios say, so that a busy machine keeps up; how
late a first token is, and how wide a gap, is measured in benchmarks/ and judged there.
"""

from __future__ import annotations

import pytest

from stoker.cli.rehearse_plane import PlaneGround
from stoker.rehearse.judge import Verdict, judge
from stoker.rehearse.play import play
from stoker.rehearse.scenario import scenario_named, shipped_scenarios
from stoker.rehearse.schema import ScenarioFile
from stories.shortfalls import FALLS_SHORT

pytestmark = [pytest.mark.live, pytest.mark.timeout(1500)]

TIMES_AS_FAST = 4.0
TIMED = {"late", "gap"}
IN_EVERY_RUN: set[str] = set()
"""None yet: where the machine starves, answers take longer than drawn and outlast their node."""


def lighter(name: str) -> ScenarioFile:
    """The shipped scenario with two requests a second."""
    scenario = scenario_named(name)
    load = scenario.spec.load.model_copy(update={"rate_per_second": 2})
    return scenario.model_copy(update={"spec": scenario.spec.model_copy(update={"load": load})})


def cases():
    for name in shipped_scenarios():
        marks = [] if name in IN_EVERY_RUN else [pytest.mark.full]
        if name in FALLS_SHORT:
            marks.append(pytest.mark.xfail(reason=FALLS_SHORT[name], strict=False))
        yield pytest.param(name, marks=marks, id=name)


def missed(verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    return [v for v in verdicts if not v.holds and v.measure not in TIMED]


@pytest.mark.parametrize("name", list(cases()))
def test_every_bar_that_is_no_time_holds(name, tmp_path, fresh_control_plane):
    scenario = lighter(name)
    ground = PlaneGround(tmp_path, scenario.spec, 1, fresh_control_plane, TIMES_AS_FAST)
    try:
        recording = play(scenario, ground, seed=1)
    finally:
        ground.close()
    judgement = judge(scenario.spec, recording)

    assert judgement.began, recording.why
    assert min(count.requests.ok for count in judgement.services) > 0
    reasons = {count.name: count.reasons for count in judgement.services}
    assert [] == missed(judgement.verdicts), reasons

"""`stoker demo`: what it prints of requests is counted from requests."""

from __future__ import annotations

import io
import re

import pytest

from stoker.cli.demo_scenes import play
from stoker.cli.demo_stage import Stage
from stoker.rehearse.record import Outcome


@pytest.fixture
def stage_of(tmp_path):
    made: list[Stage] = []

    def of(kind: type[Stage]) -> Stage:
        made.append(kind(tmp_path, io.StringIO()))
        return made[0]

    yield of
    for stage in made:
        stage.close()


class CountingStage(Stage):
    """Counts for itself when the load ends."""

    answered_well = 0

    def end_load(self) -> None:
        super().end_load()
        outcomes = [request.outcome for request in self.clients.requests]
        self.answered_well = outcomes.count(Outcome.OK)


class CrashingStage(Stage):
    """Every engine dies for a moment, three seconds into the load."""

    loaded_seconds = 0

    def second(self) -> None:
        self.loaded_seconds += int(self.is_loaded)
        if self.loaded_seconds == 3:
            for node in ("gpu-1", "gpu-2", "gpu-3"):
                self.world.kubelet.crash_engines(node)
        super().second()


def told(stage: Stage) -> tuple[int, int]:
    """Failed and answered requests, as it printed them."""
    text = stage.out.getvalue()  # type: ignore[attr-defined]
    (found,) = re.findall(r"failed requests (\d+) of (\d+)", text)
    return int(found[0]), int(found[1])


def test_the_spot_notice_of_the_demo_costs_no_request(stage_of):
    """Twenty a second for half a minute, in the second scene; the printed figures are theirs."""
    stage = stage_of(CountingStage)

    assert play(stage)
    failed, answered = told(stage)
    assert (0, stage.answered_well) == (failed, answered)
    assert answered > 400
    requests = stage.clients.requests
    assert all(request.outcome is Outcome.OK for request in requests), "those left open too"
    assert {"gpu-1", "gpu-2", "gpu-3"} == {request.node for request in requests}
    assert stage.lines <= 60


def test_a_demo_that_loses_requests_says_so_and_does_not_end_well(stage_of):
    """Else the zero would be a word and no count."""
    stage = stage_of(CrashingStage)

    assert not play(stage)
    failed, answered = told(stage)
    assert 0 < failed <= answered
    last = stage.out.getvalue().splitlines()[-2]
    assert last.startswith("NOT done")
    assert last.endswith(f"{failed} failed requests.")

"""What `stoker wait` says of replicas on their way, from their pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.cli.wait_progress import NOTHING, progress_of, seen_by
from stoker.kube.errors import api_error
from stoker.model.times import rfc3339
from stoker.objects import names
from unit.observe.observe_builders import pod

NOW = 1_790_000_000_000
DEADLINE = 1_200_000
STATUS = {"starting": [{"node": "n1", "seconds": 250}]}
BOUND = {"type": "PodScheduled", "status": "True"}
WAITING = {"name": "engine", "state": {"waiting": {"reason": "ContainerCreating"}}}
CRASHING = {"name": "engine", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}


def running(seconds_ago: int) -> dict[str, Any]:
    at = rfc3339(NOW - seconds_ago * 1000)
    return {"name": "engine", "state": {"running": {"startedAt": at}}}


def a_pod(age: int, node: str = "n1", *containers: Any, ready: bool = False, **metadata: Any):
    """A pod of the service that was created so many seconds ago."""
    conditions = [{"type": "Ready", "status": str(ready)}, *([BOUND] if node else [])]
    return pod(
        f"p{age}",
        node,
        metadata={
            "creationTimestamp": rfc3339(NOW - age * 1000),
            "labels": {names.SERVICE_LABEL: "qwen", names.TRAFFIC_LABEL: "true"},
            **metadata,
        },
        status={"conditions": conditions, "containerStatuses": list(containers)},
    )


def text(*pods, status=None, deadline_ms=DEADLINE, now_ms=NOW) -> str:
    return progress_of(pods, STATUS if status is None else status, deadline_ms, now_ms).text


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        ((), ""),
        ((a_pod(72, "n1", running(10)),), "n1 Starting 1m12s of 4m10s"),
        ((a_pod(72, "n1", WAITING),), "n1 Pulling 1m12s of 4m10s"),
        ((a_pod(72, "n1"),), "n1 Pulling 1m12s of 4m10s"),
        ((a_pod(72, "n2", running(10)),), "n2 Starting 1m12s"),
        ((a_pod(3, ""),), "Scheduling 3s"),
        ((a_pod(9, "n1", CRASHING),), "n1 Stuck (CrashLoopBackOff) 9s of 4m10s"),
        ((a_pod(72, "n1", ready=True),), ""),
        ((a_pod(9, "n1"), a_pod(72, "n2"), a_pod(4, "")), "n2 Pulling 1m12s (+2 more)"),
        ((a_pod(9, "n1", deletionTimestamp=rfc3339(NOW)),), ""),
        ((pod("of-somebody-else", gpus=0),), ""),
    ],
    ids=[
        "none",
        "starting",
        "pulling",
        "seen by no kubelet",
        "elsewhere",
        "unbound",
        "stuck",
        "ready",
        "several",
        "leaving",
        "not ours",
    ],
)
def test_the_replica_that_is_longest_on_its_way_is_told(pods, told):
    """ux.md: `l4-od-3 Starting 1m12s of 4m10s`."""
    assert told == text(*pods)


def test_without_an_estimate_the_time_stands_alone():
    """A mirror of an older controller has none; a zero is none."""
    for status in ({}, {"starting": [{"node": "n1", "seconds": 0}]}, {"starting": "x"}):
        assert "n1 Starting 1m12s" == text(a_pod(72, "n1", running(10)), status=status)


def test_a_start_over_its_deadline_is_stuck():
    assert "n1 Stuck (DeadlineExceeded) 1m12s of 4m10s" == text(
        a_pod(72, "n1", running(70)), deadline_ms=60_000
    )


@given(st.integers(-3600, 3600))
def test_a_clock_that_differs_makes_no_time_below_zero(skew):
    found = progress_of([a_pod(72, "n1", running(1))], STATUS, DEADLINE, NOW + skew * 1000)

    assert "-" not in found.text
    assert found.words in {"n1 Starting", "n1 Stuck (DeadlineExceeded)"}


def test_words_without_times_stay_while_only_time_passes():
    """Otherwise each second would be a line."""
    started = [a_pod(72, "n1", running(10))]
    early, late = (progress_of(started, STATUS, DEADLINE, NOW + ms) for ms in (0, 5000))

    assert early.words == late.words
    assert early.text != late.text


def test_pods_that_may_not_be_read_are_no_reason_to_end():
    class Forbidding:
        def list(self, *_arguments, **_options):
            raise api_error(403, {"message": "no"}, what="list")

    for selector in ("", "a=b"):
        found = seen_by(Forbidding(), "llm", {"selector": selector}, DEADLINE, NOW)  # type: ignore[arg-type]
        assert NOTHING == found

"""Signals of NodeStates: what is not sane is absent, and absent is neither zero nor Cold."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.model.snapshot import NodeWarmth, Signals
from stoker.observe.nodes import node_facts, nodes_from, state_facts
from stoker.observe.signals import signals_of

SANE: dict[str, Any] = {
    "warmth": "Warming",
    "activeServiceCount": 2,
    "gpuUtilization": 1.5,
    "kvCacheHitRate": 1,
    "kvCacheHitRateObservedAt": "2026-11-30T00:00:01Z",
    "tokensPerJoule": 0,
    "tokensPerJouleObservedAt": "2026-11-30T00:00:02Z",
    "lastReportTime": "2026-11-30T00:00:03Z",
}
STAMP = 1_795_996_800_000


def state(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "uid": "u"}, "status": status}


def test_everything_a_reporter_measures_is_read():
    assert signals_of(state(**SANE)) == Signals(
        warmth=NodeWarmth.WARMING,
        active_services=2,
        gpu_utilization=1.5,
        kv_hit_rate=1.0,
        kv_hit_rate_at_ms=STAMP + 1000,
        tokens_per_joule=0.0,
        tokens_per_joule_at_ms=STAMP + 2000,
        reported_at_ms=STAMP + 3000,
    )


@pytest.mark.parametrize("raw", [{}, {"status": None}, {"status": []}, state()])
def test_a_state_that_says_nothing_says_nothing(raw):
    assert signals_of(raw) == Signals()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("warmth", "Hot"),
        ("warmth", 2),
        ("activeServiceCount", -1),
        ("activeServiceCount", True),
        ("activeServiceCount", 1.5),
        ("gpuUtilization", -0.1),
        ("gpuUtilization", float("nan")),
        ("gpuUtilization", float("inf")),
        ("gpuUtilization", 10**400),
        ("gpuUtilization", "0.5"),
        ("kvCacheHitRate", 1.01),
        ("kvCacheHitRate", True),
        ("tokensPerJoule", float("-inf")),
        ("tokensPerJouleObservedAt", "yesterday"),
        ("kvCacheHitRateObservedAt", 5),
        ("kvCacheHitRate", float("nan")),
        ("kvCacheHitRate", -0.01),
        ("tokensPerJoule", float("nan")),
        ("tokensPerJoule", -1),
        ("lastReportTime", "2026-11-30T00:00:03"),
        ("lastReportTime", "99999-01-01T00:00:00Z"),
    ],
)
def test_what_is_not_sane_is_absent_and_spoils_nothing_else(field, value):
    found = signals_of(state(**{**SANE, field: value}))

    assert found == signals_of(state(**{k: v for k, v in SANE.items() if k != field}))


def test_a_new_measurement_is_no_news_and_is_kept_only_where_it_is_asked_for():
    calm, busy = (state_facts(state(gpuUtilization=share)) for share in (0.1, 0.9))
    node = node_facts({"metadata": {"name": "n1", "uid": "u"}})

    assert calm == busy, "it wakes nobody"
    for asked, expected in ((True, 0.9), (False, None)):
        found, _ = nodes_from([("n1", node)], [], {"n1": busy}, {}, 0, signals=asked)
        assert expected == found[0].signals.gpu_utilization

"""What is written of one round, and the smallest patch that says it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.engine.counters import EngineCounters
from stoker.node.cache import CachedWeights, Inventory
from stoker.node.engine_scrape import Round, Window
from stoker.node.facts import Facts, news, renewals, status_of
from stoker.node.gpu import GpuReading
from stoker.node.notice import Hint, NodeNotice, NoticeKind, Standing
from stoker.observe.nodes import node_facts, nodes_from, state_facts
from stoker.report.definitions import definition_manifests
from stoker.sim.clock import DEFAULT_START_MS as T0

NOTICE = NodeNotice(NoticeKind.SPOT, "aws", "terminate", T0, T0 + 120_000)
FULL = Facts(
    now_ms=T0,
    gpus=GpuReading(2, ("NVIDIA L4",), 0.4567, 2**30, (("GPU-0", 5),)),
    engines=Round({"127.0.0.1:8000": EngineCounters({"": 9.0}, None, None, 3, 1)}),
    window=Window(300.0, 0.25),
    joules=200.0,
    inventory=Inventory((CachedWeights("hf://o/m", "a" * 40, 8, complete=True),)),
    notices=Standing(NOTICE, Hint("rebalance", "aws", T0), known=True),
    node_uid="u-1",
    holder="pod-1",
)


def schema() -> dict[str, Any]:
    crd = next(m for m in definition_manifests() if m["spec"]["names"]["kind"] == "NodeState")
    found: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def merged(live: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def test_everything_that_is_known_is_written_by_the_names_of_the_definition():
    status = {key: value for key, value in status_of(FULL).items() if value is not None}
    known = schema()["properties"]["status"]["properties"]

    assert status.keys() <= known.keys()
    assert status["gpuUtilization"] == 0.46
    assert status["gpuMemoryUsedBytes"] == 2**30
    assert (status["requestsRunning"], status["requestsWaiting"]) == (3, 1)
    assert (status["kvCacheHitRate"], status["tokensPerJoule"]) == (0.25, 1.5)
    assert status["spot"]["preemptionNoticeDetected"] is True
    jsonschema.validate({"status": status}, schema())
    for field in ("notice", "hint", "spot", "reporter"):
        assert status[field].keys() <= known[field]["properties"].keys()


def test_the_controller_reads_what_the_reporter_writes():
    """One pair of spellings: weights, notice and signals arrive."""
    status = {key: value for key, value in status_of(FULL).items() if value is not None}
    node = node_facts({"metadata": {"name": "n", "uid": "u-1"}})
    states = {"n": state_facts({"metadata": {"name": "n"}, "status": status})}

    ((found,), _) = nodes_from([("n", node)], [], states, {}, T0, signals=True)

    assert [(c.uri, c.revision, c.complete) for c in found.weights] == [
        ("hf://o/m", "a" * 40, True)
    ]
    assert found.notice
    assert (found.notice.kind, found.notice.deadline_ms) == ("spot-interruption", T0 + 120_000)
    assert (found.signals.gpu_utilization, found.signals.tokens_per_joule) == (0.46, 1.5)
    assert found.signals.tokens_per_joule_at_ms == T0


def test_what_is_absent_is_written_as_absent_and_never_as_zero():
    status = status_of(Facts(T0))

    assert set(status.values()) == {None}


def test_measurements_that_are_not_known_any_more_are_taken_back():
    live = status_of(FULL)
    gone = replace(FULL, gpus=GpuReading(why="NVML: Driver Not Loaded"), window=Window())

    patch = news(live, status_of(gone))

    assert patch["gpuUtilization"] is None
    assert patch["kvCacheHitRate"] is None
    assert patch["unknown"] == [{"what": "gpus", "why": "NVML: Driver Not Loaded"}]


def test_cache_and_notice_that_cannot_be_asked_stay_as_they_stand():
    """Unknown is not empty: weights that were there are, and a node that dies dies."""
    blind = replace(
        FULL, inventory=Inventory(why="no rights"), notices=Standing(why_unknown="hung")
    )

    patch = news(status_of(FULL), status_of(blind))

    assert patch == {
        "unknown": [{"what": "cache", "why": "no rights"}, {"what": "notice", "why": "hung"}]
    }


def test_an_empty_cache_is_written_as_empty():
    assert status_of(replace(FULL, inventory=Inventory(())))["cache"] == []


def test_a_notice_that_was_taken_back_is_removed():
    back = replace(FULL, notices=Standing(known=True))

    patch = news(status_of(FULL), status_of(back))

    assert patch == {"notice": None, "hint": None, "spot": None}


def test_a_notice_of_another_hand_is_left_alone():
    """A rehearsal writes one; the cloud that has none does not take it back."""
    live = {"notice": {"kind": "rehearsal"}, "spot": {"preemptionNoticeDetected": True}}
    quiet = status_of(replace(FULL, notices=Standing(known=True)))

    assert {"notice", "spot"} & news(live, quiet).keys() == set()
    assert news(live, status_of(FULL))["notice"]["source"] == "aws"


def test_a_notice_without_deadline_drops_the_one_that_stood():
    live = status_of(FULL)
    later = replace(FULL, notices=Standing(replace(NOTICE, deadline_ms=None), known=True))

    assert "deadline" not in merged(live, news(live, status_of(later)))["notice"]


def test_an_instant_alone_is_no_news():
    live, later = status_of(FULL), status_of(replace(FULL, now_ms=T0 + 5000))

    assert news(live, later) == {}
    assert sorted(renewals(live, later)) == ["kvCacheHitRateObservedAt", "tokensPerJouleObservedAt"]


SHARES = st.none() | st.floats(0, 1)
FACTS = st.builds(
    Facts,
    now_ms=st.integers(T0, T0 + 10**9),
    gpus=st.builds(GpuReading, utilization=SHARES, memory_used_bytes=st.none() | st.integers(0, 9)),
    window=st.builds(Window, st.none() | st.floats(0, 1e9), SHARES),
    joules=st.none() | st.floats(1e-6, 1e9),
    inventory=st.sampled_from([Inventory(), Inventory(()), FULL.inventory]),
    notices=st.sampled_from(
        [
            Standing(),
            Standing(known=True),
            FULL.notices,
            Standing(NOTICE, known=True, why_unknown="hung"),
            Standing(replace(NOTICE, deadline_ms=None), known=True),
        ]
    ),
    holder=st.sampled_from(["", "pod-1"]),
)


@given(st.lists(FACTS, min_size=1, max_size=4))
def test_patches_lead_to_what_is_wanted_and_then_to_nothing_more(rounds):
    live: dict[str, Any] = {}
    for facts in rounds:
        wanted = status_of(facts)
        live = merged(live, {**renewals(live, wanted), **news(live, wanted)})

        assert news(live, wanted) == {}
        assert {k: live.get(k) for k in wanted} == wanted
        jsonschema.validate({"status": live}, schema())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_absent(value):
    facts = replace(FULL, gpus=GpuReading(utilization=value))

    assert status_of(facts)["gpuUtilization"] is None

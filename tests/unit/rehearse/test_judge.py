"""What counts as what, and when a bar holds."""

from __future__ import annotations

import pytest

from stoker.rehearse.judge import Count, judge
from stoker.rehearse.record import Ending, NodeEnd, PodState
from unit.rehearse.rehearse_builders import (
    a_pod,
    a_recording,
    a_scenario,
    answered,
    refused,
    truncated,
)

END = NodeEnd("n1", said_ms=10_000, end_ms=40_000)
QUICK = {"around": "1s", "disk": "4s", "init": "5s"}
"""No start is quicker than 10 s."""


def counted(*requests, scenario=None, **recording) -> Count:
    made = judge((scenario or a_scenario(starts=QUICK)).spec, a_recording(*requests, **recording))
    return made.services[0].requests


def missed(scenario, recording) -> list[str]:
    return [f"{v.of} {v.measure}" for v in judge(scenario.spec, recording).verdicts if not v.holds]


@pytest.mark.parametrize(
    ("request_", "unavoidable"),
    [
        (truncated(9_000, 50_000), True),
        (truncated(9_000, 40_000), False),
        (truncated(9_000, 39_000), False),
        (truncated(20_000, 50_000), True),
        (truncated(20_001, 50_000), False),
    ],
    ids=["outlasts", "ends with the node", "would have ended", "nothing served", "too late"],
)
def test_a_truncated_answer_is_unavoidable_only_where_no_move_could_have_saved_it(
    request_, unavoidable
):
    found = counted(request_, ends=[END])

    assert (int(not unavoidable), int(unavoidable)) == (found.truncated, found.unavoidable)


def test_with_another_replica_that_serves_only_what_was_under_way_is_unavoidable():
    """Requests after the notice could have gone there."""
    pods = {
        "p1": a_pod("p1", "n1", (-1, PodState.READY)),
        "p2": a_pod("p2", "n2", (-1, PodState.READY)),
    }
    found = counted(truncated(9_000, 50_000), truncated(11_000, 50_000), ends=[END], pods=pods)

    assert (1, 1) == (found.truncated, found.unavoidable)


def test_a_replica_on_a_node_that_goes_as_well_is_no_choice():
    pods = {
        "p1": a_pod("p1", "n1", (-1, PodState.READY)),
        "p2": a_pod("p2", "n2", (-1, PodState.READY)),
    }
    both = [END, NodeEnd("n2", said_ms=10_000, end_ms=40_000)]

    assert 1 == counted(truncated(11_000, 50_000), ends=both, pods=pods).unavoidable


def test_a_client_whose_list_is_older_than_the_notice_could_not_know():
    """Whatever else serves: nothing that is done after the notice reaches that list in time."""
    pods = {
        "p1": a_pod("p1", "n1", (-1, PodState.READY)),
        "p2": a_pod("p2", "n2", (-1, PodState.READY)),
    }
    early = truncated(20_000, 50_000, client="lag-10s")
    late = truncated(20_001, 50_000, client="lag-10s")
    found = counted(early, late, ends=[END], pods=pods)

    assert (1, 1) == (found.truncated, found.unavoidable)


def test_a_client_that_is_behind_has_that_much_longer_no_choice():
    late = truncated(29_000, 50_000, client="lag-10s")

    assert 1 == counted(late, ends=[END]).unavoidable


def test_without_a_nodes_end_nothing_is_unavoidable():
    assert 1 == counted(truncated(9_000, 50_000)).truncated


def test_clients_with_a_connection_are_counted_apart():
    scenario = a_scenario(bars={"services": [{"name": "a", "refused": 0, "sticky": 0}]})
    recording = a_recording(answered(0), refused(100, client="sticky-1"))

    assert ["a sticky"] == missed(scenario, recording)


def test_a_service_without_bars_of_its_own_may_lose_nothing():
    assert ["a refused"] == missed(a_scenario(), a_recording(answered(0), refused(100)))
    assert ["a truncated"] == missed(a_scenario(), a_recording(truncated(0, 9_000)))
    assert ["a unavoidable"] == missed(a_scenario(), a_recording(truncated(0, 50_000), ends=[END]))


def test_a_gap_is_the_time_without_first_tokens_beyond_their_spacing():
    """Evenly answered: none. A hole of 5 s: those, less the median time to the first token."""
    bars = {"services": [{"name": "a", "gap": "0s"}]}
    scenario = a_scenario(bars=bars, load={"lags": ["0s"]})
    even = [answered(100 * n) for n in range(600)]
    hole = [r for r in even if not 10_000 < r.at_ms < 15_000]

    assert [] == missed(scenario, a_recording(*even))
    assert ["a gap"] == missed(scenario, a_recording(*hole))
    (count,) = judge(scenario.spec, a_recording(*hole)).services
    assert (200, 4_900) == (count.ttft_ms, count.gap_ms)


def test_silence_until_the_end_is_a_gap():
    scenario = a_scenario(load={"lags": ["0s"]})
    (count,) = judge(scenario.spec, a_recording(*[answered(100 * n) for n in range(300)])).services

    assert 29_800 == count.gap_ms


def test_without_a_single_answer_the_gap_is_unknown_and_the_bar_missed():
    """Unknown is not zero."""
    scenario = a_scenario(bars={"services": [{"name": "a", "gap": "10s"}]})

    assert ["a gap"] == missed(scenario, a_recording(refused(0)))


def test_only_starts_that_came_to_nothing_are_wasted():
    pods = {
        "p1": a_pod("p1", "n1", (-1, PodState.READY)),
        "bad": a_pod("bad", "n2", (1_000, PodState.STARTING), (2_000, PodState.FAILING)),
        "gone": a_pod("gone", "n2", (1_000, PodState.STARTING), (2_000, PodState.GONE)),
        "under way": a_pod("under way", "n2", (50_000, PodState.STARTING)),
        "good": a_pod("good", "n2", (1_000, PodState.STARTING), (9_000, PodState.READY)),
        "unbound": a_pod("unbound", "", (1_000, PodState.PENDING)),
    }
    scenario = a_scenario(bars={"fleet": {"startsWasted": 1}})
    made = judge(scenario.spec, a_recording(answered(0), pods=pods))

    assert (4, 2) == (made.services[0].starts, made.services[0].starts_wasted)
    assert ["fleet startsWasted"] == missed(scenario, a_recording(answered(0), pods=pods))


def test_the_lowest_count_is_that_under_load():
    """What was before the load began is nobody's loss."""
    scenario = a_scenario(bars={"services": [{"name": "a", "lowestReady": 2, "readyAtEnd": 2}]})
    good = {"a": [(-9, 0), (-1, 2), (5_000, 3), (9_000, 2)]}
    bad = {"a": [(-1, 2), (5_000, 1), (9_000, 2)]}

    assert [] == missed(scenario, a_recording(answered(0), ready=good))
    assert ["a lowestReady"] == missed(scenario, a_recording(answered(0), ready=bad))


def test_gpus_that_are_asked_for_twice_miss_a_bar_of_every_scenario():
    made = a_recording(answered(0), double_booked=1)

    assert ["fleet doubleBookedGPUs"] == missed(a_scenario(), made)


def test_a_rehearsal_that_never_began_holds_nothing():
    made = a_recording(answered(0), ending=Ending.NEVER_BEGAN)

    assert not judge(a_scenario().spec, made).holds


def test_times_of_a_run_that_was_faster_are_judged_as_fast():
    """A second of the scenario is a tenth of a second there."""
    bars = {"services": [{"name": "a", "gap": "10s", "late": 0}]}
    scenario = a_scenario(bars=bars, load={"lags": ["0s"], "late": "2s"})
    even = [answered(10 * n, ttft=20) for n in range(6000)]
    slow = [answered(10 * n, ttft=201) for n in range(6000)]

    assert [] == missed(scenario, a_recording(*even, time_scale=10.0))
    assert ["a late"] == missed(scenario, a_recording(*slow, time_scale=10.0))

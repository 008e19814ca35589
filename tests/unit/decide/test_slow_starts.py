"""A deadline that the fleet's own starts do not keep is found, with both numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    IMAGE,
    MODEL_REVISION,
    NOW_MS,
    a_desired,
    a_node,
    a_shape,
    a_snapshot,
    a_unit,
)
from stoker.check import check
from stoker.decide import decide
from stoker.decide.slow_starts import SlowStarts
from stoker.errors import Severity
from stoker.model.history import History
from stoker.model.manifest import ManifestSet
from stoker.model.plan import SlowStart
from stoker.model.scaling import (
    ScaleToZero,
    Scaling,
    ScrapeQuery,
    WakeSource,
    ZeroPolicy,
)
from stoker.model.start_samples import Starts, StartSample
from unit.decide.index import a_case, an_index

MINUTE = 60_000
LABELS = {"node.kubernetes.io/instance-type": "g6.xlarge"}
COLD_NODE = a_node("n1", labels=LABELS)
WARM_NODE = a_node("n2", labels=LABELS, weights=(MODEL_REVISION,), images=(IMAGE,))


def starts(**totals):
    """Learned from starts on `cold` and `warm` nodes, each in minutes."""
    case = a_case(a_unit(pools=("l4",)))
    index = an_index(COLD_NODE, WARM_NODE, cases=(case,))
    keys = {"cold": index.start_key(case, "n1"), "warm": index.start_key(case, "n2")}
    rings = {
        keys[name]: [
            StartSample(NOW_MS + number, 0, 0, minutes * MINUTE)
            for number, minutes in enumerate(found)
        ]
        for name, found in totals.items()
    }
    return Starts.bounded(rings, ())


def the_plan(deadline_minutes, learned, nodes=(COLD_NODE, WARM_NODE), **fields):
    unit = a_unit(cold_start_deadline_ms=deadline_minutes * MINUTE, **fields)
    desired = a_desired(unit)
    history = History(starts=learned)
    plan = decide(desired, (a_shape(unit),), a_snapshot(*nodes), history, NOW_MS)
    return desired, plan


def slow(deadline_minutes, learned, **more):
    _, plan = the_plan(deadline_minutes, learned, **more)
    return plan.decisions[0].slow_start


def test_the_slowest_kind_over_the_deadline_is_named():
    found = slow(5, starts(cold=[7, 7, 8, 9, 9], warm=[6] * 6))

    assert SlowStart("g6.xlarge", "image no, weights no", 9 * MINUTE, 5) == found


def test_a_warm_kind_over_the_deadline_is_found_too():
    found = slow(5, starts(cold=[4] * 5, warm=[6] * 6))

    assert SlowStart("g6.xlarge", "image yes, weights yes", 6 * MINUTE, 6) == found


@pytest.mark.parametrize(
    "learned",
    [{}, {"cold": [9] * 4}, {"cold": [5] * 5}, {"cold": [1] * 11 + [9]}],
    ids=["nothing", "too-few", "just-in-time", "one-of-twelve"],
)
def test_no_deadline_is_too_short_without_proof(learned):
    assert slow(5, starts(**learned)) is None


def test_a_class_of_nodes_that_is_no_longer_there_says_nothing():
    assert slow(5, starts(cold=[9] * 5), nodes=(a_node("n3"),)) is None


def test_it_changes_nothing_that_is_decided():
    _, without = the_plan(20, starts(cold=[9] * 5))
    _, found = the_plan(5, starts(cold=[9] * 5))

    assert without.decisions[0] == replace(found.decisions[0], slow_start=None)


def test_check_warns_at_the_line_with_both_numbers_and_how_many_starts():
    """Issue: words say both numbers and how many starts; a warning stops nothing."""
    desired, plan = the_plan(5, starts(cold=[9] * 5))
    unit = desired.units[0]
    place = replace(unit.location, line=30, column=14)
    unit = replace(unit, lines=(("spec.coldStart.deadline", place),))
    desired = replace(desired, units=(unit,))

    (found,) = check(desired, (ManifestSet(unit.ref),), plan=plan)
    (finding,) = found.findings

    assert found.complete
    assert Severity.WARNING is finding.severity
    assert ("deadline-below-starts", place) == (finding.code, finding.location)
    assert finding.message == (
        "coldStart.deadline is 300 s, but 90% of starts on g6.xlarge (image no, weights no) took "
        "up to 540 s, by 5 starts of this fleet"
    )
    assert finding.hint.endswith("set at least 540s")


def holding(*holds, policy=ZeroPolicy.AFTER_IDLE):
    wake = tuple(
        WakeSource(f"w{number}", ScrapeQuery("queue", source="epp"), minutes * MINUTE)
        for number, minutes in enumerate(holds)
    )
    return Scaling(0, 4, scale_to_zero=ScaleToZero(policy, wake=wake))


def short(scaling, learned):
    case = a_case(a_unit(pools=("l4",), scaling=scaling))
    index = an_index(COLD_NODE, WARM_NODE, cases=(case,), starts=learned)
    return SlowStarts(index.estimates, (COLD_NODE, WARM_NODE)).over_hold(case)


def test_a_start_that_outlasts_the_shortest_hold_is_found():
    """Issue D: a hold below the measured P90 is warned about."""
    found = short(holding(20, 5), starts(cold=[7, 7, 8, 9, 9]))

    assert SlowStart("g6.xlarge", "image no, weights no", 9 * MINUTE, 5) == found


@pytest.mark.parametrize(
    "scaling",
    [
        None,
        holding(5, policy=ZeroPolicy.NEVER),
        holding(0),
        holding(),
        holding(9),
    ],
    ids=["no scaling", "never at zero", "nothing holds", "nothing wakes", "long enough"],
)
def test_no_hold_is_too_short_where_nobody_waits_or_long_enough(scaling):
    assert short(scaling, starts(cold=[9] * 5)) is None


def test_the_warning_says_at_which_source_the_first_client_gets_an_error():
    learned = starts(cold=[9] * 5)
    desired, plan = the_plan(20, learned, scaling=holding(20, 5))

    (checked,) = check(desired, (ManifestSet(desired.units[0].ref),), plan=plan)

    (finding,) = checked.findings
    assert checked.complete
    assert ("hold-below-starts", Severity.WARNING) == (finding.code, finding.severity)
    assert "spec.scaling.scaleToZero.wake[1].hold" == finding.field
    assert "w1 holds a request for 300 s, but 90% of starts on g6.xlarge" in finding.message
    assert "the first client gets an error then" in finding.message


def test_a_service_may_have_both_warnings():
    desired, plan = the_plan(5, starts(cold=[9] * 5), scaling=holding(5))

    (checked,) = check(desired, (ManifestSet(desired.units[0].ref),), plan=plan)

    assert ["deadline-below-starts", "hold-below-starts"] == [f.code for f in checked.findings]

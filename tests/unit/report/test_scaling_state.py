"""Conditions of a count that follows load."""

import re

import pytest

from stoker.model.outcome import Health, Sync
from stoker.model.scale_verdict import ScaleVerdict
from stoker.model.scaling import Algorithm
from stoker.report.conditions import Judgement, conditions_of
from stoker.report.scaling_state import scaling_conditions

NAMES = ["ScalingActive", "MetricsAvailable", "ScalingLimited", "Held"]


def a_verdict(**fields) -> ScaleVerdict:
    return ScaleVerdict(Algorithm.RATIO, 3, 3, "metric queue", "1 Ready x 12 / 4", **fields)


@pytest.mark.parametrize(
    ("fields", "true"),
    [
        ({}, {"ScalingActive", "MetricsAvailable"}),
        ({"active": False, "unmeasurable": (("metric queue", "refused"),)}, set()),
        ({"limited": "maxReplicas 4"}, {"ScalingActive", "MetricsAvailable", "ScalingLimited"}),
        ({"held": "2 would do since 10:00"}, {"ScalingActive", "MetricsAvailable", "Held"}),
    ],
    ids=["follows", "blind", "limited", "held"],
)
def test_each_condition_says_its_own_thing(fields, true):
    found = scaling_conditions(a_verdict(**fields))

    assert NAMES == [c.type for c in found]
    assert true == {c.type for c in found if c.status == "True"}
    assert all(re.fullmatch(r"[A-Za-z]+", c.reason) for c in found)


def test_messages_have_no_numbers_of_this_instant():
    """A status that changes with every reading would be written with every reading."""
    held = scaling_conditions(a_verdict(held="2 would do; 3.7 requests wait"))
    blind = scaling_conditions(a_verdict(unmeasurable=(("load", "no answer in 4.1 s"),)))

    assert not any(re.search(r"\d", c.message) for c in (*held, *blind))


def test_only_a_count_that_follows_load_has_them():
    plain = Judgement(Sync.SYNCED, Health.HEALTHY, "Healthy")
    scaled = Judgement(
        Sync.SYNCED, Health.HEALTHY, "Healthy", scale=a_verdict(), suspended="a test"
    )

    assert not {*NAMES} & {c.type for c in conditions_of(plain, (), 0)}
    assert ["Healthy", *NAMES, "Suspended"] == [c.type for c in conditions_of(scaled, (), 0)][3:]

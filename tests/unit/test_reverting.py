"""What goes back to an older commit, and what does not."""

from __future__ import annotations

from dataclasses import fields

from stoker.model.fleet import ModelService
from stoker.reverting import OF_TEMPLATE

OF_THE_NEWEST = {
    "replicas",
    "scaling_mode",
    "scaling",
    "placement_mode",
    "placement_order",
    "signal_max_age_ms",
    "pools",
    "when_full",
    "min_ready",
    "max_concurrent_moves",
    "on_notice",
    "update",
    "adopt",
    "inference_pool",
    "limits",
    "priority",
    "reclaim",
}
"""Counts, places and budgets: a person may change them while a rev is blocked."""


def test_each_field_of_a_service_goes_back_or_stays():
    """A new field has to be put into one of the two."""
    assert {each.name for each in fields(ModelService)} == {*OF_TEMPLATE} | OF_THE_NEWEST
    assert not {*OF_TEMPLATE} & OF_THE_NEWEST

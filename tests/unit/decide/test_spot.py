"""The break-even discounts of semantics 6, to the digits of its table."""

from __future__ import annotations

import pytest

from stoker.decide.spot import (
    Interruption,
    break_even_discount,
    finish_cost,
    hard_kill_cost,
    migrate_cost,
)

GIVEN = Interruption(
    price_per_hour=3.0,
    breach=2.0,
    in_flight=8,
    lost_work_s=20,
    cold_start_s=92,
    drain_s=60,
    migrate_s=5,
    warm_start_s=21,
    broken=0.5,
)
"""3 USD an hour, 8 requests in flight, 2 USD a breach."""


def test_what_one_interruption_costs():
    assert 16.21 == round(hard_kill_cost(GIVEN), 2)
    assert 1.13 == round(finish_cost(GIVEN), 2)
    assert 0.022 == round(migrate_cost(GIVEN), 3)


@pytest.mark.parametrize(
    ("per_hour", "hard", "finish", "migrate"),
    [
        (0.02, "10.8", "0.75", "0.01"),
        (0.05, "27.0", "1.9", "0.04"),
        (0.10, "54.0", "3.8", "0.07"),
        (0.44, "237.7", "16.5", "0.3"),
    ],
)
def test_the_discount_that_pays_by_policy(per_hour, hard, finish, migrate):
    """0.44 is the V100 zone us-east-1f: above 100 % no discount pays."""

    def percent(cost: float, told: str) -> str:
        digits = len(told.partition(".")[2])
        return f"{100 * break_even_discount(per_hour, cost, 3.0):.{digits}f}"

    assert hard == percent(hard_kill_cost(GIVEN), hard)
    assert finish == percent(finish_cost(GIVEN), finish)
    assert migrate == percent(migrate_cost(GIVEN), migrate)


def test_at_15_percent_a_hard_kill_loses_from_a_rate_of_0028():
    cost = hard_kill_cost(GIVEN)

    assert break_even_discount(0.0277, cost, 3.0) < 0.15 < break_even_discount(0.0278, cost, 3.0)

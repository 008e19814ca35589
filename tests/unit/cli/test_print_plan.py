"""The layout of `stoker plan`, from decisions and forecasts made by hand."""

from __future__ import annotations

from dataclasses import replace

import jsonschema

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_placement,
    a_pool,
    a_ref,
    a_snapshot,
    a_spot_pool,
    a_state,
    a_unit,
)
from stoker.cli.output_schemas import output_schemas
from stoker.cli.print_plan import (
    cost_of,
    duration,
    only_namespace,
    plan_json,
    plan_steps,
    plan_text,
)
from stoker.cli.style import Style
from stoker.model.change import ChangeSet
from stoker.model.fleet import PlacementMode
from stoker.model.limits import PlacementLimits
from stoker.model.plan import (
    Attempt,
    CountReason,
    Hold,
    Placement,
    Plan,
    Readiness,
    Retirement,
    RetireStage,
    ServiceDecision,
    WarmthClass,
)
from stoker.sim.foresee import Forecast, ServiceForecast, Step

PLAIN = Style(no_color=True)
QWEN = a_ref()


def put(node, *, cold=False, p50=55_000):
    warmth = WarmthClass.COLD if cold else WarmthClass.WARM
    facts = "image yes, weights no" if cold else "image yes, weights yes"
    ready = Readiness(warmth, p50, p50 * 3 // 2, facts=facts)
    return Placement(
        f"qwen-{node}", "bbbbbbbb", node, f"uid-{node}", "l4", 1, readiness=ready, rule="soonest"
    )


def decided(*placements, replicas=2, **fields):
    return ServiceDecision(
        QWEN, PlacementMode.NODES, "bbbbbbbb", replicas, CountReason("Git"), floor=1,
        placements=placements, **fields,
    )  # fmt: skip


def forecast(*steps, lowest=1, done=60_000):
    return Forecast((ServiceForecast(QWEN, steps, lowest, done),))


def test_the_share_on_spot_is_told_before_and_after():
    """ux.md: `spot 1/3 -> 1/4 (at most 50 %)`."""
    service = a_unit(pools=("l4", "spot"), limits=PlacementLimits(spot_max_percent=50))
    desired = a_desired(service, pools=(a_pool(), a_spot_pool()))
    found = ServiceForecast(QWEN, (), 3, 60_000, ("l4", "l4", "spot"), ("l4", "l4", "l4", "spot"))
    likely = Forecast((found,))
    text = plan_steps(desired, decided(put("n1")), likely, likely, PLAIN)

    assert "  spot 1/3 -> 1/4 (at most 50 %)" in text.splitlines()
    plain = a_desired(a_unit(), pools=(a_pool(),))
    assert "spot" not in plan_steps(plain, decided(put("n1")), likely, likely, PLAIN)


def shown(decision, likely, slow=None, price=None, standing=()):
    fleet = a_desired(a_unit(replicas=2), pools=(a_pool(price_per_gpu_hour=price),))
    nodes = (a_node("n1"), a_node("a-node-with-a-long-name"))
    services = (a_state(*standing),) if standing else ()
    before = a_snapshot(*nodes, services=services)
    return plan_text(fleet, before, Plan(NOW_MS, (decision,)), likely, slow or likely, PLAIN)


def test_table_and_steps_of_a_change():
    """Columns stay aligned however long the names of nodes are."""
    steps = (
        Step(put("n1"), free_before=1),
        Step(put("a-node-with-a-long-name", cold=True, p50=160_000), replaced="n1", free_before=2),
    )
    text = shown(
        decided(put("n1")),
        forecast(*steps),
        forecast(*steps, done=90_000),
        price="0.80",
        standing=(a_placement("n1"),),
    )

    assert text == (
        "SERVICE   REPLICAS  MODEL REVISION  RESTARTS  COLD STARTS  LOWEST READY"
        "  DONE P50/P90  USD/H\n"
        "llm/qwen  1 -> 2    aaaaaaa         1         1            1 (floor 1) "
        "  1m00s / 1m30s  0.80\n"
        "\n"
        "llm/qwen, step by step (disruption.maxConcurrentMoves 1)\n"
        "  1  create   n1                             Warm: image yes, weights yes"
        "  55s / 1m23s (prior)    1 GPU free   by soonest\n"
        "  2  replace  n1 -> a-node-with-a-long-name  Cold: image yes, weights no "
        "  2m40s / 4m00s (prior)  2 GPUs free  by soonest\n"
    ).replace("DONE P50/P90  USD/H", "DONE P50/P90   USD/H")


def test_a_group_names_all_its_nodes_and_the_scheduler_no_rule():
    group = replace(put("n1"), nodes=("n1", "n2"), size=2)
    free = Placement("qwen", "bbbbbbbb", "", "", "l4", 1)
    text = shown(decided(group), forecast(Step(group), Step(free)))

    assert "  1  create  n1+n2 " in text
    assert text.splitlines()[-1] == "  2  create  (the scheduler chooses)"


def test_a_service_that_stays_is_only_counted():
    assert shown(decided(put("n1")), forecast()) == "1 service unchanged\n"


def test_a_hold_says_held_and_what_would_help():
    """`never` would frighten: it is held until something changes."""
    hold = Hold("HeldNoCapacity", "1 of 2 replicas have no place", "1 free GPU on l4")
    text = shown(decided(put("n1"), holds=(hold,)), forecast(done=None))

    assert "  held  " in text
    assert "  !  HeldNoCapacity: 1 of 2 replicas have no place\n     1 free GPU on l4\n" in text
    assert "never" not in text


def test_a_new_service_has_no_lowest_ready():
    """Nothing stands, so nothing can fall below the floor."""
    row = shown(decided(put("n1")), forecast(Step(put("n1")), lowest=0)).splitlines()[1]

    assert "(floor" not in row
    assert "0 -> 2" in row


def test_nodes_turned_away_leave_out_those_that_are_used():
    """A node that this change fills is not one that was refused."""
    attempts = (
        Attempt("n1", "l4", "0 of 1 GPUs free", "gpus"),
        Attempt("n9", "l4", "cordoned", "cordoned"),
    )
    text = shown(decided(put("n1"), attempts=attempts), forecast(Step(put("n1"))))

    assert "  not used   n9: cordoned\n" in text
    assert "0 of 1" not in text


def test_what_leaves_without_a_successor_is_told():
    leaving = Retirement("qwen-n2", "u", RetireStage.DRAIN, "scaled down")

    assert "  -  retire   qwen-n2: scaled down" in shown(
        decided(put("n1"), replicas=1, retirements=(leaving,)), forecast()
    )


def test_the_cost_is_that_of_all_steps():
    """A diff tells the next step; who merges pays for all of them."""
    steps = (
        Step(put("n1", cold=True, p50=160_000), free_before=1),
        Step(put("n2", cold=True, p50=20_000), replaced="n1", free_before=1),
        Step(put("n3"), replaced="n2", free_before=1),
    )
    before = a_snapshot(a_node("n1"), services=(a_state(a_placement("n1")),))
    likely = Forecast((ServiceForecast(QWEN, steps, 1, 60_000),), gpus_peak=3)
    cost = cost_of(before, Plan(NOW_MS, (decided(put("n1")),)), likely)

    assert str(cost) == (
        "Cost: GPUs at most 3, pods restarted 2, cold starts 2 (3m00s), lowest Ready 1 (llm/qwen)"
    )


def test_a_new_service_has_no_lowest_ready_in_the_cost():
    likely = forecast(Step(put("n1"), free_before=1))
    cost = cost_of(a_snapshot(a_node("n1")), Plan(NOW_MS, (decided(put("n1")),)), likely)

    assert cost.lowest is None
    assert "lowest" not in str(cost)


def test_json_is_as_published():
    steps = (Step(put("n1"), replaced="n2", free_before=1),)
    decision = decided(
        put("n1"),
        holds=(Hold("HeldNoCapacity", "m", "r"),),
        retirements=(Retirement("qwen-n2", "u", RetireStage.DRAIN, "new rev"),),
    )
    fleet = a_desired(a_unit())
    likely = forecast(*steps, done=None)
    document = plan_json(fleet, Plan(NOW_MS, (decision,)), likely, likely, "0" * 64, ChangeSet())

    jsonschema.validate(document, output_schemas()["Plan"])
    assert document["services"][0]["doneP50Ms"] is None


def test_a_namespace_shows_only_its_services():
    plan = Plan(NOW_MS, (decided(put("n1")),))

    assert only_namespace(plan, "web").decisions == ()
    assert only_namespace(plan, "llm") == plan


def test_durations_are_rounded_up_and_short():
    assert [duration(ms) for ms in (None, 0, 54_001, 160_000, 3_900_000)] == [
        "never", "0s", "55s", "2m40s", "1h05m",
    ]  # fmt: skip

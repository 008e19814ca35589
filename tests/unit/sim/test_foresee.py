"""What a plan leads to, played on a model: `stoker plan` prints it."""

from itertools import pairwise

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_placement,
    a_ref,
    a_replica,
    a_service,
    a_snapshot,
    a_state,
    a_unit,
    some_shapes,
)
from stoker.decide.ready_in import PROVISION_MS, Facts, fetch_ms
from stoker.model.fleet import WhenFull
from stoker.model.history import History
from stoker.objects.names import place_in_pool
from stoker.sim.foresee import ServiceForecast, foresee
from unit.decide.index import warm

QWEN = a_ref()
NEW = "bbbbbbbb"


def forecast(unit, *nodes, standing=(), rev=NEW, slow=False) -> ServiceForecast:
    desired = a_desired(unit)
    states = [a_state(*standing)] if standing else []
    snapshot = a_snapshot(*nodes, services=states)
    shapes = some_shapes(desired, rev)
    return foresee(desired, shapes, snapshot, History(), NOW_MS, slow=slow).of(QWEN)


def standing_on(*nodes: str):
    return tuple(a_placement(node, a_replica(f"pod-{node}", node)) for node in nodes)


def test_a_node_that_has_to_be_added_is_waited_for():
    """whenFull: Unpinned: one step in the pool, as long as a node and a cold start take."""
    unit = a_unit(replicas=1, when_full=WhenFull.UNPINNED)
    found = forecast(unit, a_node("n1", gpus=1, used=1))

    assert [place_in_pool("l4")] == [step.placement.node for step in found.steps]
    assert found.done_ms is not None
    assert found.done_ms > PROVISION_MS
    assert ("l4",) == found.pools_after


def test_first_placements_start_side_by_side():
    """Two starts on two nodes take as long as one, where neither has to fetch anything."""
    nodes = (warm("n1", gpus=1), warm("n2", gpus=1))
    one, two = (forecast(a_unit(replicas=count), *nodes) for count in (1, 2))

    assert {"n1", "n2"} == {step.placement.node for step in two.steps}
    assert one.done_ms == two.done_ms
    assert 0 == two.lowest_ready


def test_cold_starts_of_one_registry_and_hub_are_done_one_after_the_other():
    nodes = (a_node("n1", gpus=1), a_node("n2", gpus=1), a_node("n3", gpus=1))
    done = [forecast(a_unit(replicas=count), *nodes).done_ms or 0 for count in (1, 2, 3)]
    fetches = fetch_ms(a_service(), Facts())

    assert [max(fetches)] * 2 == [after - before for before, after in pairwise(done)]


def test_an_update_with_a_free_gpu_never_goes_below_what_stands():
    """Surge first: the lowest count of Ready replicas is the present one."""
    nodes = [a_node("n1", gpus=1), a_node("n2", gpus=1), a_node("n3", gpus=1)]
    found = forecast(a_unit(replicas=2), *nodes, standing=standing_on("n1", "n2"))

    assert 2 == found.lowest_ready
    assert 2 == len(found.steps)
    assert found.done_ms is not None


def test_an_update_on_a_full_pool_says_how_low_it_goes():
    """Drain-then-replace is worth a warning in the pull request."""
    nodes = [a_node("n1", gpus=1), a_node("n2", gpus=1)]
    found = forecast(a_unit(replicas=2), *nodes, standing=standing_on("n1", "n2"))

    assert 1 == found.lowest_ready
    assert ["n1", "n2"] == sorted(step.replaced for step in found.steps)


def test_a_held_change_is_never_done():
    """A replica that fits nowhere has no time at which it is Ready."""
    found = forecast(a_unit(replicas=2), a_node("n1", gpus=1))

    assert found.done_ms is None


def test_the_slow_forecast_is_not_faster():
    """P90 bounds P50."""
    likely = forecast(a_unit(replicas=1), a_node("n1", gpus=1))
    slow = forecast(a_unit(replicas=1), a_node("n1", gpus=1), slow=True)

    assert likely.done_ms is not None
    assert slow.done_ms is not None
    assert likely.done_ms <= slow.done_ms

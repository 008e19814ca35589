"""A narrow pass leaves what a whole one would: what it does not look at has no news."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from stoker.cli.world import World, WorldNode
from stoker.model.outcome import Result
from stoker.model.refs import ObjectRef
from stoker.objects.names import OWNER
from stoker.objects.wishes import SUSPEND
from stoker.reconcile import Pass
from stories.faults import forbidding
from stories.files import NEW, a_config_map, a_service, the_fleet, the_village
from stories.looks import a_pass, deployments, is_clean, rest

SETTLED = {Result.UNCHANGED, Result.KEPT, Result.SKIPPED}
SIDE = ObjectRef("", "ConfigMap", "llm", "side")


def seen(done: Pass) -> set[str]:
    """The units that a narrow pass looked at."""
    assert done.only is not None
    return {str(unit) for unit in done.only}


def results(done: Pass) -> set[Result]:
    """What came of everything that was compared."""
    assert done.outcome is not None
    return {item.result for unit in done.outcome.units for item in unit.objects}


def test_a_fleet_at_rest_is_not_looked_at(world):
    """No news, no comparison."""
    assert a_pass(world).only == frozenset()


def test_one_changed_unit_is_looked_at_alone(world):
    """A commit costs what it changes."""
    files = {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})}
    world.commit("Another value", files)
    done = a_pass(world)
    assert seen(done) == {"Bundle/llm/side"}
    assert results(done) == {Result.CHANGED}


def test_an_edited_object_brings_its_unit_into_view(world):
    """Drift is news, and mended in the same pass."""
    world.cluster.patch(SIDE, "merge", {"data": {"key": "mine"}}, manager="kubectl-edit")
    assert seen(a_pass(world)) == {"Bundle/llm/side"}
    assert world.cluster.get(SIDE)["data"] == {"key": "value"}


def test_an_autoscaler_brings_its_target_into_view(world):
    """Who owns a count is told by another object than the one that has it."""
    workload = deployments(world, "other")[0]["metadata"]["name"]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload}
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scaler", "namespace": "llm"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 1},
    }
    world.cluster.create(body, manager="kubectl-create")
    assert "ModelService/llm/other" in seen(a_pass(world))


@pytest.mark.parametrize(
    "files",
    [
        the_fleet(a_service(replicas=2), a_service("other")),  # a unit goes
        the_village() | the_fleet(extra={"more.yaml": a_config_map("more")}),  # one comes
        {"bundles/side/side.yaml": a_config_map("elsewhere")},  # an object goes
    ],
    ids=["a unit goes", "a unit comes", "an object goes"],
)
def test_what_may_delete_is_judged_by_a_whole_pass(world, files):
    """What left Git is told by what all units render."""
    gone = {path: None for path in the_village() if path not in files and len(files) > 1}
    world.commit("Another set", {**files, **gone})
    assert a_pass(world).only is None


def test_an_object_with_our_mark_that_no_unit_has_is_judged_by_a_whole_pass(world):
    """cases.md row 71's kin: an orphan is found by its mark."""
    stray = ObjectRef("", "ConfigMap", "llm", "stray")
    marked = world.cluster.get(SIDE)["metadata"]["annotations"][OWNER]
    mark = {OWNER: marked.removesuffix("/side") + "/stray"}
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": stray.name, "namespace": "llm", "annotations": mark},
    }
    world.cluster.create(body, manager="kubectl-create")
    assert a_pass(world).only is None


def test_a_pass_after_ten_minutes_looks_at_all(world):
    """What no event told is found then."""
    world.clock.wait(601)
    assert a_pass(world).only is None
    assert a_pass(world).only is not None


def test_what_could_not_be_read_ends_narrow_passes(world, faults):
    """Unknown is not unchanged."""
    faults.refuse = forbidding("/configmaps")
    assert a_pass(world).only is None


# ------------------------------------------------------------------ any history
Deed = Callable[[World], None]


def _edit(world: World) -> None:
    world.cluster.patch(SIDE, "merge", {"data": {"key": "mine"}}, manager="kubectl-edit")


def _delete_side(world: World) -> None:
    world.cluster.delete(SIDE, uid=world.cluster.get(SIDE)["metadata"]["uid"])


def _scale(world: World) -> None:
    name = deployments(world)[0]["metadata"]["name"]
    ref = ObjectRef("apps", "Deployment", "llm", name)
    world.cluster.patch(ref, "merge", {"spec": {"replicas": 0}}, manager="kubectl")


def _delete_budget(world: World) -> None:
    ref = ObjectRef("policy", "PodDisruptionBudget", "llm", "tiny")
    world.cluster.delete(ref, uid=world.cluster.get(ref)["metadata"]["uid"])


def _kill_a_pod(world: World) -> None:
    pod = world.objects("", "Pod", "llm")[0]["metadata"]
    world.cluster.delete(ObjectRef("", "Pod", "llm", pod["name"]), uid=pod["uid"])


def _cordon(world: World, *, on: bool = True) -> None:
    node = ObjectRef("", "Node", "", "gpu-1")
    world.cluster.patch(node, "merge", {"spec": {"unschedulable": on}}, manager="kubectl")


def _another_value(world: World) -> None:
    world.commit("Value", {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})})


def _fewer(world: World) -> None:
    world.commit("Fewer", {"models/tiny.yaml": a_service(replicas=1)})


def _more(world: World) -> None:
    world.commit("More", {"models/tiny.yaml": a_service(replicas=2)})


def _newer(world: World) -> None:
    world.commit("Newer", {"models/other.yaml": a_service("other", revision=NEW)})


def _wrong(world: World) -> None:
    world.commit("Wrong", {"bundles/side/side.yaml": "kind: [\n"})


def _suspend(world: World, text: str | None = '{"reason":"x"}') -> None:
    ref = world.cluster.resource("stoker.dev", "ModelService")
    mirror = ObjectRef("stoker.dev", "ModelService", "llm", "tiny", ref.version)
    body: dict[str, Any] = {"metadata": {"annotations": {SUSPEND: text}}}
    world.cluster.patch(mirror, "merge", body, manager="stoker-cli")


DEEDS: tuple[Deed, ...] = (
    _edit,
    _delete_side,
    _scale,
    _delete_budget,
    _kill_a_pod,
    _cordon,
    lambda world: _cordon(world, on=False),
    _another_value,
    _fewer,
    _more,
    _newer,
    _wrong,
    _suspend,
    lambda world: _suspend(world, None),
)


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.full) for n in (2, 3))])
def test_after_any_history_a_whole_pass_finds_nothing_more(settled, seed):
    """What narrow passes left out was at rest: nothing to write, nothing to say anew."""
    world = settled(the_village(), *(WorldNode(f"gpu-{number}") for number in range(1, 6)))
    numbers = random.Random(seed)
    for deed in numbers.sample(DEEDS, len(DEEDS)):
        try:
            deed(world)
        except LookupError:
            continue  # somebody before has taken what it needs
        world.settle()
        told = world.work.state.previous
        assert world.work.last.only is not None or not is_clean(world)
        world.work.state.looked = None
        whole = a_pass(world)
        assert whole.only is None
        assert results(whole) <= SETTLED | {Result.WAITING, Result.FAILED}
        assert told.units == world.work.state.previous.units
        assert told.substance == world.work.state.previous.substance
    _another_value(world)
    _suspend(world, None)
    _cordon(world, on=False)
    rest(world)
    assert is_clean(world)

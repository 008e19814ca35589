"""`dependsOn[].ready`: units that wait for what an expression says of live objects."""

from __future__ import annotations

import pytest
import yaml

from stoker.model.refs import ObjectRef, UnitRef
from stories.files import a_config_map, the_fleet
from stories.looks import (
    a_pass,
    conditions,
    data,
    fleet_status,
    is_clean,
    message,
    rest,
    standing,
    tell,
    unit_status,
)
from stories.test_order import with_spec

SIDE, LATE = "Bundle/llm/side", "Bundle/llm/late"
GATE = ObjectRef("", "Service", "llm", "gate", "v1")
ANNOUNCED = (
    "objects.filter(o, o.kind == 'Service').all(o, "
    "o.status.?conditions.orValue([]).exists(c, c.type == 'Announced' && c.status == 'True'))"
)


def a_village_with(late: dict[str, str], **ready: str) -> dict[str, str]:
    """A bundle `side` of a Service, and `late`, which depends on it."""
    gate = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gate"}}
    gate["spec"] = {"ports": [{"port": 80}], "selector": {"app": "gate"}}
    files = the_fleet(side={"gate.yaml": yaml.safe_dump(gate)}, late=late)
    path = "bundles/late/bundle.yaml"
    depends_on = [{"kind": "Bundle", "name": "side", **ready}]
    return {**files, path: with_spec(files[path], dependsOn=depends_on)}


def announce(world, status: str) -> None:
    """What the controller of such Services writes; it changes nobody's health."""
    condition = {"type": "Announced", "status": status, "reason": "r", "message": ""}
    condition["lastTransitionTime"] = "2026-11-30T00:00:00Z"
    patch = {"status": {"conditions": [condition]}}
    world.cluster.patch(GATE, "merge", patch, manager="announcer", subresource="status")


def test_a_unit_waits_until_an_expression_about_live_objects_holds(new_world):
    """`side` is Healthy all the time; the expression is what counts."""
    world = new_world()
    world.commit("First", a_village_with({"m.yaml": a_config_map("m")}, ready=ANNOUNCED))
    rest(world)

    assert "Healthy" == unit_status(world, SIDE)["health"]["status"]
    assert ("False", "WaitingForDependency") == conditions(unit_status(world, LATE))["Ready"]
    told = f"waits for {SIDE}: it is not ready: {ANNOUNCED} is false"
    assert told == message(unit_status(world, LATE), "Ready")
    assert "ConfigMap/m" not in standing(world)

    announce(world, "False")
    tell(world)
    assert "ConfigMap/m" not in standing(world)

    announce(world, "True")
    tell(world)
    assert "ConfigMap/m" in standing(world)
    rest(world)
    assert is_clean(world)


def test_what_was_let_through_stays_when_the_expression_no_longer_holds(new_world):
    world = new_world()
    files = a_village_with({"m.yaml": a_config_map("m")}, ready=ANNOUNCED)
    world.commit("First", files)
    rest(world)
    announce(world, "True")
    rest(world)

    announce(world, "False")
    world.cluster.delete(ObjectRef("", "ConfigMap", "llm", "m"))
    rest(world)
    assert "ConfigMap/m" in standing(world), "what runs is repaired"

    world.commit("New", {"bundles/late/m.yaml": a_config_map("m", {"key": "new"})})
    rest(world)
    assert {"key": "value"} == data(world, "m"), "the new revision waits"


def test_an_expression_is_asked_at_the_moment_and_not_of_the_last_report(new_world):
    """What it asks of may change without a pass; an old answer must not let anything go on."""
    world = new_world()
    world.commit("First", a_village_with({"m.yaml": a_config_map("m")}, ready=ANNOUNCED))
    rest(world)
    announce(world, "True")
    rest(world)

    announce(world, "False")
    world.commit("New", {"bundles/late/m.yaml": a_config_map("m", {"key": "new"})})
    a_pass(world)

    assert {"key": "value"} == data(world, "m")


@pytest.mark.parametrize(
    ("ready", "why"),
    [
        ("objects[7].kind == 'x'", "Index error"),
        ("objects[0].status.missing == 'x'", "Key not found"),
        ("objects[0].metadata.name", "comes to STRING"),
    ],
)
def test_an_expression_that_fails_is_never_ready_and_says_why(new_world, ready, why):
    """Unknown is not ready (and not wrong either: other objects may be there tomorrow)."""
    world = new_world()
    world.commit("First", a_village_with({"m.yaml": a_config_map("m")}, ready=ready))
    rest(world)

    told = message(unit_status(world, LATE), "Ready")
    assert told.startswith(f"waits for {SIDE}: whether it is ready is not known: {why}")
    assert told.endswith(f"(asked: {ready})")
    assert "ConfigMap/m" not in standing(world)


def test_a_wrong_expression_is_told_by_line_and_column_and_breaks_its_unit_alone(new_world):
    world = new_world()
    world.commit("First", a_village_with({"m.yaml": a_config_map("m")}, ready="objects.size() >"))
    rest(world)

    (error,) = fleet_status(world)["errors"]
    assert ("invalid-expression", "bundles/late/bundle.yaml") == (error["code"], error["path"])
    assert (12, 28) == (error["line"], error["column"])
    assert "Service/gate" in standing(world)
    assert "ConfigMap/m" not in standing(world)


def test_while_an_expression_is_waited_for_every_change_of_its_objects_is_news(new_world):
    """The watch threads read `awaited`; an idle fleet is woken by nothing that nobody asks of."""
    world = new_world()
    world.commit("First", a_village_with({"m.yaml": a_config_map("m")}, ready=ANNOUNCED))
    rest(world)
    observer = world.work.parts.observer
    side = UnitRef("Bundle", "llm", "side")

    assert {side} == observer.awaited
    announce(world, "True")
    a_pass(world)
    assert frozenset() == observer.awaited


def test_an_answer_that_came_during_the_pass_itself_asks_for_another_at_once(new_world):
    """A restarted controller knows no objects of side before it compared them."""
    world = new_world()
    world.commit("First", a_village_with({"m.yaml": a_config_map("m")}, ready=ANNOUNCED))
    rest(world)
    world.stop_controller()
    announce(world, "True")

    first = a_pass(world)

    assert "ConfigMap/m" not in standing(world)
    assert first.now_ms == first.wake_at_ms
    a_pass(world)
    assert "ConfigMap/m" in standing(world)

"""What the API server refuses in part: the rest goes on, nothing is lost, nobody hammers it."""

from __future__ import annotations

from stoker.model.refs import ObjectRef
from stories.faults import answer, forbidding
from stories.files import a_bundle, a_config_map
from stories.looks import (
    conditions,
    data,
    errors,
    is_clean,
    message,
    standing,
    tell,
    unit_status,
)
from stories.test_bad_cluster import SIDE, WIDGET, a_crd, side_of

NEWS = {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})}
NO_SPACE = "etcdserver: mvcc: database space exceeded"
FEW = 5
"""Tries of one object within half a minute, when each of them fails: 5 s, 10 s, 20 s and so on."""
HALF_A_MINUTE = 30
LONGEST_WAIT = 45
"""After half a minute of failures nothing is put off for longer."""


def tries(faults, path: str) -> int:
    return sum(path in write for write in faults.writes)


def test_a_server_without_space_is_told_in_git_and_not_hammered(world, faults):
    """reliability-security c.2 row 31: writes fail, reads go on; it passes without a person."""

    def refuse(request):
        if request.method == "GET" or "selfsubject" in request.path:
            return None
        return answer(500, "InternalError", NO_SPACE)

    before = standing(world)
    faults.refuse = refuse
    world.commit("Change", NEWS)
    tell(world)
    world.advance(HALF_A_MINUTE)

    status = unit_status(world, SIDE)
    assert ("False", "NotStalled") == conditions(status)["Stalled"]
    assert NO_SPACE in message(status, "Reconciling")
    assert before == standing(world)
    assert tries(faults, "/configmaps/side") <= FEW

    faults.refuse = lambda request: None
    world.advance(LONGEST_WAIT)

    assert {"key": "new"} == data(world, "side")
    assert "True" == conditions(unit_status(world, SIDE))["Ready"][0]


def test_of_ten_objects_nine_are_applied_and_none_is_pruned(world, faults):
    """reliability-security c.2 row 39: a webhook denies one; its words are kept."""
    names = [f"c{number}" for number in range(10)]
    denied = 'admission webhook "policy.example.org" denied the request: c3 is not welcome'

    def refuse(request):
        is_write = request.method in {"PATCH", "POST"}
        if is_write and request.path.endswith("/configmaps/c3"):
            return answer(403, "Forbidden", denied)
        return None

    faults.refuse = refuse
    world.commit(
        "Ten for one",
        {
            "bundles/side/bundle.yaml": a_bundle("side", tuple(f"{name}.yaml" for name in names)),
            "bundles/side/side.yaml": None,
            **{f"bundles/side/{name}.yaml": a_config_map(name) for name in names},
        },
    )
    tell(world)

    status = unit_status(world, SIDE)
    assert ("True", "Forbidden") == conditions(status)["Stalled"]
    assert "c3 is not welcome" in message(status, "Stalled")
    assert [("forbidden", "bundles/side/c3.yaml", 1)] == errors(status)
    assert 9 == sum(data(world, name) == {"key": "value"} for name in names)
    assert {"key": "value"} == data(world, "side"), "what left Git stays until all else stands"

    faults.refuse = lambda request: None
    world.advance(LONGEST_WAIT)

    assert {} == data(world, "side")
    assert is_clean(world)


def test_an_exceeded_quota_is_told_and_waited_out(world, faults):
    """reliability-security c.2 row 43: the server's reason, no hot loop, no one called twice."""
    exceeded = (
        'configmaps "more" is forbidden: exceeded quota: few, requested: count/configmaps=1,'
        " used: count/configmaps=5, limited: count/configmaps=5"
    )

    def refuse(request):
        is_write = request.method in {"PATCH", "POST"}
        if is_write and request.path.endswith("/configmaps/more"):
            return answer(403, "Forbidden", exceeded)
        return None

    faults.refuse = refuse
    world.commit("More", {**side_of(more=a_config_map("more")), **NEWS})
    tell(world)
    world.advance(HALF_A_MINUTE)

    status = unit_status(world, SIDE)
    assert "exceeded quota: few" in message(status, "Ready")
    assert {"key": "new"} == data(world, "side")
    assert tries(faults, "/configmaps/more") <= FEW

    faults.refuse = lambda request: None
    world.advance(LONGEST_WAIT)

    assert {"key": "value"} == data(world, "more")
    assert is_clean(world)


def test_a_kind_whose_conversion_webhook_is_down_is_neither_written_nor_pruned(world, faults):
    """reliability-security c.2 row 36: that kind is unknown, every other goes on."""
    world.cluster.apply(a_crd("Widget", "widgets"), manager="operator")
    world.commit("A widget", side_of(one=WIDGET))
    world.settle()
    down = "conversion webhook for example.org/v1, Kind=Widget failed: connection refused"

    def refuse(request):
        return answer(500, "InternalError", down) if "/widgets" in request.path else None

    faults.refuse = refuse
    world.commit("Without it", {**side_of(), **NEWS, "bundles/side/one.yaml": None})
    world.stop_controller()
    world.start_controller()
    tell(world)

    assert 1 == len(world.objects("example.org", "Widget", "llm"))
    assert {"key": "new"} == data(world, "side")
    assert "live-state-unknown" in str(unit_status(world, SIDE)["notes"])

    faults.refuse = lambda request: None
    world.advance(LONGEST_WAIT)

    assert [] == list(world.objects("example.org", "Widget", "llm"))
    assert is_clean(world)


def test_fifty_managers_of_an_object_cost_no_write_and_stay(world, faults):
    """reliability-security c.2 row 34: applies work, and no entry is added by each pass."""
    side = ObjectRef("", "ConfigMap", "llm", "side")
    for number in range(50):
        world.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": "side",
                    "namespace": "llm",
                    "labels": {f"team-{number}.example.org/seen": "yes"},
                },
            },
            manager=f"labeller-{number}",
        )
    entries = len(world.cluster.get(side)["metadata"]["managedFields"])
    faults.asked.clear()
    world.advance(20)

    assert [] == [write for write in faults.writes if "/configmaps/side" in write]

    world.commit("Change", NEWS)
    world.settle()

    assert {"key": "new"} == data(world, "side")
    assert entries == len(world.cluster.get(side)["metadata"]["managedFields"])
    assert 50 == len(world.cluster.get(side)["metadata"]["labels"])


def test_a_right_to_delete_that_was_revoked_is_told_and_nothing_else_stops(world, faults):
    """reliability-security c.2 row 53: 403 on delete is an error of its unit."""
    world.commit("More", side_of(more=a_config_map("more")))
    world.settle()
    faults.refuse = forbidding("/configmaps/more", methods=("DELETE",))

    world.commit("Less", {**side_of(), **NEWS, "bundles/side/more.yaml": None})
    tell(world)
    world.advance(HALF_A_MINUTE)

    assert {"key": "value"} == data(world, "more")
    assert {"key": "new"} == data(world, "side")
    assert "no RBAC rule allows it" in message(unit_status(world, SIDE), "Ready")
    assert tries(faults, "/configmaps/more") <= FEW

    faults.refuse = lambda request: None
    world.advance(LONGEST_WAIT)

    assert {} == data(world, "more")
    assert is_clean(world)

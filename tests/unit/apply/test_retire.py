"""Leaving without loss: traffic off, scale down, delete."""

import pytest

from stoker.kube.errors import api_error
from stoker.model.outcome import Result
from stoker.model.plan import Retirement, RetireStage
from stoker.model.refs import ref_from_manifest
from stoker.model.times import rfc3339
from stoker.objects import names
from unit.apply.apply_world import World, outcomes
from unit.diff.diff_builders import QWEN, config, placement, rendered

OLD = placement("qwen-old", replicas=2)
OLD_REF = ref_from_manifest(OLD)
COST = "controller.kubernetes.io/pod-deletion-cost"


def pod(name):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "llm",
            "labels": {names.SERVICE_LABEL: "qwen", names.TRAFFIC_LABEL: "true"},
        },
        "spec": {"containers": [{"name": "engine", "image": "x"}]},
    }


@pytest.fixture
def world():
    found = World()
    found.run(rendered(QWEN, OLD))
    found.make(pod("p1"))
    found.make(pod("p2"))
    return found


def run(world, stage, *, keep=0, pods=("p1",), uid="", **options):
    uid = uid or world.get(OLD)["metadata"]["uid"]
    leaving = Retirement("qwen-old", uid, stage, "node goes away", pods=pods, keep=keep)
    return world.run(rendered(QWEN, config(), kept=(OLD_REF,), retirements=(leaving,)), **options)


def test_traffic_is_taken_off_the_named_pods_only(world):
    outcome = run(world, RetireStage.STOP_TRAFFIC)
    first, second = world.get(pod("p1")), world.get(pod("p2"))

    assert names.TRAFFIC_LABEL not in first["metadata"]["labels"]
    assert first["metadata"]["annotations"] == {names.DRAINING_SINCE: rfc3339(world.clock.now_ms())}
    assert second["metadata"]["labels"][names.TRAFFIC_LABEL] == "true"
    assert outcomes(outcome)["p1"].result is Result.CHANGED
    assert "node goes away" in outcomes(outcome)["p1"].message


def test_the_pod_is_patched_by_its_uid(world):
    """A namesake that was made meanwhile keeps its traffic."""

    def before(request):
        if request.method == "PATCH" and request.path.endswith("/pods/p1"):
            world.server.before = None
            world.delete(pod("p1"))
            world.make(pod("p1"))

    world.server.before = before
    outcome = run(world, RetireStage.STOP_TRAFFIC)

    assert outcomes(outcome)["p1"].code == "waiting-for-live-state"
    assert world.get(pod("p1"))["metadata"]["labels"][names.TRAFFIC_LABEL] == "true"


def test_where_others_stay_the_drained_pods_go_first(world):
    """The ReplicaSet must not choose a serving pod."""
    run(world, RetireStage.STOP_TRAFFIC, keep=1)

    assert world.get(pod("p1"))["metadata"]["annotations"][COST] == "-1000"


def test_a_pod_that_is_gone_or_not_the_services_is_left_alone(world):
    foreign = pod("p3")
    foreign["metadata"]["labels"][names.SERVICE_LABEL] = "other"
    world.make(foreign)
    outcome = run(world, RetireStage.STOP_TRAFFIC, pods=("none", "p3"))

    assert outcomes(outcome)["none"].result is Result.UNCHANGED
    assert outcomes(outcome)["p3"].code == "waiting-for-live-state"
    assert world.get(foreign)["metadata"]["labels"][names.TRAFFIC_LABEL] == "true"


def test_draining_sends_nothing(world):
    run(world, RetireStage.DRAIN)
    mark = world.mark
    outcome = run(world, RetireStage.DRAIN)

    assert world.writes(mark) == []
    assert "qwen-old" not in outcomes(outcome)


@pytest.mark.parametrize("keep", [0, 1])
def test_scaling_down_changes_the_count_and_nothing_else(world, keep):
    before = world.get(OLD)
    outcome = run(world, RetireStage.SCALE_TO_ZERO, keep=keep)
    after = world.get(OLD)

    assert after["spec"]["replicas"] == keep
    assert after["spec"]["template"] == before["spec"]["template"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert outcomes(outcome)["qwen-old"].result is Result.CHANGED
    assert world.stored()["qwen", "qwen-old"] == after["metadata"]["uid"]


def test_scaling_down_twice_writes_once(world):
    run(world, RetireStage.SCALE_TO_ZERO)
    mark = world.mark
    outcome = run(world, RetireStage.SCALE_TO_ZERO)

    assert world.writes(mark) == []
    assert outcomes(outcome)["qwen-old"].result is Result.UNCHANGED


def test_a_count_that_a_person_raised_is_taken_back_on_the_way_out(world):
    world.patch(OLD, {"spec": {"replicas": 9}}, manager="kubectl", subresource="scale")
    run(world, RetireStage.SCALE_TO_ZERO)

    assert world.get(OLD)["spec"]["replicas"] == 0


def test_another_deployment_of_that_name_is_not_scaled(world):
    outcome = run(world, RetireStage.SCALE_TO_ZERO, uid="other-uid")

    assert outcomes(outcome)["qwen-old"].code == "waiting-for-live-state"
    assert world.get(OLD)["spec"]["replicas"] == 2


def test_a_deployment_that_is_gone_or_going_is_not_scaled(world):
    uid = world.get(OLD)["metadata"]["uid"]
    world.patch(OLD, {"metadata": {"finalizers": ["x.io/y"]}})
    world.delete(OLD)
    going = run(world, RetireStage.SCALE_TO_ZERO, uid=uid)
    world.patch(OLD, {"metadata": {"finalizers": None}})
    gone = run(world, RetireStage.SCALE_TO_ZERO, uid=uid)

    assert outcomes(going)["qwen-old"].code == "deletion-pending"
    assert outcomes(gone)["qwen-old"].result is Result.UNCHANGED
    assert ("qwen", "qwen-old") not in world.stored()


def test_an_empty_deployment_is_deleted_by_uid(world):
    uid = world.get(OLD)["metadata"]["uid"]
    outcome = run(world, RetireStage.DELETE, uid=uid)

    assert outcomes(outcome)["qwen-old"].result is Result.DELETED
    assert not world.has(OLD)
    assert ("qwen", "qwen-old") not in world.stored()
    assert world.caches.deleted == [(OLD_REF, uid)]


def test_another_deployment_of_that_name_is_not_deleted(world):
    outcome = run(world, RetireStage.DELETE, uid="other-uid")

    assert outcomes(outcome)["qwen-old"].code == "uid-differs"
    assert world.has(OLD)


def test_additions_come_before_departures(world):
    uid = world.get(OLD)["metadata"]["uid"]
    leaving = Retirement("qwen-old", uid, RetireStage.SCALE_TO_ZERO, "moved")
    mark = world.mark
    sets = rendered(QWEN, placement("qwen-new"), kept=(OLD_REF,), retirements=(leaving,))
    outcome = world.run(sets)
    sent = [name for method, name in world.writes(mark) if method == "PATCH"]

    assert sent == ["qwen-new", "qwen-old"]
    assert outcome.units[0].applied


def test_errors_of_a_step_are_its_outcome(world):
    def refuse(method):
        def before(request):
            if request.method == method and (
                "/pods/" in request.path or "qwen-old" in request.path
            ):
                raise api_error(403, {"message": "no"}, what="x")

        return before

    uid = world.get(OLD)["metadata"]["uid"]
    for method, stage, name in (
        ("PATCH", RetireStage.STOP_TRAFFIC, "p1"),
        ("GET", RetireStage.SCALE_TO_ZERO, "qwen-old"),
        ("DELETE", RetireStage.DELETE, "qwen-old"),
    ):
        world.server.before = refuse(method)
        outcome = run(world, stage, uid=uid)
        assert outcomes(outcome)[name].code == "forbidden"

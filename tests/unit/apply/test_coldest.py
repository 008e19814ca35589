"""Which pods a ReplicaSet should remove, said just before their count is lowered."""

from __future__ import annotations

import pytest

from stoker.kube.errors import api_error
from stoker.model.outcome import Result
from stoker.objects import names
from unit.apply.apply_world import World, outcomes
from unit.diff.diff_builders import QWEN, placement, rendered

COST = "controller.kubernetes.io/pod-deletion-cost"


def pod(name, **annotations):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "llm",
            "labels": {names.SERVICE_LABEL: "qwen"},
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": "engine", "image": "x"}]},
    }


def cost(world, name):
    return world.get(pod(name))["metadata"].get("annotations", {}).get(COST)


@pytest.fixture
def world():
    found = World()
    found.run(rendered(QWEN, placement("qwen", replicas=3)))
    for name in ("p1", "p2", "p3"):
        found.make(pod(name))
    return found


def lowered(world, *pods, replicas=1):
    return world.run(rendered(QWEN, placement("qwen", replicas=replicas), coldest=pods))


def test_those_that_leave_are_marked_the_coldest_lowest(world):
    """A pod without a mark counts for 0, so all of these go before it."""
    outcome = lowered(world, "p3", "p1")

    assert ("-1", None, "-2") == (cost(world, "p1"), cost(world, "p2"), cost(world, "p3"))
    assert outcomes(outcome)["p3"].result is Result.CHANGED


def test_marks_come_before_the_count(world):
    """Else the ReplicaSet has chosen already."""
    mark = world.mark
    lowered(world, "p3")
    writes = [name for _, name in world.writes(mark)]

    assert writes.index("p3") < writes.index("qwen")


def test_without_a_lower_count_to_write_nothing_is_marked(world):
    """Kubernetes warns of frequent writes of this annotation."""
    mark = world.mark
    lowered(world, "p3", replicas=3)

    assert [] == world.writes(mark)


def test_a_mark_of_somebody_else_stays(world):
    """Karpenter marks pods too."""
    world.delete(pod("p1"))
    world.make(pod("p1", **{COST: "7"}), manager="karpenter")
    outcome = lowered(world, "p1")

    assert cost(world, "p1") == "7"
    assert "somebody else's" in outcomes(outcome)["p1"].message


def test_a_mark_of_ours_is_kept_up(world):
    """The order may have changed; what is right already is not written again."""
    lowered(world, "p1", "p2", replicas=2)
    mark = world.mark
    lowered(world, "p2", "p1")

    assert ("-1", "-2") == (cost(world, "p1"), cost(world, "p2"))
    lowered(world, "p2", "p1", replicas=0)
    assert 2 == sum(1 for _, name in world.writes(mark) if name in {"p1", "p2"})


def test_a_pod_that_is_gone_or_another_service_s_is_passed_over(world):
    """The count is lowered all the same: a mark is a hint."""
    other = pod("p2")
    other["metadata"]["labels"] = {}
    world.delete(pod("p2"))
    world.make(other)
    world.delete(pod("p3"))
    outcome = lowered(world, "p2", "p3")

    assert outcomes(outcome)["p2"].code == "waiting-for-live-state"
    assert outcomes(outcome)["p3"].message == "the pod is gone"
    assert world.get(placement("qwen"))["spec"]["replicas"] == 1


def test_a_mark_that_fails_keeps_no_count_from_falling(world):
    """It is a hint."""

    def before(request):
        if request.method == "PATCH" and request.path.endswith("/pods/p1"):
            raise api_error(403, {"message": "no"}, what="x")

    world.server.before = before
    lowered(world, "p1")

    assert world.get(placement("qwen"))["spec"]["replicas"] == 1


def test_a_pod_that_was_made_again_meanwhile_is_not_marked(world):
    """A namesake has another cache."""

    def before(request):
        if request.method == "PATCH" and request.path.endswith("/pods/p1"):
            world.server.before = None
            world.delete(pod("p1"))
            world.make(pod("p1"))

    world.server.before = before
    lowered(world, "p1")

    assert cost(world, "p1") is None

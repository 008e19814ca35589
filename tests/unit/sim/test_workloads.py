"""The simulated controllers beyond what the contract asks of both clusters."""

from __future__ import annotations

import pytest

from stoker.errors import Bug
from stoker.model.times import rfc3339
from stoker.sim.deployment_status import unavailable_and_surge
from stoker.sim.pods import is_ready, requests_of, resources_from_map
from stoker.sim.replicasets import DELETION_COST, victims
from stoker.sim.view import selects
from unit.sim.sim_builders import T0, Sim, deployment, model_deployment


@pytest.fixture
def sim():
    made = Sim()
    made.node("n1", gpus=8)
    return made


def sizes(sim):
    return {s["metadata"]["name"]: s["spec"]["replicas"] for s in sim.all("ReplicaSet")}


# ----------------------------------------------------------------- deployments


@pytest.mark.parametrize(
    ("replicas", "rolling", "expected"),
    [
        pytest.param(4, {}, (1, 1), id="defaults"),
        pytest.param(3, {}, (0, 1), id="rounded down and up"),
        pytest.param(1, {}, (0, 1), id="one"),
        pytest.param(4, {"maxSurge": 0, "maxUnavailable": 0}, (1, 0), id="never both zero"),
        pytest.param(4, {"maxSurge": "50%", "maxUnavailable": 2}, (2, 2), id="mixed"),
        pytest.param(0, {"maxUnavailable": 3}, (0, 0), id="nothing wished"),
    ],
)
def test_bounds_of_a_rollout(replicas, rolling, expected):
    strategy = {"rollingUpdate": rolling}

    assert expected == unavailable_and_surge({"spec": {"replicas": replicas, "strategy": strategy}})


def test_recreate_waits_until_the_old_are_gone(sim):
    strategy = {"type": "Recreate"}
    sim.apply(deployment("a", replicas=2, strategy=strategy))
    sim.run(15)
    sim.apply(deployment("a", replicas=2, strategy=strategy, labels={"v": "2"}))
    sim.settle()
    between = [p["metadata"]["labels"].get("v") for p in sim.all("Pod")]
    sim.run(20)

    assert "2" not in between
    assert ["2", "2"] == [p["metadata"]["labels"].get("v") for p in sim.all("Pod")]


def test_history_is_kept_as_long_as_asked(sim):
    for version in range(4):
        sim.apply(deployment("a", labels={"v": str(version)}, revisionHistoryLimit=1))
        sim.run(15)

    assert [0, 1] == sorted(sizes(sim).values())


def test_a_paused_deployment_does_not_roll(sim):
    sim.apply(deployment("a", paused=True))
    sim.run(5)

    assert {} == sizes(sim)


def test_going_back_uses_the_old_replica_set(sim):
    sim.apply(deployment("a"))
    sim.run(15)
    first = set(sizes(sim))
    sim.apply(deployment("a", labels={"v": "2"}))
    sim.run(15)
    sim.apply(deployment("a"))
    sim.run(15)

    assert first < set(sizes(sim))
    assert sorted(sizes(sim).values()) == [0, 1]
    assert sizes(sim)[first.pop()] == 1


def test_status_counts_and_conditions(sim):
    sim.apply(model_deployment(replicas=2))
    sim.run(5)
    early = sim.get("Deployment", "llm")["status"]
    sim.run(40)
    late = sim.get("Deployment", "llm")["status"]

    assert (2, 2) == (early["replicas"], early["unavailableReplicas"])
    assert "readyReplicas" not in early
    assert (2, 2, 2, 2) == tuple(
        late[k] for k in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    )
    assert {"Available": "True", "Progressing": "True"} == {
        c["type"]: c["status"] for c in late["conditions"]
    }
    assert late["observedGeneration"] == 1


def test_min_ready_seconds_delay_availability(sim):
    sim.apply(deployment("a", minReadySeconds=30))
    sim.run(20)
    early = sim.get("Deployment", "a")["status"]
    sim.run(30)

    assert (1, None) == (early.get("readyReplicas"), early.get("availableReplicas"))
    assert sim.get("Deployment", "a")["status"]["availableReplicas"] == 1


def test_two_runs_give_the_same_names():
    """A simulation must replay byte for byte."""

    def names():
        sim = Sim()
        sim.node("n1", gpus=8)
        sim.apply(model_deployment(replicas=3))
        sim.run(40)
        return [p["metadata"]["name"] for p in sim.all("Pod")]

    assert names() == names()


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_cluster_at_rest_is_not_written_to(sim, replicas):
    """A Service that selects no pod is at rest too: the API server keeps no empty list."""
    sim.apply(deployment("a", replicas=replicas, labels={"app": "a"}))
    service = {"selector": {"app": "a"}, "ports": [{"name": "http", "port": 80}]}
    meta = {"name": "a", "namespace": "default"}
    sim.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service})
    sim.run(30)
    sim.settle()

    before = sim.server.resource_version
    sim.workloads.step(sim.clock.now_ms())

    assert before == sim.server.resource_version


def test_controllers_that_fight_are_a_bug(sim):
    sim.workloads._loops = (lambda view, cluster, now_ms: 1,)

    with pytest.raises(Bug):
        sim.workloads.settle(T0)


def test_the_template_keeps_a_pods_annotations_and_adds_no_status_of_ours(sim):
    made = deployment("a")
    made["spec"]["template"]["metadata"]["annotations"] = {"x": "1"}
    sim.apply(made)
    sim.settle()
    (pod,) = sim.all("Pod")

    assert pod["metadata"]["annotations"] == {"x": "1"}
    assert pod["metadata"]["generateName"].startswith("a-")


# ---------------------------------------------------------------- replica sets


def pod(name, *, node="n", phase="Running", ready=True, cost=None, since=0, restarts=0, created=0):
    conditions = [
        {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": rfc3339(T0 + since * 1000),
        }
    ]
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": rfc3339(T0 + created * 1000),
            "annotations": {} if cost is None else {DELETION_COST: str(cost)},
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"restartCount": restarts}],
        },
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"node": ""}, {"phase": "Pending", "ready": False}, id="unassigned"),
        pytest.param({"phase": "Pending", "ready": False}, {"ready": False}, id="pending"),
        pytest.param({"ready": False}, {"cost": -100}, id="not ready"),
        pytest.param({"cost": -1}, {"since": 50}, id="deletion cost"),
        pytest.param({"since": 50}, {"restarts": 9}, id="ready for a shorter time"),
        pytest.param({"restarts": 9}, {"created": 50}, id="restarts"),
        pytest.param({"created": 50}, {}, id="newer"),
    ],
)
def test_which_pod_a_scale_down_takes(first, second):
    """The order of Kubernetes, each rule against the next one."""
    chosen = victims([pod("a", **second), pod("z", **first)], 1)

    assert ["z"] == [p["metadata"]["name"] for p in chosen]


def test_the_node_with_more_siblings_gives_first_and_names_break_ties():
    pods = [pod("a", node="one"), pod("b", node="two"), pod("c", node="two")]

    assert ["b", "c"] == [p["metadata"]["name"] for p in victims(pods, 2)]


# -------------------------------------------------------------------- the rest


def test_requests_are_containers_in_sum_or_the_largest_init_container():
    def container(**amounts):
        return {"resources": {"requests": amounts}}

    spec = {
        "containers": [container(cpu="1", memory="1Gi"), container(cpu="500m")],
        "initContainers": [container(memory="3Gi")],
        "overhead": {"cpu": "250m"},
    }
    found = requests_of({"spec": spec})

    assert (1750, 3 * 2**30, 1) == (found.cpu_millis, found.memory_bytes, found.pods)


def test_limits_stand_in_for_requests_one_by_one():
    resources = {"limits": {"nvidia.com/gpu": "2", "cpu": "4"}, "requests": {"cpu": "1"}}
    found = requests_of({"spec": {"containers": [{"resources": resources}]}})

    assert (1000, 2) == (found.cpu_millis, found.device("nvidia.com/gpu"))
    assert resources_from_map({"pods": "110", "ephemeral-storage": "1Gi"}).extended == ()


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, False, id="absent"),
        pytest.param({}, True, id="empty"),
        pytest.param({"matchLabels": {"a": "1"}}, True, id="equal"),
        pytest.param({"matchLabels": {"a": "2"}}, False, id="unequal"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, True, id="In"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]},
            False,
            id="NotIn",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]},
            True,
            id="NotIn of nothing",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "b", "operator": "Exists"}]}, False, id="Exists"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]},
            True,
            id="DoesNotExist",
        ),
    ],
)
def test_label_selectors(selector, expected):
    assert expected == selects(selector, {"a": "1"})


def test_an_object_with_one_owner_left_stays(sim):
    owners = []
    for name in ("one", "two"):
        sim.apply(config_map(name))
        body = sim.get("ConfigMap", name)
        owners.append(
            {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": body["metadata"]["uid"]}
        )
    sim.apply(config_map("child", owners))
    sim.delete("ConfigMap", "one")
    sim.settle()
    left = sim.get("ConfigMap", "child")["metadata"]["ownerReferences"]
    sim.delete("ConfigMap", "two")
    sim.settle()

    assert ["two"] == [owner["name"] for owner in left]
    assert sim.find("ConfigMap", "child") is None


def config_map(name, owners=()):
    meta = {"name": name, "namespace": "default"}
    if owners:
        meta["ownerReferences"] = list(owners)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def test_a_replica_of_a_vanished_node_is_made_anew(sim):
    sim.node("n2", gpus=1)
    sim.apply(model_deployment())
    sim.run(40)
    (before,) = sim.all("Pod")
    sim.delete("Node", before["spec"]["nodeName"])
    sim.run(40)
    (after,) = sim.all("Pod")

    assert before["metadata"]["uid"] != after["metadata"]["uid"]
    assert is_ready(after)

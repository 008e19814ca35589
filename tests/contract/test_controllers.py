"""Group J of the contract: controllers, scheduler, budgets, endpoints, on both clusters.

Each test replays one row of research/ssa-facts.md (78 to 85), or a promise of the simulated
controllers that the real ones keep.
"""

from __future__ import annotations

import itertools
import json
import re

import pytest

from contract.worlds import World, deployment
from stoker.clock import SystemClock
from stoker.kube.errors import Invalid
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Request
from stoker.sim.clock import VirtualClock
from stoker.sim.pods import condition, is_ready
from stoker.sim.view import controller_of, uid_of

ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


_NUMBERS = itertools.count(1)


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.live)])
def world(request):
    words = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_"))
    name = f"{words[:40].strip('-')}-{next(_NUMBERS)}"
    if request.param == "real":
        transport = request.getfixturevalue("live_transport")
        made = World(transport, SystemClock(), name, simulated=False, step_seconds=0.1)
    else:
        clock = VirtualClock()
        made = World(MemoryServer(clock), clock, name, simulated=True, step_seconds=0.5)
    yield made
    made.close()


def names(objects):
    return sorted(o["metadata"]["name"] for o in objects)


def ready(world, name, count):
    def claim():
        status = world.get("Deployment", name).get("status") or {}
        generation = world.get("Deployment", name)["metadata"]["generation"]
        return (
            status.get("observedGeneration") == generation
            and status.get("readyReplicas", 0) == count
            and status.get("replicas", 0) == count
            and status.get("updatedReplicas", 0) == count
        )

    world.until(claim, f"{name} has {count} ready")


def pending_reason(world, **labels):
    """The scheduler's message about the one pod."""
    found = []

    def claim():
        pods = world.pods(**labels)
        scheduled = condition(pods[0], "PodScheduled") if pods else None
        if scheduled is not None and scheduled["status"] == "False":
            found.append(scheduled["message"])
        return found

    world.until(claim, "the pod is unschedulable")
    return found[0]


# ------------------------------------------------------------ 78: shared selector


def test_a_sibling_with_one_selector_adopts_the_orphans_of_another(world):
    """Row 78, first part: why every Deployment of a service has a selector of its own."""
    world.node("n", gpus=2)
    world.keep_unready("ov")
    shared = {"app": "ov"}
    world.apply(deployment("ova", world.pool, selector=shared))
    world.apply(deployment("ovb", world.pool, selector=shared, labels={"v": "b"}))
    world.until(lambda: len(world.pods()) == 2)
    before = names(world.pods())
    world.delete("Deployment", "ova", "Orphan")
    owner = uid_of(world.get("Deployment", "ovb"))

    def adopted():
        return [controller_of(s) for s in world.objects("ReplicaSet")] == [owner, owner]

    world.until(adopted, "ovb adopts ova's ReplicaSet")
    world.until(lambda: world.get("Deployment", "ovb")["status"].get("replicas") == 2)
    assert before == names(world.pods())

    world.apply(deployment("ova", world.pool, selector=shared))
    world.until(lambda: len(world.objects("ReplicaSet")) == 3)
    world.until(lambda: len(world.pods()) == 3)


def test_an_orphaned_deployment_made_again_keeps_its_pods(world):
    """Row 78, last part: adoption restarts nothing."""
    world.node("n")
    world.apply(deployment("om", world.pool))
    ready(world, "om", 1)
    before = [uid_of(pod) for pod in world.pods()]
    world.delete("Deployment", "om", "Orphan")
    world.until(lambda: not world.exists("Deployment", "om"))
    world.apply(deployment("om", world.pool))
    ready(world, "om", 1)

    assert before == [uid_of(pod) for pod in world.pods()]
    assert len(world.objects("ReplicaSet")) == 1


# ---------------------------------------------------------------- 79: full node


def test_the_default_strategy_deadlocks_on_a_full_node(world):
    """Row 79: the surge pod waits for the GPU that the old one holds."""
    world.node("n")
    world.apply(deployment("full", world.pool))
    ready(world, "full", 1)
    old = names(world.pods())
    world.apply(deployment("full", world.pool, labels={"v": "2"}))
    message = pending_reason(world, v="2")
    world.rest(2)

    assert "Insufficient nvidia.com/gpu" in message
    assert set(old) < set(names(world.pods()))
    assert len(world.pods()) == 2

    world.apply(deployment("full", world.pool))
    world.until(lambda: old == names(world.pods()), "going back removes the waiting pod")


def test_no_surge_replaces_on_a_full_node(world):
    """Row 79: maxSurge 0, maxUnavailable 1 is what Stoker renders."""
    world.node("n")
    world.apply(deployment("flat", world.pool, strategy=ROLLING))
    ready(world, "flat", 1)
    world.apply(deployment("flat", world.pool, strategy=ROLLING, labels={"v": "2"}))
    world.until(lambda: [is_ready(pod) for pod in world.pods(v="2")] == [True])
    ready(world, "flat", 1)

    assert len(world.pods()) == 1


# ----------------------------------------------------------- 80, 81: placement


def by_name(name):
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def required(term):
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def preferred(name, pool):
    pool_term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]}
    return {
        **required(pool_term),
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": by_name(name)}
        ],
    }


def node_of(world, app):
    world.until(
        lambda: [p["spec"].get("nodeName") for p in world.pods(app=app)] not in ([], [None])
    )
    return world.pods(app=app)[0]["spec"]["nodeName"]


def test_a_required_node_takes_the_pod_or_nobody_does(world):
    """Row 80."""
    first, _other = world.node("a"), world.node("b")
    world.apply(deployment("one", world.pool, affinity=required(by_name(first))))
    placed = node_of(world, "one")
    world.apply(deployment("two", world.pool, affinity=required(by_name(first))))
    full = pending_reason(world, app="two")
    world.apply(deployment("three", world.pool, affinity=required(by_name("nowhere"))))
    absent = pending_reason(world, app="three")

    assert first == placed
    assert "Insufficient nvidia.com/gpu" in full
    assert "affinity" in absent.lower() or "NodeAffinity" in absent


def test_a_hostname_label_that_differs_from_the_name_pends_for_ever(world):
    """Row 80: why the node is named by matchFields and not by its label."""
    name = world.node("a", labels={"kubernetes.io/hostname": "another"})
    term = {
        "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]
    }
    world.apply(deployment("host", world.pool, affinity=required(term)))

    assert pending_reason(world, app="host").startswith("0/")


def test_a_preferred_node_is_taken_while_it_has_room(world):
    """Row 81: that node; when it is full or absent another one of the pool."""
    nodes = [world.node("a"), world.node("b"), world.node("c")]
    world.apply(deployment("one", world.pool, affinity=preferred(nodes[1], world.pool)))
    one = node_of(world, "one")
    world.apply(deployment("two", world.pool, affinity=preferred(nodes[1], world.pool)))
    two = node_of(world, "two")
    world.apply(deployment("three", world.pool, affinity=preferred("nowhere", world.pool)))

    assert nodes[1] == one
    assert two in {nodes[0], nodes[2]}
    assert sorted(nodes) == sorted({one, two, node_of(world, "three")})


# ------------------------------------------------------------- 82, 83: budgets


def budget(**bounds):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"svc": "s"}}, **bounds},
    }


def budget_status(world):
    status = world.get("PodDisruptionBudget", "b").get("status") or {}
    return tuple(status.get(k) for k in ("expectedPods", "desiredHealthy", "disruptionsAllowed"))


def test_one_budget_spans_several_deployments(world):
    """Row 82: expected is what all of them wish for together."""
    world.node("n", gpus=4)
    for name in ("a", "b", "c"):
        world.apply(deployment(name, world.pool, labels={"svc": "s"}))
    world.apply(budget(maxUnavailable=1))
    world.until(lambda: budget_status(world) == (3, 2, 1))
    world.scale("c", 0)
    world.until(lambda: budget_status(world) == (2, 1, 1))


def test_a_budget_allows_one_eviction_and_refuses_the_next(world):
    """Row 82: what holds a drainer until a replacement is Ready."""
    world.node("n", gpus=4)
    for name in ("a", "b"):
        world.apply(deployment(name, world.pool, labels={"svc": "s"}))
    world.apply(budget(maxUnavailable=1))
    world.until(lambda: budget_status(world) == (2, 1, 1))
    first, second = (world.evict(pod) for pod in world.pods())

    assert (201, 429) == (first.status, second.status)
    said = json.loads(second.body)
    assert said["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert said["details"]["causes"][0]["reason"] == "DisruptionBudget"


def test_a_budget_does_not_hold_a_scale_down(world):
    """Row 83: minAvailable equal to the pods refuses evictions and nothing else."""
    world.node("n", gpus=2)
    world.apply(deployment("a", world.pool, replicas=2, labels={"svc": "s"}))
    world.apply(budget(minAvailable=2))
    world.until(lambda: budget_status(world) == (2, 2, 0))
    world.until(lambda: world.get("PodDisruptionBudget", "b")["status"]["currentHealthy"] == 2)
    refused = world.evict(world.pods()[0])
    world.scale("a", 0)
    world.until(lambda: not world.objects("Pod"))

    assert refused.status == 429
    world.until(lambda: budget_status(world)[::2] == (0, 0))


# ------------------------------------------------------------ 84, 85: endpoints


@pytest.mark.parametrize(
    ("address", "refusal"),
    [
        pytest.param("127.0.0.1", "loopback", id="loopback"),
        pytest.param("169.254.1.1", "link-local", id="link-local"),
        pytest.param("192.0.2.7", "", id="documentation range"),
    ],
)
def test_slices_refuse_loopback_addresses(world, address, refusal):
    """Row 84: why simulated pods have addresses of the documentation range."""
    manifest = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "s"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]}],
    }
    if not refusal:
        assert world.apply(manifest)["endpoints"][0]["addresses"] == [address]
        return
    with pytest.raises(Invalid) as caught:
        world.apply(manifest)

    assert refusal in str(caught.value)


def test_a_service_leads_to_the_pods_with_its_labels_only(world):
    """Taking the traffic label off a pod takes it out of the endpoints, and nothing else."""
    world.node("n", gpus=2)
    world.apply(deployment("a", world.pool, replicas=2, labels={"traffic": "true"}))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": {"app": "a", "traffic": "true"}, "ports": [{"port": 8000}]},
    }
    world.apply(service)
    ready(world, "a", 2)

    def targets():
        found = [e for s in world.objects("EndpointSlice") for e in s.get("endpoints") or ()]
        return sorted(e["targetRef"]["name"] for e in found if e["conditions"]["ready"])

    world.until(lambda: targets() == names(world.pods()), "both are endpoints")
    leaving, staying = world.pods()
    body = {"metadata": {"labels": {"traffic": None}}}
    ref = world.ref("Pod", leaving["metadata"]["name"])
    world.cluster.patch(ref, "merge", body, manager="stoker-test")
    world.until(lambda: targets() == names([staying]), "one is left")

    assert len(world.pods()) == 2


def test_metadata_lists_carry_managed_fields(world):
    """Row 85: more than half of a metadata list is managedFields."""
    world.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    )
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    path = f"/api/v1/namespaces/{world.namespace}/configmaps"
    answer = json.loads(world.transport.send(Request("GET", path, accept=accept)).body)
    item = next(i for i in answer["items"] if i["metadata"]["name"] == "c")

    assert {"apiVersion", "kind", "metadata"} == set(item)
    assert {"uid", "resourceVersion", "managedFields"} <= set(item["metadata"])


# ------------------------------------------------------- the controllers' basics


def test_a_scale_down_takes_the_pod_of_lowest_deletion_cost(world):
    """How a count goes down at the replica that is empty."""
    world.node("n", gpus=3)
    world.apply(deployment("a", world.pool, replicas=3))
    ready(world, "a", 3)
    chosen = world.pods()[1]
    body = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-10"}}}
    ref = world.ref("Pod", chosen["metadata"]["name"])
    world.cluster.patch(ref, "merge", body, manager="stoker-test")
    world.rest(1)
    world.scale("a", 2)
    ready(world, "a", 2)

    assert chosen["metadata"]["name"] not in names(world.pods())


def test_a_deleted_pod_is_replaced(world):
    world.node("n")
    world.apply(deployment("a", world.pool))
    ready(world, "a", 1)
    before = world.pods()[0]
    world.delete("Pod", before["metadata"]["name"])
    world.until(lambda: [uid_of(p) for p in world.pods()] not in ([], [uid_of(before)]))
    ready(world, "a", 1)


def test_background_deletion_collects_what_it_owned(world):
    world.node("n")
    world.apply(deployment("a", world.pool))
    ready(world, "a", 1)
    world.delete("Deployment", "a")
    world.until(lambda: not world.objects("ReplicaSet") and not world.objects("Pod"))


def test_foreground_deletion_waits_for_what_it_owned(world):
    world.node("n")
    world.apply(deployment("a", world.pool))
    ready(world, "a", 1)
    world.delete("Deployment", "a", "Foreground")

    assert world.get("Deployment", "a")["metadata"]["finalizers"] == ["foregroundDeletion"]
    world.until(lambda: not world.exists("Deployment", "a"))
    assert not world.pods()


def test_an_owner_that_never_stood_is_collected_too(world):
    """Row 57: an ownerReference with a false uid deletes its object."""
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "nobody",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "child", "ownerReferences": [owner]},
    }
    world.apply(manifest)
    world.until(lambda: not world.exists("ConfigMap", "child"))


def test_a_deleted_namespace_takes_its_content_along(world):
    world.node("n")
    world.apply(deployment("a", world.pool))
    ready(world, "a", 1)
    world.cluster.delete(world.ref("Namespace", world.namespace, ""))
    world.until(lambda: not world.exists("Namespace", world.namespace, ""))
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.namespace}}
    world.cluster.create(made, manager="test")

    assert not world.objects("Pod")


def test_a_rolling_update_never_leaves_its_bounds(world):
    """At most maxSurge over and maxUnavailable under, at every look."""
    world.node("n", gpus=6)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    world.apply(deployment("a", world.pool, replicas=4, strategy=strategy))
    ready(world, "a", 4)
    world.apply(deployment("a", world.pool, replicas=4, strategy=strategy, labels={"v": "2"}))
    seen = []

    def done():
        sizes = [s["spec"]["replicas"] for s in world.objects("ReplicaSet")]
        available = sum(is_ready(p) for p in world.pods())
        seen.append((sum(sizes), available))
        return len([p for p in world.pods(v="2") if is_ready(p)]) == 4

    world.until(done, "all are new")
    assert max(total for total, _ in seen) <= 5
    assert min(available for _, available in seen) >= 3


def test_conditions_say_whether_a_rollout_gets_on(world):
    world.node("n")
    world.keep_unready("slow")
    world.apply(deployment("slow", world.pool, progressDeadlineSeconds=2))

    def reason():
        found = condition(world.get("Deployment", "slow"), "Progressing") or {}
        return found.get("reason")

    world.until(lambda: reason() in {"ReplicaSetUpdated", "NewReplicaSetCreated"})
    available = condition(world.get("Deployment", "slow"), "Available")
    world.until(lambda: reason() == "ProgressDeadlineExceeded")

    assert available is None or available["status"] == "False"
    progressing = condition(world.get("Deployment", "slow"), "Progressing") or {}
    assert progressing["status"] == "False"


def test_a_cordon_keeps_pods_away(world):
    name = world.node("n")
    ref = world.ref("Node", name, "")
    world.cluster.patch(ref, "merge", {"spec": {"unschedulable": True}}, manager="stoker-test")
    world.apply(deployment("a", world.pool))
    message = pending_reason(world, app="a")
    world.cluster.patch(ref, "merge", {"spec": {"unschedulable": None}}, manager="stoker-test")
    ready(world, "a", 1)

    assert "unschedulable" in message


def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(world):
    name = world.node("n", gpus=2)
    taint = {"key": "gpu", "value": "x", "effect": "NoSchedule"}
    ref = world.ref("Node", name, "")
    world.cluster.patch(ref, "merge", {"spec": {"taints": [taint]}}, manager="stoker-test")
    world.apply(deployment("a", world.pool))
    message = pending_reason(world, app="a")
    tolerant = deployment("b", world.pool)
    tolerant["spec"]["template"]["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    world.apply(tolerant)
    ready(world, "b", 1)

    assert "taint" in message

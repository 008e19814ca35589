"""The simulated kubelet in virtual time: phases, warmth, faults, departures."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.kube.errors import KindNotFound
from stoker.model.times import rfc3339
from stoker.sim.addresses import AddressPool
from stoker.sim.kubelet_run import FaultKind, PodFault, back_off_ms
from stoker.sim.pod_calls import PodCalls
from stoker.sim.pods import condition, is_ready
from stoker.sim.view import POD
from unit.sim.sim_builders import T0, Sim, deployment, model_deployment


@pytest.fixture
def sim():
    made = Sim()
    made.node("n1")
    return made


def only_pod(sim):
    (pod,) = sim.all("Pod")
    return pod


def said(sim):
    """What the one container says: running, or why it waits."""
    status = only_pod(sim)["status"]["containerStatuses"][0]
    state = status["state"]
    return "running" if "running" in state else state["waiting"]["reason"]


def cache(sim, node="n1"):
    return (sim.get("NodeState", node).get("status") or {}).get("cache")


def ready_at(sim):
    found = condition(only_pod(sim), "Ready") or {}
    return found["lastTransitionTime"] if found["status"] == "True" else None


# ---------------------------------------------------------------------- starts


def test_a_cold_start_goes_through_its_phases_in_their_time(sim):
    """10 s pull, 20 s download, 3 s init."""
    sim.apply(model_deployment())
    sim.run(9)
    pulling = (only_pod(sim)["status"]["phase"], said(sim))
    sim.run(2)
    loading = (only_pod(sim)["status"]["phase"], said(sim), is_ready(only_pod(sim)))
    partial = cache(sim)
    sim.run(20)
    complete = cache(sim)
    sim.run(10)

    assert ("Pending", "ContainerCreating") == pulling
    assert ("Running", "running", False) == loading
    assert [{"uri": "hf://o/model", "revision": "abc", "bytes": 0, "complete": False}] == partial
    assert complete[0]["complete"]
    assert ready_at(sim) == rfc3339(T0 + 33_000)


def test_a_second_start_on_the_node_is_warm(sim):
    """The image and the weights are there: 2 s from disk and 3 s of init."""
    sim.apply(model_deployment())
    sim.run(40)
    sim.delete("Pod", only_pod(sim)["metadata"]["name"])
    sim.run(1)
    before = sim.clock.now_ms()
    sim.run(10)

    assert ready_at(sim) == rfc3339(before + 5_000)


def test_without_a_host_path_weights_are_fetched_every_time(sim):
    sim.apply(model_deployment(host_path=False))
    sim.run(40)

    assert sim.find("NodeState", "n1") is None
    assert ready_at(sim) == rfc3339(T0 + 33_000)


def test_without_the_node_state_crd_the_kubelet_remembers_by_itself():
    sim = Sim(node_state=False)
    sim.node("n1")
    sim.apply(model_deployment())
    sim.run(40)
    sim.delete("Pod", only_pod(sim)["metadata"]["name"])
    sim.run(1)
    before = sim.clock.now_ms()
    sim.run(10)

    with pytest.raises(KindNotFound):
        sim.get("NodeState", "n1")
    assert ready_at(sim) == rfc3339(before + 5_000)


def test_a_coarse_step_writes_the_true_times(sim):
    sim.apply(model_deployment())
    sim.settle()
    sim.clock.advance(3_600_000)
    sim.settle()

    assert ready_at(sim) == rfc3339(T0 + 33_000)


def test_step_says_when_something_is_due(sim):
    assert sim.kubelet.step(T0) is None
    sim.apply(model_deployment())
    sim.settle()

    assert T0 + 10_000 == sim.kubelet.step(T0)
    assert T0 + 30_000 == sim.kubelet.step(T0 + 10_000)


def test_a_pod_without_a_model_starts_quickly(sim):
    sim.apply(deployment("web"))
    sim.run(11)

    assert is_ready(only_pod(sim))


def test_the_node_lists_the_images_it_pulled(sim):
    sim.apply(model_deployment())
    sim.run(11)
    images = sim.get("Node", "n1")["status"]["images"]

    assert [["registry.example/vllm:1"]] == [image["names"] for image in images]


def test_pods_have_addresses_that_slices_accept(sim):
    sim.node("n2")
    sim.apply(model_deployment(replicas=2))
    sim.run(12)

    assert ["192.0.2.1", "192.0.2.2"] == sorted(p["status"]["podIP"] for p in sim.all("Pod"))


def test_addresses_are_used_again_and_never_run_out():
    pool = AddressPool()
    taken = {pool.take(f"pod-{n}") for n in range(2000)}
    pool.give_back("pod-0")

    assert len(taken) == 2000
    assert pool.take("new") == "192.0.2.1"
    assert pool.take("new") == "192.0.2.1"


def test_other_nodes_are_left_alone(sim):
    """On a mixed cluster real kubelets play the other nodes."""
    sim.node("real", gpus=1, labels={"stoker.dev/simulated": "false"})
    sim.patch("Node", "n1", {"spec": {"unschedulable": True}})
    sim.apply(model_deployment())
    sim.run(60)

    assert only_pod(sim)["spec"]["nodeName"] == "real"
    assert "containerStatuses" not in only_pod(sim)["status"]


# ---------------------------------------------------------------------- faults


def test_an_image_that_cannot_be_pulled_backs_off_and_recovers(sim):
    sim.kubelet.faults.append(PodFault(FaultKind.IMAGE_PULL, image="registry.example/vllm"))
    sim.apply(model_deployment())
    sim.run(12)
    failing = said(sim)
    sim.kubelet.faults.clear()
    sim.run(60)

    assert failing == "ImagePullBackOff"
    assert is_ready(only_pod(sim))


def test_a_crash_loop_counts_its_restarts(sim):
    sim.kubelet.faults.append(PodFault(FaultKind.CRASH_LOOP, node="n1"))
    sim.apply(model_deployment())
    sim.run(90)
    status = only_pod(sim)["status"]["containerStatuses"][0]

    assert status["restartCount"] >= 3
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert said(sim) in {"CrashLoopBackOff", "running"}
    assert not is_ready(only_pod(sim))


def test_a_stuck_start_runs_and_is_never_ready(sim):
    sim.kubelet.faults.append(PodFault(FaultKind.STUCK_START, pod="llm-"))
    sim.apply(model_deployment())
    sim.run(600)

    assert said(sim) == "running"
    assert not is_ready(only_pod(sim))


def test_a_fault_concerns_only_what_it_names(sim):
    sim.node("n2")
    sim.kubelet.faults.append(PodFault(FaultKind.STUCK_START, node="n2"))
    sim.apply(model_deployment(replicas=2))
    sim.run(60)

    assert {"n1": True, "n2": False} == {p["spec"]["nodeName"]: is_ready(p) for p in sim.all("Pod")}


def test_back_off_doubles_to_five_minutes():
    assert [10_000, 20_000, 40_000] == [back_off_ms(n) for n in (1, 2, 3)]
    assert back_off_ms(10) == back_off_ms(10_000) == 300_000


# ------------------------------------------------------------------ departures


def test_a_deleted_pod_stops_and_then_goes(sim):
    sim.apply(model_deployment())
    sim.run(40)
    name = only_pod(sim)["metadata"]["name"]
    sim.apply(model_deployment(replicas=0))
    sim.settle()
    dying = sim.get("Pod", name)
    sim.run(2)

    assert dying["metadata"]["deletionTimestamp"]
    assert sim.find("Pod", name) is None


def test_pre_stop_delays_the_end_and_grace_bounds_it(sim):
    pod = model_deployment()
    engine = pod["spec"]["template"]["spec"]["containers"][0]
    engine["lifecycle"] = {"preStop": {"sleep": {"seconds": 20}}}
    sim.apply(pod)
    sim.run(40)
    name = only_pod(sim)["metadata"]["name"]
    pod["spec"]["replicas"] = 0
    sim.apply(pod)
    sim.run(15)
    still = sim.find("Pod", name)
    sim.run(10)

    assert still is not None
    assert sim.find("Pod", name) is None


def test_a_pod_deleted_in_its_pull_goes_at_once(sim):
    sim.apply(model_deployment())
    sim.run(2)
    sim.apply(model_deployment(replicas=0))
    sim.settle()
    sim.settle()

    assert [] == sim.all("Pod")


def test_a_lost_node_says_nothing_more_and_its_deletion_frees_the_replica(sim):
    sim.node("n2")
    sim.apply(model_deployment())
    sim.run(40)
    node = only_pod(sim)["spec"]["nodeName"]
    sim.kubelet.lose_node(node)
    sim.run(5)
    claimed = is_ready(only_pod(sim))
    sim.delete("Node", node)
    sim.run(40)

    assert claimed
    assert {"n1", "n2"} - {node} == {only_pod(sim)["spec"]["nodeName"]}
    assert is_ready(only_pod(sim))


def test_a_new_kubelet_takes_ready_pods_as_they_are(sim):
    sim.apply(model_deployment())
    sim.run(40)
    before = only_pod(sim)
    sim.kubelet = sim.new_kubelet()
    sim.run(60)

    assert only_pod(sim)["status"] == before["status"]


# ----------------------------------------------------------------------- nodes


def test_heartbeats_come_as_often_as_asked():
    sim = Sim(heartbeat_seconds=10)
    sim.node("n1")
    sim.run(35)
    ready = condition(sim.get("Node", "n1"), "Ready") or {}

    assert ready["lastHeartbeatTime"] == rfc3339(T0 + 30_000)


def test_a_notice_is_written_beside_the_cache(sim):
    sim.apply(model_deployment())
    sim.run(40)
    sim.kubelet.node_states.give_notice("n1", "SpotNotice", at_ms=T0, deadline_ms=T0 + 120_000)
    status = sim.get("NodeState", "n1")["status"]

    assert {
        "kind": "SpotNotice",
        "at": rfc3339(T0),
        "deadline": rfc3339(T0 + 120_000),
    } == status["notice"]
    assert status["cache"][0]["complete"]


def test_a_cleaned_disk_is_cold_again(sim):
    sim.apply(model_deployment())
    sim.run(40)
    sim.kubelet.node_states.forget("n1")

    assert cache(sim) == []


# --------------------------------------------------------------------- silence


def test_pods_of_a_node_that_was_silent_are_ready_again_when_it_is_back(sim):
    """Somebody else took them for dead meanwhile, and made the same pod; nothing restarts."""
    sim.apply(model_deployment())
    sim.run(40)
    before = only_pod(sim)
    sim.kubelet.silence("n1")
    not_ready = {"type": "Ready", "status": "False", "lastTransitionTime": rfc3339(T0)}
    sim.patch("Pod", before["metadata"]["name"], {"status": {"conditions": [not_ready]}}, "status")
    sim.run(20)
    meanwhile = is_ready(only_pod(sim))
    sim.kubelet.silence("n1", silent=False)
    sim.run(1)

    assert not meanwhile
    assert is_ready(only_pod(sim))
    assert before["metadata"]["uid"] == only_pod(sim)["metadata"]["uid"]
    assert "running" == said(sim)


def test_an_eviction_within_the_budget_is_taken_and_beyond_it_is_not(sim):
    """As `kubectl drain` meets it: no answer is an error, it asks again."""
    calls = PodCalls(sim.server)
    budget: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "llm", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "llm"}}},
    }
    sim.apply(model_deployment(), budget)
    sim.run(40)
    pod = POD.ref(only_pod(sim))
    refused = calls.evict(pod)
    sim.apply({**budget, "spec": {**budget["spec"], "maxUnavailable": 1}})
    sim.run(1)

    assert not refused
    assert calls.evict(pod)
    assert only_pod(sim)["metadata"].get("deletionTimestamp")

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.outcome import Health
from stoker.model.snapshot import ReplicaPhase
from stoker.objects.health import ABSENT, HealthVerdict, health_of, worst
from stoker.objects.health_phases import health_of_phase

KINDS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "CronJob": "batch/v1",
    "APIService": "apiregistration.k8s.io/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}


def live(kind: str, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": KINDS.get(kind, "v1"),
        "kind": kind,
        "metadata": {"name": "x", "generation": 2},
        "spec": spec or {},
        "status": {"observedGeneration": 2, **status},
    }


def said(kind: str, status: str, reason: str = "Because", message: str = "as told"):
    return {"type": kind, "status": status, "reason": reason, "message": message}


def pods(**counts: int):
    names = {
        "replicas": "replicas",
        "updated": "updatedReplicas",
        "ready": "readyReplicas",
        "available": "availableReplicas",
    }
    return {names[name]: count for name, count in counts.items()}


BALANCER = {"type": "LoadBalancer", "clusterIP": "10.0.0.9"}
FULL = pods(replicas=3, updated=3, ready=3, available=3)
THREE = {"replicas": 3}


@pytest.mark.parametrize(
    ("manifest", "status", "reason"),
    [
        pytest.param(
            {**live("Pod"), "metadata": {"deletionTimestamp": "2026-11-29T03:05:02Z"}},
            Health.PROGRESSING,
            "Terminating",
            id="on its way out",
        ),
        pytest.param(
            live("ConfigMap", observedGeneration=1),
            Health.PROGRESSING,
            "NotObserved",
            id="its controller has not seen this generation",
        ),
        pytest.param(
            live("LeaderWorkerSet", conditions=[said("Reconciling", "True")]),
            Health.PROGRESSING,
            "Because",
            id="reconciling",
        ),
        pytest.param(
            live("LeaderWorkerSet", conditions=[said("Stalled", "True", reason="")]),
            Health.DEGRADED,
            "Stalled",
            id="stalled without a reason",
        ),
        pytest.param(
            live("LeaderWorkerSet", conditions=[said("Ready", "False")]),
            Health.PROGRESSING,
            "Because",
            id="custom kind that is not Ready",
        ),
        pytest.param(
            live("LeaderWorkerSet", conditions=[said("Ready", "True")]),
            Health.HEALTHY,
            "Healthy",
            id="custom kind that is Ready",
        ),
        pytest.param(live("ConfigMap"), Health.HEALTHY, "Healthy", id="nothing to judge by"),
        pytest.param(
            live("PodDisruptionBudget", conditions=[said("DisruptionAllowed", "False")]),
            Health.HEALTHY,
            "Healthy",
            id="a budget that allows nothing is still healthy",
        ),
        pytest.param({}, Health.HEALTHY, "Healthy", id="an empty object"),
        pytest.param(
            live("LeaderWorkerSet", conditions=[said("Available", "True")]),
            Health.UNKNOWN,
            "NoHealthCheck",
            id="custom kind whose status nobody can read",
        ),
        pytest.param(
            live("LeaderWorkerSet", observedGeneration=3, phase="Failed"),
            Health.UNKNOWN,
            "NoHealthCheck",
            id="custom kind with a phase: kstatus would call it current",
        ),
        pytest.param(
            live("LeaderWorkerSet", observedGeneration=3),
            Health.HEALTHY,
            "Healthy",
            id="custom kind that its controller has seen and says nothing of",
        ),
        pytest.param(
            live("LeaderWorkerSet"),
            Health.HEALTHY,
            "Healthy",
            id="custom kind whose status says nothing",
        ),
        pytest.param(
            live("LeaderWorkerSet", conditions=[said("Reconciling", "False")]),
            Health.HEALTHY,
            "Healthy",
            id="custom kind that is done reconciling",
        ),
    ],
)
def test_every_kind_is_judged_by_the_general_rules(manifest, status, reason):
    verdict = health_of(manifest)

    assert (status, reason) == (verdict.status, verdict.reason)


@pytest.mark.parametrize(
    ("manifest", "status", "reason"),
    [
        pytest.param(live("Deployment", THREE, **FULL), Health.HEALTHY, "Healthy", id="done"),
        pytest.param(
            live("Deployment", **pods(replicas=1, updated=1, available=1)),
            Health.HEALTHY,
            "Healthy",
            id="one replica where none is named",
        ),
        pytest.param(live("Deployment", THREE), Health.PROGRESSING, "UpdatingPods", id="new"),
        pytest.param(
            live("Deployment", THREE, **{**FULL, "replicas": 4}),
            Health.PROGRESSING,
            "OldPods",
            id="an old pod remains",
        ),
        pytest.param(
            live("Deployment", THREE, **{**FULL, "availableReplicas": 2}),
            Health.PROGRESSING,
            "PodsNotAvailable",
            id="one not available",
        ),
        pytest.param(
            live("Deployment", {"replicas": 0}), Health.HEALTHY, "ScaledToZero", id="at zero"
        ),
        pytest.param(
            live("Deployment", {"replicas": 0}, **pods(replicas=1)),
            Health.PROGRESSING,
            "OldPods",
            id="on its way to zero",
        ),
        pytest.param(live("Deployment", {"paused": True}), Health.SUSPENDED, "Paused", id="paused"),
        pytest.param(
            live(
                "Deployment",
                THREE,
                conditions=[said("Progressing", "False", "ProgressDeadlineExceeded")],
            ),
            Health.DEGRADED,
            "ProgressDeadlineExceeded",
            id="over its deadline",
        ),
        pytest.param(
            live("Deployment", THREE, conditions=[said("ReplicaFailure", "True", "FailedCreate")]),
            Health.PROGRESSING,
            "ReplicaFailure",
            id="no pod can be made",
        ),
    ],
)
def test_a_deployment_is_healthy_when_all_its_pods_are_new_and_available(manifest, status, reason):
    verdict = health_of(manifest)

    assert (status, reason) == (verdict.status, verdict.reason)


def test_a_quota_that_stops_pods_is_named():
    """Without it a person sees only that pods are missing."""
    failure = said("ReplicaFailure", "True", "FailedCreate", "exceeded quota: gpus")

    verdict = health_of(live("Deployment", THREE, conditions=[failure]))

    assert verdict.message == "0 of 3 pods of the new template: exceeded quota: gpus"


@pytest.mark.parametrize(
    ("spec", "status", "health", "reason"),
    [
        pytest.param(THREE, FULL, Health.HEALTHY, "Healthy", id="done"),
        pytest.param(
            THREE,
            {**FULL, "currentRevision": "x-1", "updateRevision": "x-2", "updatedReplicas": 2},
            Health.PROGRESSING,
            "UpdatingPods",
            id="row 83: all ready, two revisions",
        ),
        pytest.param(
            THREE,
            {**FULL, "currentRevision": "x-2", "updateRevision": "x-2"},
            Health.HEALTHY,
            "Healthy",
            id="row 83: one revision",
        ),
        pytest.param({"replicas": 0}, {}, Health.HEALTHY, "ScaledToZero", id="row 89: at zero"),
        pytest.param(
            {"replicas": 0}, pods(replicas=1), Health.PROGRESSING, "ExtraPods", id="on its way to 0"
        ),
        pytest.param(
            THREE, pods(replicas=3, ready=2), Health.PROGRESSING, "PodsNotReady", id="one not ready"
        ),
        pytest.param(
            {**THREE, "updateStrategy": {"type": "OnDelete"}},
            {**FULL, "updateRevision": "x-2"},
            Health.HEALTHY,
            "OnDelete",
            id="a person updates the pods",
        ),
        pytest.param(
            {**THREE, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {**FULL, "updatedReplicas": 0},
            Health.PROGRESSING,
            "UpdatingPods",
            id="partition not reached",
        ),
        pytest.param(
            {**THREE, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {**FULL, "updatedReplicas": 1, "updateRevision": "x-2"},
            Health.HEALTHY,
            "PartitionReached",
            id="partition reached",
        ),
        pytest.param(
            {
                **THREE,
                "ordinals": {"start": 10},
                "updateStrategy": {"rollingUpdate": {"partition": 12}},
            },
            {**FULL, "updatedReplicas": 0},
            Health.PROGRESSING,
            "UpdatingPods",
            id="partition of ordinals that start at 10",
        ),
        pytest.param(
            {**THREE, "minReadySeconds": 30},
            pods(replicas=3, ready=3, available=2),
            Health.PROGRESSING,
            "PodsNotAvailable",
            id="ready for too short a time",
        ),
    ],
)
def test_a_stateful_set_is_healthy_when_one_ready_revision_stands(spec, status, health, reason):
    """cases.md rows 83 and 89."""
    verdict = health_of(live("StatefulSet", spec, **status))

    assert (health, reason) == (verdict.status, verdict.reason)


@pytest.mark.parametrize(
    ("spec", "status", "health", "reason"),
    [
        ({}, {}, Health.PROGRESSING, "NotObserved"),
        ({}, {"desiredNumberScheduled": 0}, Health.HEALTHY, "Healthy"),
        ({}, {"desiredNumberScheduled": 2}, Health.PROGRESSING, "UpdatingPods"),
        (
            {},
            {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1},
            Health.PROGRESSING,
            "PodsNotAvailable",
        ),
        (
            {"updateStrategy": {"type": "OnDelete"}},
            {"desiredNumberScheduled": 2, "numberAvailable": 2},
            Health.HEALTHY,
            "Healthy",
        ),
        (
            {"updateStrategy": {"type": "OnDelete"}},
            {"desiredNumberScheduled": 2, "currentNumberScheduled": 1, "numberAvailable": 2},
            Health.PROGRESSING,
            "PodsMissing",
        ),
    ],
    ids=[
        "not counted",
        "no node",
        "old pods",
        "one not available",
        "a person updates the pods",
        "a node without its pod",
    ],
)
def test_a_daemon_set_is_healthy_when_every_node_has_its_pod(spec, status, health, reason):
    verdict = health_of(live("DaemonSet", spec, **status))

    assert (health, reason) == (verdict.status, verdict.reason)


@pytest.mark.parametrize(
    ("spec", "status", "health", "reason"),
    [
        (THREE, pods(replicas=3, available=3), Health.HEALTHY, "Healthy"),
        (THREE, pods(replicas=4, available=3), Health.PROGRESSING, "ExtraPods"),
        (THREE, pods(replicas=3, available=1), Health.PROGRESSING, "PodsNotAvailable"),
        ({"replicas": 0}, {}, Health.HEALTHY, "ScaledToZero"),
    ],
    ids=["done", "one too many", "two not available", "at zero"],
)
def test_a_replica_set_is_healthy_when_its_count_is_available(spec, status, health, reason):
    verdict = health_of(live("ReplicaSet", spec, **status))

    assert (health, reason) == (verdict.status, verdict.reason)


def waiting(reason: str, message: str = ""):
    return [
        {"name": "sidecar", "state": {"running": {}}},
        {"name": "engine", "state": {"waiting": {"reason": reason, "message": message}}},
    ]


@pytest.mark.parametrize(
    ("status", "health", "reason"),
    [
        pytest.param({}, Health.PROGRESSING, "Pending", id="not seen by a kubelet"),
        pytest.param({"phase": "Succeeded"}, Health.HEALTHY, "Completed", id="completed"),
        pytest.param({"phase": "Failed"}, Health.DEGRADED, "PodFailed", id="failed"),
        pytest.param(
            {"phase": "Failed", "reason": "Evicted"}, Health.DEGRADED, "Evicted", id="evicted"
        ),
        pytest.param(
            {"phase": "Running", "conditions": [said("Ready", "True")]},
            Health.HEALTHY,
            "Healthy",
            id="ready",
        ),
        pytest.param({"phase": "Running"}, Health.PROGRESSING, "NotReady", id="not ready"),
        pytest.param({"phase": "Unknown"}, Health.UNKNOWN, "NodeLost", id="node lost"),
        pytest.param(
            {"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff", "back-off 40s")},
            Health.DEGRADED,
            "CrashLoopBackOff",
            id="crash loop",
        ),
        pytest.param(
            {"phase": "Pending", "initContainerStatuses": waiting("ErrImagePull")},
            Health.DEGRADED,
            "ErrImagePull",
            id="no image",
        ),
        pytest.param(
            {"phase": "Pending", "containerStatuses": waiting("CreateContainerConfigError")},
            Health.DEGRADED,
            "CreateContainerConfigError",
            id="secret missing",
        ),
        pytest.param(
            {"phase": "Pending", "containerStatuses": waiting("ContainerCreating")},
            Health.PROGRESSING,
            "Pending",
            id="being made",
        ),
        pytest.param(
            {"phase": "Pending", "conditions": [said("PodScheduled", "False", "Unschedulable")]},
            Health.PROGRESSING,
            "Unschedulable",
            id="no node yet",
        ),
    ],
)
def test_a_pod_is_healthy_when_it_is_ready_or_done(status, health, reason):
    verdict = health_of(live("Pod", **status))

    assert (health, reason) == (verdict.status, verdict.reason)


def test_a_failing_container_is_named_with_what_the_kubelet_says():
    status = {"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff", "back-off 40s")}

    assert health_of(live("Pod", **status)).message == "container engine: back-off 40s"


@pytest.mark.parametrize(
    ("manifest", "health", "reason"),
    [
        pytest.param(
            live("Job", conditions=[said("Complete", "True")]),
            Health.HEALTHY,
            "Completed",
            id="job complete",
        ),
        pytest.param(live("Job", active=1), Health.PROGRESSING, "Running", id="job running"),
        pytest.param(
            live("Job", {"suspend": True}), Health.SUSPENDED, "Suspended", id="job suspended"
        ),
        pytest.param(
            live("Job", conditions=[said("Failed", "True", "BackoffLimitExceeded")]),
            Health.DEGRADED,
            "BackoffLimitExceeded",
            id="job failed",
        ),
        pytest.param(
            live("Job", conditions=[said("FailureTarget", "True", "PodFailurePolicy")]),
            Health.DEGRADED,
            "PodFailurePolicy",
            id="job whose last pods are being ended",
        ),
        pytest.param(live("CronJob"), Health.HEALTHY, "Healthy", id="cron job"),
        pytest.param(
            live("CronJob", {"suspend": True}),
            Health.SUSPENDED,
            "Suspended",
            id="cron job suspended",
        ),
        pytest.param(
            live("PersistentVolume", phase="Available"),
            Health.HEALTHY,
            "Available",
            id="volume free",
        ),
        pytest.param(
            live("PersistentVolume", phase="Failed", reason="RecycleFailed"),
            Health.DEGRADED,
            "RecycleFailed",
            id="volume failed",
        ),
        pytest.param(live("PersistentVolume"), Health.PROGRESSING, "Pending", id="volume new"),
        pytest.param(
            live("PersistentVolumeClaim", phase="Bound"), Health.HEALTHY, "Bound", id="claim bound"
        ),
        pytest.param(
            live("PersistentVolumeClaim", phase="Lost"), Health.DEGRADED, "Lost", id="claim lost"
        ),
        pytest.param(
            live("PersistentVolumeClaim"), Health.PROGRESSING, "Pending", id="claim pending"
        ),
        pytest.param(live("Service"), Health.HEALTHY, "Healthy", id="service"),
        pytest.param(
            live("Service", {"type": "LoadBalancer", "clusterIP": "10.0.0.9"}),
            Health.HEALTHY,
            "NoOuterAddress",
            id="balancer without an outer address",
        ),
        pytest.param(
            live("Service", BALANCER, loadBalancer={"ingress": [{"ip": "203.0.113.9"}]}),
            Health.HEALTHY,
            "Healthy",
            id="balancer with its address",
        ),
        pytest.param(
            live("Service", BALANCER, conditions=[said("LoadBalancerPortsError", "True")]),
            Health.DEGRADED,
            "Because",
            id="balancer that refuses the ports",
        ),
        pytest.param(
            live(
                "Service",
                BALANCER,
                loadBalancer={"ingress": [{"ports": [{"port": 80, "error": "PortInUse"}]}]},
            ),
            Health.DEGRADED,
            "PortRefused",
            id="balancer that refuses one port",
        ),
        pytest.param(
            live("Service", {"type": "LoadBalancer"}),
            Health.PROGRESSING,
            "NoClusterIP",
            id="balancer without any address",
        ),
        pytest.param(
            live("Namespace", phase="Active"), Health.HEALTHY, "Active", id="namespace active"
        ),
        pytest.param(
            live("Namespace", phase="Terminating"),
            Health.PROGRESSING,
            "Terminating",
            id="namespace going",
        ),
        pytest.param(
            live("HorizontalPodAutoscaler"), Health.PROGRESSING, "NotObserved", id="hpa new"
        ),
        pytest.param(
            live("HorizontalPodAutoscaler", conditions=[said("AbleToScale", "True")]),
            Health.HEALTHY,
            "Healthy",
            id="hpa able",
        ),
        pytest.param(
            live("HorizontalPodAutoscaler", conditions=[said("AbleToScale", "False")]),
            Health.DEGRADED,
            "Because",
            id="hpa unable",
        ),
        pytest.param(
            live(
                "HorizontalPodAutoscaler",
                conditions=[said("ScalingActive", "False", "FailedGetResourceMetric")],
            ),
            Health.DEGRADED,
            "FailedGetResourceMetric",
            id="hpa blind",
        ),
        pytest.param(
            live(
                "HorizontalPodAutoscaler",
                conditions=[said("ScalingActive", "False", "ScalingDisabled")],
            ),
            Health.HEALTHY,
            "ScalingDisabled",
            id="hpa of a target at zero",
        ),
        pytest.param(
            live("CustomResourceDefinition", conditions=[said("Established", "True")]),
            Health.HEALTHY,
            "Established",
            id="crd served",
        ),
        pytest.param(
            live("CustomResourceDefinition", conditions=[said("NamesAccepted", "False")]),
            Health.DEGRADED,
            "Because",
            id="crd refused",
        ),
        pytest.param(
            live("CustomResourceDefinition"), Health.PROGRESSING, "Installing", id="crd new"
        ),
        pytest.param(
            live("APIService", conditions=[said("Available", "True")]),
            Health.HEALTHY,
            "Available",
            id="api service available",
        ),
        pytest.param(
            live("APIService", conditions=[said("Available", "False", "MissingEndpoints")]),
            Health.DEGRADED,
            "MissingEndpoints",
            id="api service without a server",
        ),
        pytest.param(live("APIService"), Health.PROGRESSING, "NotObserved", id="api service new"),
        pytest.param(
            live(
                "PodDisruptionBudget",
                conditions=[said("DisruptionAllowed", "False", "SyncFailed")],
            ),
            Health.DEGRADED,
            "SyncFailed",
            id="budget whose pods cannot be counted",
        ),
        pytest.param(
            live("PodDisruptionBudget", conditions=[said("DisruptionAllowed", "False")]),
            Health.HEALTHY,
            "Healthy",
            id="budget that is used up",
        ),
        pytest.param(
            live("ReplicationController", THREE, **pods(replicas=3, ready=3, available=2)),
            Health.PROGRESSING,
            "PodsNotAvailable",
            id="replication controller",
        ),
    ],
)
def test_other_built_in_kinds_have_their_own_rule(manifest, health, reason):
    verdict = health_of(manifest)

    assert (health, reason) == (verdict.status, verdict.reason)


@pytest.mark.parametrize(
    ("phase", "health", "reason"),
    [
        (ReplicaPhase.READY, Health.HEALTHY, "Ready"),
        (ReplicaPhase.STUCK, Health.DEGRADED, "Stuck"),
        (ReplicaPhase.STARTING, Health.PROGRESSING, "Starting"),
        (ReplicaPhase.IMAGE_PULL, Health.PROGRESSING, "ImagePull"),
        (ReplicaPhase.PENDING, Health.PROGRESSING, "Pending"),
        (ReplicaPhase.NODE_PROVISIONING, Health.PROGRESSING, "NodeProvisioning"),
        (ReplicaPhase.TERMINATING, Health.PROGRESSING, "Terminating"),
    ],
)
def test_a_replica_is_judged_by_its_phase(phase, health, reason):
    verdict = health_of_phase(phase, "why")

    assert (health, reason) == (verdict.status, verdict.reason)


def test_the_worst_verdict_is_the_first_of_the_worst_word():
    first = HealthVerdict(Health.DEGRADED, "First")
    second = HealthVerdict(Health.DEGRADED, "Second")

    assert worst((ABSENT, first, second)) == first


def test_nothing_to_judge_is_healthy():
    assert worst(()).status is Health.HEALTHY


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["type", "status", "conditions", "state", "x"]), inner)
    ),
    max_leaves=8,
)


@given(
    kind=st.sampled_from([*KINDS, "Pod", "Service", "Namespace", "PersistentVolumeClaim"]),
    metadata=anything,
    spec=anything,
    status=anything | st.fixed_dictionaries({"conditions": anything}),
)
def test_no_content_of_a_live_object_breaks_the_judgement(kind, metadata, spec, status):
    """A custom resource may hold anything; a verdict must come all the same."""
    manifest = {
        "apiVersion": KINDS.get(kind, "v1"),
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }

    assert health_of(manifest).reason

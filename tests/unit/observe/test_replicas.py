import pytest

from stoker.errors import Unreachable
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.shape import Resources
from stoker.model.snapshot import DrainState, Refusal, ReplicaPhase
from stoker.model.times import rfc3339
from stoker.objects import names
from stoker.observe.pods import pod_facts
from stoker.observe.replicas import deployment_facts, services_from
from unit.observe.observe_builders import LLAMA, NOW, deployment, desired, pod, service_unit

MINUTE = 60_000


def ago(milliseconds):
    return rfc3339(NOW - milliseconds)


def condition(kind, status="True", since=MINUTE, **more):
    return {"type": kind, "status": status, "lastTransitionTime": ago(since), **more}


def running(since=MINUTE, name="engine", **more):
    return {"name": name, "state": {"running": {"startedAt": ago(since)}}, **more}


def waiting(reason, name="engine", **more):
    return {"name": name, "state": {"waiting": {"reason": reason}}, **more}


def replica_pod(
    name="p1", *containers, conditions=(), init=(), created=5 * MINUTE, node="n1", **more
):
    labels = {
        names.SERVICE_LABEL: "llama",
        names.PLACEMENT_LABEL: "x-1",
        names.TRAFFIC_LABEL: "true",
        **more.pop("labels", {}),
    }
    metadata = {"labels": labels, "uid": f"uid-{name}", "creationTimestamp": ago(created)}
    return pod(
        name,
        node,
        phase=more.pop("phase", "Running"),
        metadata={**metadata, **more.pop("metadata", {})},
        spec=more.pop("spec", {}),
        status={
            "conditions": list(conditions),
            "containerStatuses": list(containers),
            "initContainerStatuses": list(init),
            **more,
        },
    )


def services(deployments=None, pods=(), units=(), scalers=None, load_probe=None):
    raws = deployments if deployments is not None else [deployment()]
    found = [
        (_ref(raw), deployment_facts(raw, unit))
        for raw, unit in ((r if isinstance(r, tuple) else (r, LLAMA)) for r in raws)
    ]
    return services_from(
        found,
        [((_ref(raw).namespace, _ref(raw).name), pod_facts(raw)) for raw in pods],
        scalers or {},
        desired(*units),
        load_probe,
        NOW,
    )


def _ref(raw):
    metadata = raw["metadata"]
    group = raw["apiVersion"].rpartition("/")[0]
    return ObjectRef(group, raw["kind"], metadata.get("namespace", ""), metadata["name"])


def replica(raw, **more):
    return services(pods=[raw], **more)[0].placements[0].pods[0]


def phase_of(raw, **more):
    found = replica(raw, **more)
    return found.phase, found.reason


READY = condition("Ready")
UNREADY = condition("Ready", "False")


def test_a_deployment_says_where_it_was_placed_and_how_many_it_wants():
    (service,) = services([deployment("d1", replicas=0)])

    (found,) = service.placements
    assert service.ref == LLAMA
    assert (found.name, found.rev, found.node, found.node_uid) == ("d1", "1", "n1", "uid-n1")
    assert found.replicas == 0
    assert found.requests == Resources(pods=1)
    assert not found.terminating


@pytest.mark.parametrize(
    ("generation", "status", "pods", "unsettled"),
    [
        (2, {"observedGeneration": 2, "replicas": 1}, 1, False),
        (2, {"observedGeneration": 1, "replicas": 1}, 1, True),
        (2, {"observedGeneration": 2, "replicas": 2}, 1, True),
        (2, {"observedGeneration": 2, "replicas": 0, "terminatingReplicas": 1}, 0, True),
        (1, {}, 0, True),
    ],
    ids=["seen", "write-not-seen", "pod-not-seen", "dying-pod-not-seen", "brand-new"],
)
def test_a_deployment_whose_pods_may_be_unseen_is_unsettled(generation, status, pods, unsettled):
    """A GPU whose pod the watch does not show yet must not be given away twice."""
    raw = {**deployment(generation=generation), "status": status}
    (state,) = services([raw], [replica_pod(f"p{n}") for n in range(pods)])

    assert unsettled == state.placements[0].unsettled


def test_a_template_whose_requests_cannot_be_read_is_unknown_and_not_free():
    raw = deployment()
    raw["spec"]["template"]["spec"]["containers"] = [
        {"name": "engine", "resources": {"requests": {"cpu": "?"}}}
    ]

    assert services([raw])[0].placements[0].requests is None


def test_services_and_their_deployments_come_sorted_and_bundles_are_left_out():
    other = UnitRef("ModelService", "llm", "alpha")
    bundle = UnitRef("Bundle", "llm", "gateway")

    found = services([deployment("b"), deployment("a"), (deployment("c"), other),
                      (deployment("d"), bundle)])  # fmt: skip

    assert [service.ref.name for service in found] == ["alpha", "llama"]
    assert [place.name for place in found[1].placements] == ["a", "b"]


def test_pods_belong_to_the_deployment_whose_placement_label_they_carry():
    pods = [
        replica_pod("p2"),
        replica_pod("p1"),
        replica_pod("other-node", labels={names.PLACEMENT_LABEL: "y-1"}),
        replica_pod("other-service", labels={names.SERVICE_LABEL: "mistral"}),
        pod("foreign"),
    ]

    (service,) = services(pods=pods)

    assert [found.name for found in service.placements[0].pods] == ["p1", "p2"]


def test_pods_of_another_namespace_are_not_mixed_in():
    raw = replica_pod()
    raw["metadata"]["namespace"] = "other"

    assert services(pods=[raw])[0].placements[0].pods == ()


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_ended_pods_are_no_replicas_for_their_set_has_replaced_them(phase):
    assert services(pods=[replica_pod(phase=phase)])[0].placements[0].pods == ()


def refused(name="r1", reason="UnexpectedAdmissionError", **more):
    return replica_pod(name, phase="Failed", reason=reason, **more)


@pytest.mark.parametrize("reason", ["UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "Evicted"])
def test_pods_that_a_node_refused_are_told_the_newest_of_each_node(reason):
    """kubernetes#108152: a ReplicaSet makes them without end."""
    pods = [
        refused("a", reason, created=9 * MINUTE),
        refused("b", reason, created=3 * MINUTE),
        refused("c", reason, created=5 * MINUTE, node="n2"),
    ]
    place = services(pods=pods)[0].placements[0]

    expected = (Refusal("n1", reason, NOW - 3 * MINUTE), Refusal("n2", reason, NOW - 5 * MINUTE))
    assert expected == place.refusals
    assert expected[0] == place.refusal_by("n1")
    assert place.refusal_by("n3") is None


@pytest.mark.parametrize(
    "raw",
    [
        refused(reason="Preempting"),
        refused(reason="Terminated"),
        refused(reason=""),
        refused(created=61 * MINUTE),
        refused(node=""),
        replica_pod("done", phase="Succeeded", reason="UnexpectedAdmissionError"),
    ],
    ids=["preempted", "node shut down", "no reason", "long ago", "no node", "succeeded"],
)
def test_other_ends_say_nothing_about_the_node(raw):
    assert services(pods=[raw])[0].placements[0].refusals == ()


def test_a_container_that_was_killed_for_its_memory_says_so():
    killed = {"lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
    loop = replica(replica_pod("p", waiting("CrashLoopBackOff", **killed), conditions=[UNREADY]))
    runs = replica(replica_pod("p", running(**killed), conditions=[UNREADY]))

    assert (ReplicaPhase.STUCK, "OOMKilled") == (loop.phase, loop.reason)
    assert ReplicaPhase.STARTING is runs.phase


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (replica_pod("p", running(), conditions=[READY]), (ReplicaPhase.READY, "")),
        (replica_pod("p", running(), conditions=[UNREADY]), (ReplicaPhase.STARTING, "")),
        (
            replica_pod("p", waiting("ContainerCreating"), conditions=[UNREADY]),
            (ReplicaPhase.IMAGE_PULL, "ContainerCreating"),
        ),
        (
            replica_pod(
                "p", waiting("PodInitializing"), init=[running(name="fetch")], conditions=[UNREADY]
            ),
            (ReplicaPhase.STARTING, "PodInitializing"),
        ),
        (
            replica_pod("p", waiting("PodInitializing"), init=[waiting("ContainerCreating")]),
            (ReplicaPhase.IMAGE_PULL, "ContainerCreating"),
        ),
        (replica_pod("p", phase="Pending"), (ReplicaPhase.PENDING, "")),
        (
            replica_pod(
                "p", node="", conditions=[condition("PodScheduled", "False", reason="Unschedulable")]
            ),
            (ReplicaPhase.PENDING, "Unschedulable"),
        ),
        (
            replica_pod("p", node="", nominatedNodeName="n9"),
            (ReplicaPhase.NODE_PROVISIONING, ""),
        ),
        (
            replica_pod(
                "p", running(), conditions=[READY], metadata={"deletionTimestamp": ago(0)}
            ),
            (ReplicaPhase.TERMINATING, ""),
        ),
    ],
    ids=["ready", "starting", "image pull", "init runs", "init image pull", "bound only",
         "unschedulable", "node on its way", "terminating"],
)  # fmt: skip
def test_phases_are_read_from_conditions_and_container_states(raw, expected):
    assert phase_of(raw) == expected


@pytest.mark.parametrize(
    "reason",
    ["CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError",
     "InvalidImageName", "CreateContainerError", "RunContainerError", "ErrImageNeverPull"],
)  # fmt: skip
@pytest.mark.parametrize("place", ["engine", "init"])
def test_what_waiting_cannot_mend_is_stuck(reason, place):
    if place == "init":
        raw = replica_pod("p", waiting("PodInitializing"), init=[waiting(reason)])
    else:
        raw = replica_pod("p", waiting(reason))

    assert phase_of(raw) == (ReplicaPhase.STUCK, reason)


@pytest.mark.parametrize(("restarts", "stuck"), [(0, False), (1, False), (2, True)])
def test_more_than_one_restart_before_ready_is_stuck(restarts, stuck):
    found = replica(replica_pod("p", running(restartCount=restarts), conditions=[UNREADY]))

    assert stuck == (found.phase is ReplicaPhase.STUCK)
    assert found.restarts == restarts


def test_old_restarts_of_a_ready_replica_do_not_matter():
    raw = replica_pod("p", running(restartCount=9), conditions=[READY])

    assert phase_of(raw)[0] is ReplicaPhase.READY


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (
            replica_pod("p", running(), created=25 * MINUTE, conditions=[
                condition("Ready", "False", 21 * MINUTE)]),
            "DeadlineExceeded",
        ),
        (
            replica_pod("p", node="", created=21 * MINUTE, conditions=[
                condition("PodScheduled", "False", reason="Unschedulable")]),
            "Unschedulable",
        ),
        (replica_pod("p", node="", created=21 * MINUTE), "Unscheduled"),
    ],
    ids=["start", "unschedulable", "never looked at"],
)  # fmt: skip
def test_a_start_past_its_deadline_is_stuck_since_then(raw, reason):
    found = replica(raw)

    assert (found.phase, found.reason) == (ReplicaPhase.STUCK, reason)
    assert found.since_ms == NOW - MINUTE


def test_time_spent_waiting_for_a_node_is_not_held_against_the_engine():
    raw = replica_pod(
        "p",
        running(),
        created=30 * MINUTE,
        conditions=[condition("PodScheduled", since=10 * MINUTE), condition("Ready", "False")],
    )

    assert phase_of(raw)[0] is ReplicaPhase.STARTING


def test_a_replica_that_lost_readiness_gets_the_deadline_anew():
    raw = replica_pod(
        "p", running(600 * MINUTE), created=900 * MINUTE, conditions=[condition("Ready", "False")]
    )

    assert phase_of(raw)[0] is ReplicaPhase.STARTING


def test_the_deadline_is_the_services_own():
    raw = replica_pod("p", running(), conditions=[condition("Ready", "False", 3 * MINUTE)])
    strict = service_unit(cold_start_deadline_ms=2 * MINUTE)

    assert phase_of(raw)[0] is ReplicaPhase.STARTING
    assert phase_of(raw, units=[strict])[0] is ReplicaPhase.STUCK


@pytest.mark.parametrize(
    ("raw", "since"),
    [
        (
            replica_pod("p", running(4 * MINUTE), conditions=[condition("Ready", since=MINUTE)]),
            MINUTE,
        ),
        (replica_pod("p", running(2 * MINUTE)), 2 * MINUTE),
        (
            replica_pod(
                "p",
                waiting("ContainerCreating"),
                conditions=[condition("PodScheduled", since=3 * MINUTE)],
            ),
            3 * MINUTE,
        ),
        (replica_pod("p", node=""), 5 * MINUTE),
        (
            replica_pod(
                "p", metadata={"deletionTimestamp": ago(-MINUTE), "deletionGracePeriodSeconds": 90}
            ),
            MINUTE // 2,
        ),
    ],
    ids=["ready", "starting", "image pull", "pending", "terminating since the request"],
)
def test_since_says_when_the_phase_began(raw, since):
    assert replica(raw).since_ms == NOW - since


def test_a_replica_says_when_it_was_bound_and_when_its_engine_began():
    """What ready-in is learned from; 0 is not yet."""
    bound = condition("PodScheduled", since=3 * MINUTE)
    early = replica(replica_pod("p", waiting("ContainerCreating"), conditions=[bound]))
    late = replica(replica_pod("p", running(2 * MINUTE), conditions=[bound]))

    assert (early.scheduled_ms, early.started_ms) == (NOW - 3 * MINUTE, 0)
    assert (late.scheduled_ms, late.started_ms) == (NOW - 3 * MINUTE, NOW - 2 * MINUTE)


def draining(**more):
    metadata = {"annotations": {names.DRAINING_SINCE: ago(MINUTE), **more.pop("annotations", {})}}
    return replica_pod(
        "p",
        running(),
        conditions=[READY],
        labels={names.TRAFFIC_LABEL: "false"},
        metadata=metadata,
        podIP="192.0.2.7",
        **more,
    )


def test_a_draining_replica_says_since_when_and_how_busy_it_is():
    asked = []

    def probe(address):
        asked.append(address)
        return 3

    found = replica(draining(), load_probe=probe)

    assert found.drain == DrainState(NOW - MINUTE, 3)
    assert not found.traffic
    assert asked == ["192.0.2.7:8000"]


@pytest.mark.parametrize(
    ("raw", "units", "address"),
    [
        (draining(annotations={names.ADDRESS: "127.0.0.1:4711"}), (), "127.0.0.1:4711"),
        (draining(), [service_unit(service_port=9000)], "192.0.2.7:9000"),
        (
            draining(spec={"containers": [{"name": "engine", "ports": [{"containerPort": 8123}]}]}),
            (),
            "192.0.2.7:8123",
        ),
    ],
    ids=["simulated", "service port", "container port"],
)
def test_the_engine_is_asked_where_it_listens(raw, units, address):
    asked = []

    replica(raw, units=units, load_probe=lambda found: asked.append(found))

    assert asked == [address]


def test_only_draining_replicas_are_asked():
    def probe(address):
        raise AssertionError(address)

    assert replica(replica_pod("p", running(), conditions=[READY]), load_probe=probe).drain is None


def test_an_engine_that_does_not_answer_counts_as_busy_and_not_as_idle():
    def silent(_):
        raise Unreachable("nobody there")

    assert replica(draining(), load_probe=silent).drain == DrainState(NOW - MINUTE, None)
    assert replica(draining()).drain == DrainState(NOW - MINUTE, None)


def test_a_drain_mark_that_is_no_time_cuts_nothing_short():
    raw = draining(annotations={names.DRAINING_SINCE: "yesterday"})

    assert replica(raw).drain == DrainState(NOW, None)


def test_a_count_that_somebody_else_owns_names_the_owner():
    ref = ObjectRef("apps", "Deployment", "llm", "d1")

    found = services(scalers={ref: "HorizontalPodAutoscaler/x"})

    assert found[0].placements[0].externally_scaled == "HorizontalPodAutoscaler/x"

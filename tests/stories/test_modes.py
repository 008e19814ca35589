"""Placement mode, who owns a count, and mode Observe: switching any of them loses nothing."""

from __future__ import annotations

from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.objects import names
from stoker.objects.wishes import OVERRIDE, text_of_override
from stories.files import FLEET, a_fleet, a_patient_fleet, a_service, the_fleet, the_village
from stories.looks import (
    as_it_stands,
    conditions,
    counts_by_node,
    deployments,
    fleet_status,
    is_clean,
    pod_uids,
    rest,
    serving,
    standing,
    tell,
    unit_status,
    watch,
)

TINY = "ModelService/llm/tiny"
NODES = tuple(WorldNode(f"gpu-{number}") for number in (1, 2, 3))
POOLS = [{"name": "gpu"}]
HPA = ObjectRef("autoscaling", "HorizontalPodAutoscaler", "llm", "tiny", "v2")
DEPLOYMENT = ObjectRef("apps", "Deployment", "llm", "tiny")


def by_scheduler(replicas: int | None = 2, **spec) -> dict[str, str]:
    placement = {"mode": "Scheduler", "pools": POOLS}
    service = a_service(replicas=replicas, placement=placement, **spec)
    return the_fleet(service, fleet=a_patient_fleet())


def by_node(replicas: int = 2, **spec) -> dict[str, str]:
    return the_fleet(a_service(replicas=replicas, **spec), fleet=a_patient_fleet())


def an_autoscaler(world) -> None:
    """Somebody makes an HPA for the Deployment of mode Scheduler."""
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": HPA.name, "namespace": HPA.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "tiny"},
            "minReplicas": 2,
            "maxReplicas": 3,
        },
    }
    world.cluster.apply(body, manager="somebody")


def scale(world, replicas: int) -> None:
    """What an HPA does: one write of the scale subresource."""
    patch = {"spec": {"replicas": replicas}}
    manager = "kube-controller-manager"
    world.cluster.patch(DEPLOYMENT, "merge", patch, manager=manager, subresource="scale")


def count(world) -> int:
    found: int = world.cluster.get(DEPLOYMENT)["spec"]["replicas"]
    return found


# ------------------------------------------------------------------- placement mode
def test_from_nodes_to_scheduler_and_back_it_serves_throughout(settled):
    """One Deployment grows as those of the nodes leave, never below the floor; and back."""
    world = settled(by_node(2), *NODES)

    world.commit("Scheduler", by_scheduler(2))
    seen = watch(world, 25, lambda: len(serving(world)))
    rest(world)

    assert 1 <= min(seen)
    assert ["tiny"] == [d["metadata"]["name"] for d in deployments(world)]
    assert 2 == len(serving(world))
    assert is_clean(world)

    world.commit("Nodes", by_node(2))
    seen = watch(world, 25, lambda: len(serving(world)))
    rest(world)

    assert 1 <= min(seen)
    assert 2 == sum(counts_by_node(world).values())
    assert "tiny" not in [d["metadata"]["name"] for d in deployments(world)]
    assert is_clean(world)


def test_mode_scheduler_leaves_the_nodes_to_kubernetes(settled):
    """Only the pool is required, and the count is Git's."""
    world = settled(by_scheduler(3), *NODES, WorldNode("cpu-1", {"pool": "cpu"}, gpus=0))

    spec = deployments(world)[0]["spec"]
    affinity = spec["template"]["spec"]["affinity"]["nodeAffinity"]
    assert "preferredDuringSchedulingIgnoredDuringExecution" not in affinity
    assert {"gpu-1", "gpu-2", "gpu-3"} == {p["spec"]["nodeName"] for p in serving(world)}
    assert names.NODE not in (deployments(world)[0]["metadata"]["annotations"])
    assert is_clean(world)


# --------------------------------------------------------------- who owns the count
def test_a_live_autoscaler_owns_the_count_and_git_gets_it_back(settled):
    """cases.md row 59: replicas in Git and an HPA must not flip; one warning, no write."""
    world = settled(by_scheduler(1), *NODES)
    an_autoscaler(world)
    scale(world, 3)
    rest(world)

    seen = watch(world, 10, lambda: count(world))
    assert {3} == set(seen)
    assert 3 == len(serving(world))
    told = unit_status(world, TINY)["count"]
    assert "HorizontalPodAutoscaler/tiny" == told["source"]
    assert is_clean(world)

    world.cluster.delete(HPA)
    rest(world)

    assert 1 == count(world)
    assert 1 == len(serving(world))
    assert "Git" == unit_status(world, TINY)["count"]["source"]
    assert is_clean(world)


def test_a_count_of_somebody_else_survives_a_change_of_the_model(settled):
    """cases.md row 61: replicas were unset for a moment, 4 became 1 became 4."""
    scaling = {"mode": "External"}
    nodes = (*NODES, WorldNode("gpu-4"), WorldNode("gpu-5"))
    world = settled(by_scheduler(None, scaling=scaling), *nodes)
    scale(world, 4)
    rest(world)
    assert 4 == len(serving(world))

    image = {"type": "vllm", "image": "registry.example/vllm:0.29"}
    world.commit("A new image", by_scheduler(None, scaling=scaling, engine=image))
    seen = watch(world, 40, lambda: (count(world), len(serving(world))))
    rest(world)

    assert {4} == {wanted for wanted, _ in seen}
    assert 3 <= min(ready for _, ready in seen)
    engine = deployments(world)[0]["spec"]["template"]["spec"]["containers"][0]
    assert "registry.example/vllm:0.29" == engine["image"]
    assert 4 == len(serving(world))
    assert is_clean(world)


def test_zero_is_a_count_too(settled):
    """An autoscaler that went to 0 meant it."""
    world = settled(by_scheduler(None, scaling={"mode": "External"}), *NODES)
    scale(world, 0)

    seen = watch(world, 12, lambda: count(world))

    assert {0} == set(seen)
    assert [] == serving(world)
    assert is_clean(world)


def test_scaling_by_hand_is_drift_where_git_says_the_count(settled):
    world = settled(by_scheduler(2), *NODES)
    patch = {"spec": {"replicas": 3}}
    world.cluster.patch(DEPLOYMENT, "merge", patch, manager="kubectl", subresource="scale")

    rest(world)

    assert 2 == count(world)
    assert is_clean(world)
    assert 1 == fleet_status(world)["summary"]["driftRepaired24h"]


# -------------------------------------------------------------------- mode Observe
def observing(files: dict[str, str]) -> dict[str, str]:
    return {**files, FLEET: a_fleet(mode="Observe")}


def test_observe_reports_everything_and_touches_nothing_but_its_own(new_world, faults):
    """Safe to point at any cluster: only status goes out, and mirrors that nobody runs by."""
    world = new_world(wrap=faults)

    world.commit("Look", observing(the_village()))
    world.advance(3)

    written = {path.split("/status")[0] for path in faults.writes}
    ours = ("/apis/stoker.dev/", "/api/v1/namespaces/stoker-system")
    assert [] == [path for path in written if not path.partition(" ")[2].startswith(ours)]
    assert [] == [n for n in world.objects("", "Namespace") if n["metadata"]["name"] == "llm"]
    told = {kind: status for kind, (status, _) in conditions(fleet_status(world)).items()}
    assert {"Ready": "False", "Reconciling": "False", "Stalled": "False"}.items() <= told.items()
    assert "OutOfSync" == unit_status(world, TINY)["sync"]["status"]
    assert 2 == len(unit_status(world, TINY)["placements"])


def test_observe_without_mirrors_writes_to_git_alone(new_world, faults):
    """Before `stoker install`, with rights to read and nothing else."""
    world = new_world(wrap=faults, definitions=False)

    world.commit("Look", observing(the_village()))
    world.advance(1)
    version = world.memory.resource_version
    world.work.parts.observer.refresh()
    world.commit("Look again", observing(the_village(tiny=a_service(replicas=3))))
    world.clock.wait(2)
    world.one_pass()

    assert version == world.memory.resource_version
    assert 3 == unit_status(world, TINY)["replicas"]["desired"]


def test_back_to_observe_a_running_fleet_stays_as_it_is(world, faults):
    """Drift, a scale down and a removal are told and left."""
    before = as_it_stands(world)
    world.commit("Look only", {FLEET: a_fleet(mode="Observe")})
    tell(world)
    faults.asked.clear()

    less = the_village(tiny=a_service(replicas=1))
    world.commit("Less", {**less, FLEET: a_fleet(mode="Observe"), "models/other.yaml": None})
    world.cluster.delete(ObjectRef("", "Service", "llm", "tiny"))
    world.advance(5)

    assert [] == [path for path in faults.writes if "/apis/stoker.dev/" not in path]
    left = {name: value for name, value in before.items() if name != "Service/tiny"}
    assert left == as_it_stands(world)
    assert "OutOfSync" == unit_status(world, TINY)["sync"]["status"]

    world.commit("Go on", less)
    rest(world)

    assert is_clean(world)
    assert 1 == len(serving(world))
    assert "Service/tiny" in standing(world)
    assert pod_uids(world) < {uid for name, (uid, _) in before.items() if name.startswith("Pod/")}


def test_an_override_typed_beside_an_autoscaler_is_refused_where_people_look(settled):
    """`stoker override` refuses it; typed by hand it would else be ignored without a word."""
    world = settled(by_scheduler(1), *NODES)
    an_autoscaler(world)
    scale(world, 3)
    rest(world)
    mirror = ObjectRef("stoker.dev", "ModelService", "llm", "tiny", "v1alpha1")
    until_ms = world.clock.now_ms() + 3_600_000
    value = text_of_override(2, "quiet night", world.clock.now_ms(), until_ms)
    body = {"metadata": {"annotations": {OVERRIDE: value}}}
    world.cluster.patch(mirror, "merge", body, manager="kubectl-annotate")
    rest(world)

    told = f"2 until {rfc3339(until_ms)}: refused, HorizontalPodAutoscaler/tiny owns the count"
    assert 3 == count(world)
    assert f"{told} (quiet night)" == unit_status(world, TINY)["count"]["refused"]

    world.cluster.patch(
        mirror, "merge", {"metadata": {"annotations": {OVERRIDE: None}}}, manager="kubectl-annotate"
    )
    rest(world)

    assert "refused" not in unit_status(world, TINY)["count"]

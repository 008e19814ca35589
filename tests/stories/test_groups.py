"""Replicas over several nodes: whole in one domain or not at all, and counted in groups."""

from __future__ import annotations

from stoker.cli.world import World
from stoker.model.refs import ObjectRef
from stoker.model.workload import LWS_GROUP, LWS_KIND, WORKER_INDEX
from stoker.objects import names
from stoker.sim.groups import group_definition
from stories.files import NEW, a_service, the_fleet
from stories.groups import (
    ZONE,
    a_group_service,
    a_node,
    a_world,
    engines,
    nodes_of,
    serving,
    sets,
    two_zones,
)
from stories.looks import conditions, unit_status, watch

UNIT = "ModelService/llm/tiny"


def test_a_group_starts_whole_in_one_domain(new_world):
    """The label for traffic stands on the leader alone; the workers are ranks of its engine."""
    world = a_world(new_world)
    world.commit("First", the_fleet(a_group_service()))

    world.settle()

    (made,) = sets(world)
    zones = {node[0] for node in nodes_of(world, made)}
    assert 2 == len(nodes_of(world, made))
    assert 1 == len(zones)
    assert 1 == len(serving(world))
    traffic = {
        pod["metadata"]["labels"][WORKER_INDEX]
        for pod in engines(world)
        if names.TRAFFIC_LABEL in pod["metadata"]["labels"]
    }
    assert {"0"} == traffic
    status = unit_status(world, UNIT)
    assert ("True", "Healthy") == conditions(status)["Healthy"]
    assert 1 == status["replicas"]["ready"]


def groups_by_domain(world: World) -> list[str]:
    return sorted(each["metadata"]["annotations"][names.DOMAIN] for each in sets(world))


def holds(world: World) -> list[str]:
    return [hold["reason"] for hold in unit_status(world, UNIT)["holds"]]


def test_no_domain_with_enough_nodes_starts_nothing(new_world):
    """One free node in each of three zones is no place for a pair."""
    nodes = [a_node(f"{zone}1", zone) for zone in "abc"]
    world = a_world(new_world, *nodes)
    world.commit("First", the_fleet(a_group_service()))

    world.settle()

    assert [] == sets(world)
    assert [] == engines(world)
    assert ["HeldNoCapacity"] == holds(world)
    assert 3 == unit_status(world, UNIT)["rejected"]["group-domain"]


def test_a_group_that_loses_a_workers_node_is_lost_and_stands_again_elsewhere(new_world):
    """RecreateGroupOnPodRestart would wait for ever for a node that is gone."""
    world = a_world(new_world)
    world.commit("First", the_fleet(a_group_service()))
    world.settle()
    (made,) = sets(world)
    leader, worker = made["metadata"]["annotations"][names.NODES].split(",")
    assert made["metadata"]["annotations"][names.NODE] == leader

    world.cluster.delete(ObjectRef("", "Node", "", worker), uid="")
    watch(world, 3, lambda: None)
    assert [] == serving(world)
    world.settle()

    (after,) = sets(world)
    assert worker not in nodes_of(world, after)
    assert 1 == len({node[0] for node in nodes_of(world, after)})
    assert 1 == len(serving(world))


def test_a_notice_on_a_workers_node_moves_the_whole_group_without_a_gap(new_world):
    world = a_world(new_world)
    world.commit("First", the_fleet(a_group_service()))
    world.settle()
    (made,) = sets(world)
    worker = made["metadata"]["annotations"][names.NODES].split(",")[1]
    node = ObjectRef("", "Node", "", worker)
    taint = {"key": "aws-node-termination-handler/spot-itn", "value": "x", "effect": "NoSchedule"}
    world.cluster.patch(node, "merge", {"spec": {"taints": [taint]}}, manager="handler")

    seen = watch(world, 40, lambda: len(serving(world)))

    (after,) = sets(world)
    assert made["metadata"]["name"] != after["metadata"]["name"]
    assert nodes_of(world, made).isdisjoint(nodes_of(world, after))
    assert 1 <= min(seen), "some group served all the time"


def test_an_update_makes_before_it_breaks(new_world):
    world = a_world(new_world)
    world.commit("First", the_fleet(a_group_service()))
    world.settle()
    before = serving(world)

    world.commit("Update", the_fleet(a_group_service(revision=NEW)))
    seen = watch(world, 60, lambda: len(serving(world)))
    world.settle()

    assert 1 <= min(seen)
    assert 1 == len(serving(world))
    assert before != serving(world)
    assert {NEW} == {p["metadata"]["labels"][names.MODEL_REVISION_LABEL] for p in engines(world)}


def test_one_group_of_two_leaves_whole(new_world):
    """The leader loses its traffic and drains; then both pods of one group go, and only those."""
    world = a_world(new_world)
    world.commit("First", the_fleet(a_group_service(replicas=2)))
    world.settle()
    assert ["a", "b"] == groups_by_domain(world)
    assert 2 == len(serving(world))

    world.commit("Fewer", the_fleet(a_group_service(replicas=1)))
    seen = watch(world, 30, lambda: len(serving(world)))
    world.settle()

    assert 1 == min(seen)
    assert 1 == len(sets(world))
    assert 2 == len(engines(world))


def test_without_the_kind_one_finding_says_what_to_install(new_world):
    """Nothing else stops: the other service starts."""
    world = new_world(*two_zones())
    world.commit("First", the_fleet(a_group_service(), a_service("other")))
    watch(world, 20, lambda: None)

    told = str(unit_status(world, UNIT))
    assert "kind-not-found" in told
    assert "install the LeaderWorkerSet controller" in told
    others = world.objects("apps", "Deployment", "llm")
    assert ["other"] == [each["metadata"]["labels"][names.SERVICE_LABEL] for each in others]

    world.cluster.apply(group_definition(), manager="install")
    world.settle()

    assert 1 == len(serving(world))


def test_the_budget_keeps_drainers_away_from_leader_and_workers(new_world):
    """With one pod the whole group stops; Stoker moves it, and the drainer waits for that."""
    world = a_world(new_world)
    world.commit("First", the_fleet(a_group_service()))
    world.settle()

    (budget,) = world.objects("policy", "PodDisruptionBudget", "llm")
    assert 0 == budget["status"]["disruptionsAllowed"]
    assert 2 == budget["status"]["currentHealthy"]


def test_a_service_that_leaves_git_drains_its_groups_and_takes_them_along(new_world):
    world = a_world(new_world)
    world.commit("First", the_fleet(a_group_service(), a_service("other")))
    world.settle()

    world.commit("Left", {"models/tiny.yaml": None})
    world.advance(3)
    assert [] == serving(world)
    assert 2 == len(world.ready_pods()) - 1, "both pods stay until the leader has drained"
    world.advance(20)
    world.settle()

    assert () == world.objects(LWS_GROUP, LWS_KIND, "llm")
    assert [] == engines(world)


def test_a_group_becomes_one_node_and_the_reverse(new_world):
    """Deployments and LeaderWorkerSets of one service take over from each other as updates do."""
    world = a_world(new_world)
    world.commit("First", the_fleet(a_service()))
    world.settle()

    world.commit("Group", the_fleet(a_group_service()))
    seen = watch(world, 60, lambda: len(world.ready_pods()))
    world.settle()
    assert 1 <= min(seen)
    assert () == tuple(world.objects("apps", "Deployment", "llm"))
    assert 1 == len(serving(world))

    world.start_controller()
    world.commit("Single", the_fleet(a_service()))
    world.settle()
    assert [] == sets(world)
    assert 1 == len(world.ready_pods())


def test_a_controller_that_starts_again_changes_nothing(new_world):
    world = a_world(new_world)
    world.commit("First", the_fleet(a_group_service()))
    world.settle()
    before = [(each["metadata"]["uid"], each["metadata"]["generation"]) for each in sets(world)]

    world.start_controller()
    world.settle()

    assert before == [(e["metadata"]["uid"], e["metadata"]["generation"]) for e in sets(world)]


def test_in_mode_scheduler_one_set_has_all_groups_and_its_controller_keeps_domains_apart(new_world):
    world = a_world(new_world)
    mode = {"mode": "Scheduler", "pools": [{"name": "gpu"}]}
    world.commit("First", the_fleet(a_group_service(replicas=2, placement=mode)))
    world.settle()

    (made,) = sets(world)
    key = "leaderworkerset.sigs.k8s.io/exclusive-topology"
    assert (2, ZONE) == (made["spec"]["replicas"], made["metadata"]["annotations"][key])
    assert 4 == len(engines(world))
    assert 2 == unit_status(world, UNIT)["replicas"]["ready"]

    world.commit("Fewer", the_fleet(a_group_service(replicas=1, placement=mode)))
    world.settle()
    assert 2 == len(engines(world))

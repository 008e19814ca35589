"""parallelism.nodes above 1: a LeaderWorkerSet of the same pods, with ranks of one engine."""

from __future__ import annotations

import pytest

from stoker.model.fleet import Pin, PlacementMode, Pool
from stoker.objects import names
from stoker.render import Renderer, render, shape
from unit.render.builders import (
    FLEET_ID,
    POOL,
    FakeRepo,
    decision,
    desired,
    placement,
    plan,
    service,
    unit,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PINNED = Pool("pinned", match_labels=(("pool", "b200"),), pin=Pin.REQUIRED)
GROUP = {
    "nodes": 3,
    "gpu_count": 4,
    "tensor_parallel": 4,
    "pipeline_parallel": 3,
    "pod_template": {"spec": {"priorityClassName": "high"}},
}
SERVICES = {
    "preferred": service(**GROUP),
    "pinned": service(**{**GROUP, "pools": ("pinned",)}),
    "scheduler": service(**GROUP, placement_mode=PlacementMode.SCHEDULER),
    "single": service(gpu_count=4, tensor_parallel=4),
    "larger": service(**{**GROUP, "nodes": 6, "pipeline_parallel": 6}),
}


@pytest.fixture(scope="module")
def rendered():
    """By name: the manifests by kind, and the shape."""
    found = {}
    repo = FakeRepo()
    with Renderer(1) as renderer:
        for name, spec in SERVICES.items():
            item = unit(spec, "web")
            fleet = desired(item, pools=(POOL, PINNED))
            shapes = shape(fleet, repo, renderer, FLEET_ID)
            nodes = () if name == "scheduler" else tuple(f"n{n}" for n in range(1, spec.nodes + 1))
            group = {"size": spec.nodes, "nodes": nodes, "domain": "z1" if nodes else ""}
            place = placement(
                shapes,
                item.ref,
                nodes[0] if nodes else "",
                pool=spec.pools[0],
                name="web-set",
                **(group if spec.nodes > 1 else {}),
            )
            answer = plan(decision(item.ref, place, mode=spec.placement_mode))
            (made,) = render(fleet, shapes, answer, repo, renderer, FLEET_ID)
            assert () == made.findings
            found[name] = ({m.ref.kind: m.body for m in made.manifests}, shapes.shapes[0])
    return found


def templates(rendered, name="preferred"):
    inside = rendered[name][0]["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    return inside["leaderTemplate"], inside["workerTemplate"]


def engine(template):
    (found,) = template["spec"]["containers"]
    return found


def test_one_set_holds_the_group_and_starts_it_anew_as_one(rendered):
    body = rendered["preferred"][0]["LeaderWorkerSet"]

    assert "Deployment" not in rendered["preferred"][0]
    assert "LeaderWorkerSet" not in rendered["single"][0]
    assert "leaderworkerset.x-k8s.io/v1" == body["apiVersion"]
    assert "selector" not in body["spec"]
    inside = body["spec"]["leaderWorkerTemplate"]
    assert (1, 3) == (body["spec"]["replicas"], inside["size"])
    assert "RecreateGroupOnPodRestart" == inside["restartPolicy"]
    marks = body["metadata"]["annotations"]
    assert ("n1", "n1,n2,n3", "z1") == tuple(
        marks[key] for key in (names.NODE, names.NODES, names.DOMAIN)
    )


def test_the_leader_serves_and_workers_are_headless_ranks_of_its_engine(rendered):
    """vLLM, Parallelism and Scaling: the same command line, each with its own rank."""
    leader, worker = map(engine, templates(rendered))

    ranks = [
        "--distributed-executor-backend=mp",
        "--nnodes=3",
        "--node-rank=$(LWS_WORKER_INDEX)",
        "--master-addr=$(LWS_LEADER_ADDRESS)",
    ]
    assert ranks == leader["args"][-4:]
    assert [*leader["args"], "--headless"] == worker["args"]
    assert {"--tensor-parallel-size=4", "--pipeline-parallel-size=3"} <= set(leader["args"])
    assert {"ports", "startupProbe", "readinessProbe"} <= set(leader)
    assert {"ports", "startupProbe", "readinessProbe"}.isdisjoint(worker)
    assert leader["resources"] == worker["resources"]


def test_a_worker_waits_for_the_leader_before_it_ends(rendered):
    """Both are told to stop at once; a rank that goes first takes answers under way along."""
    leader, worker = map(engine, templates(rendered))
    hook = worker["lifecycle"]["preStop"]["exec"]["command"]

    assert "LWS_LEADER_ADDRESS" in hook[2]
    assert leader["lifecycle"]["preStop"]["exec"]["command"][-2:] == hook[-2:]


def test_only_leaders_bear_the_label_for_traffic(rendered):
    leader, worker = (each["metadata"]["labels"] for each in templates(rendered))

    assert "true" == leader.pop(names.TRAFFIC_LABEL)
    assert leader == worker
    assert names.PLACEMENT_LABEL in worker


def test_the_pod_template_of_git_reaches_both(rendered):
    assert ["high", "high"] == [t["spec"]["priorityClassName"] for t in templates(rendered)]


def test_all_pods_stay_in_the_domain_one_a_node_near_the_decided_ones(rendered):
    leader, worker = (each["spec"]["affinity"] for each in templates(rendered))

    for affinity in (leader, worker):
        (term,) = affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}
        assert zone == term["matchExpressions"][-1]
        (apart,) = affinity["podAntiAffinity"][REQUIRED]
        assert "kubernetes.io/hostname" == apart["topologyKey"]
    assert [["n1"], ["n2", "n3"]] == [
        [
            each["preference"]["matchFields"][0]["values"][0]
            for each in affinity["nodeAffinity"][PREFERRED]
        ]
        for affinity in (leader, worker)
    ]


def test_in_a_static_pool_the_nodes_are_required_each_in_a_term_of_its_own(rendered):
    """The API takes one name in each matchFields, and terms are alternatives."""
    leader, worker = (
        each["spec"]["affinity"]["nodeAffinity"] for each in templates(rendered, "pinned")
    )

    assert [["n1"], ["n2", "n3"]] == [
        [term["matchFields"][0]["values"][0] for term in each[REQUIRED]["nodeSelectorTerms"]]
        for each in (leader, worker)
    ]
    assert PREFERRED not in leader


def test_in_mode_scheduler_its_controller_gives_each_group_a_domain(rendered):
    body = rendered["scheduler"][0]["LeaderWorkerSet"]
    key = "leaderworkerset.sigs.k8s.io/exclusive-topology"

    assert "topology.kubernetes.io/zone" == body["metadata"]["annotations"][key]
    assert names.NODES not in body["metadata"]["annotations"]
    for template in templates(rendered, "scheduler"):
        assert PREFERRED not in template["spec"]["affinity"]["nodeAffinity"]


def test_nobody_may_evict_a_pod_of_a_group(rendered):
    budget = rendered["preferred"][0]["PodDisruptionBudget"]["spec"]

    assert 0 == budget["maxUnavailable"]
    assert {names.SERVICE_LABEL: "web"} == budget["selector"]["matchLabels"]


def test_the_size_is_part_of_the_rev_and_gpus_are_of_each_pod(rendered):
    revs = {name: rendered[name][1].rev for name in ("preferred", "larger", "single")}

    assert 3 == len(set(revs.values()))
    assert 4 == rendered["preferred"][1].shape.requests.device("nvidia.com/gpu")

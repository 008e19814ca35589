"""A Deployment that already serves becomes a ModelService's own, and nothing restarts."""

from __future__ import annotations

import pytest

from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stories.files import NEW, OLD, a_patient_fleet, a_service, the_fleet
from stories.looks import a_pass, fleet_status, is_clean, pod_uids, rest, tell, unit_status

NODES = tuple(WorldNode(f"gpu-{number}") for number in (1, 2, 3))
LLAMA = ObjectRef("apps", "Deployment", "llm", "vllm-llama")
UNIT = "ModelService/llm/llama"


def a_vllm(replicas: int = 2) -> dict:
    """As a chart makes one: its own labels, container name and arguments.

    Another fleet had it once, and gave it up.
    """
    labels = {"app": "vllm", "release": "llama"}
    container = {
        "name": "vllm",
        "image": "registry.example/vllm-openai:0.27",
        "args": ["--model", "example/tiny-1b"],
        "env": [{"name": "LEVEL", "value": "info"}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": LLAMA.name,
            "namespace": LLAMA.namespace,
            "annotations": {names.REV: "left-behind", names.TEMPLATE: "adopted"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "vllm"}},
            "template": pod,
        },
    }


def llama(**spec) -> dict[str, str]:
    placement = {"mode": "Scheduler", "pools": [{"name": "gpu"}]}
    plain = {"adopt": {"name": LLAMA.name}, "placement": placement, "replicas": 2}
    return the_fleet(a_service("llama", **{**plain, **spec}), fleet=a_patient_fleet())


@pytest.fixture
def world(new_world):
    """The Deployment serves before any fleet is there."""
    made = new_world(*NODES)
    made.cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}},
        manager="kubectl-create",
    )
    made.cluster.create(a_vllm(), manager="helm")
    assert made.until(lambda: len(made.ready_pods()) == 2, seconds=60)
    return made


def adopt_namespace(files: dict[str, str]) -> dict[str, str]:
    """The namespace is there already: the fleet leaves it out."""
    kept = {path: text for path, text in files.items() if not path.startswith("bundles/base")}
    key = "clusters/local/fleet.yaml"
    return {**kept, key: kept[key].replace("  - /bundles/*/bundle.yaml\n", "")}


def template(world) -> dict:
    return world.cluster.get(LLAMA)["spec"]["template"]


def test_the_same_pods_serve_under_the_same_template(world):
    before, spec = pod_uids(world), template(world)

    world.commit("Adopt", adopt_namespace(llama()))
    rest(world)

    stands = world.cluster.get(LLAMA)
    assert pod_uids(world) == before
    assert stands["spec"]["template"] == spec
    assert stands["spec"]["selector"] == {"matchLabels": {"app": "vllm"}}
    assert stands["metadata"]["annotations"][names.OWNER].endswith("/vllm-llama")
    assert [d["metadata"]["name"] for d in world.objects("apps", "Deployment", "llm")] == [
        LLAMA.name
    ]
    replicas = unit_status(world, UNIT)["replicas"]
    assert (replicas["desired"], replicas["ready"]) == (2, 2)
    assert is_clean(world)


def test_what_git_renders_otherwise_is_named_as_held_back(world):
    world.commit("Adopt", adopt_namespace(llama()))
    world.one_pass()
    done = a_pass(world)

    assert done.changes is not None
    (change,) = (c for u in done.changes.units for c in u.changes if c.ref == LLAMA)
    assert "spec.template.spec.containers[name=engine]" in change.held_back
    assert str(change.action) == "unchanged"


def test_it_grows_and_shrinks_by_git(world):
    world.commit("Adopt", adopt_namespace(llama()))
    rest(world)
    before = pod_uids(world)

    world.commit("Up", adopt_namespace(llama(replicas=3)))
    rest(world)

    assert before < pod_uids(world)
    assert unit_status(world, UNIT)["replicas"]["ready"] == 3

    world.commit("Down", adopt_namespace(llama(replicas=1)))
    rest(world)

    assert len(world.ready_pods()) == 1


def test_a_new_revision_of_the_model_replaces_the_template_under_the_old_selector(world):
    """Its Service goes on selecting it: every label that pods had stays."""
    world.commit("Adopt", adopt_namespace(llama()))
    rest(world)
    before = pod_uids(world)
    model = {"uri": "hf://example/tiny-1b", "revision": NEW, "size": "1Gi"}

    world.commit("New weights", adopt_namespace(llama(model=model)))
    rest(world)

    stands = world.cluster.get(LLAMA)
    labels = stands["spec"]["template"]["metadata"]["labels"]
    assert stands["spec"]["selector"] == {"matchLabels": {"app": "vllm"}}
    assert (labels["app"], labels["release"]) == ("vllm", "llama")
    assert labels[names.MODEL_REVISION_LABEL] == NEW
    (container,) = stands["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "engine"
    assert not before & pod_uids(world)
    assert unit_status(world, UNIT)["replicas"]["ready"] == 2
    assert OLD not in str(stands["spec"])
    assert is_clean(world)


def test_an_autoscaler_keeps_the_count(world):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": LLAMA.name}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "llama", "namespace": "llm"},
        "spec": {"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": target},
    }
    world.cluster.create(scaler, manager="kubectl-create")
    files = llama(replicas=None, scaling={"mode": "External"})
    world.commit("Adopt", adopt_namespace(files))
    rest(world)

    assert world.cluster.get(LLAMA)["spec"]["replicas"] == 2
    assert unit_status(world, UNIT)["replicas"]["desired"] == 2
    assert is_clean(world)


def test_it_is_for_mode_scheduler_only(world):
    """In mode Nodes each node has a Deployment of its own."""
    world.commit("Nodes", adopt_namespace(llama(placement={"pools": [{"name": "gpu"}]})))
    tell(world)

    assert names.OWNER not in (world.cluster.get(LLAMA)["metadata"].get("annotations") or {})
    assert ["adopt-needs-scheduler"] == [error["code"] for error in fleet_status(world)["errors"]]

"""Changes that must not restart a pod, and layers of the Fleet file that reach the cluster."""

from __future__ import annotations

import yaml

from stoker.model.refs import ObjectRef
from stories.files import FLEET, a_fleet, a_service, the_fleet
from stories.looks import (
    conditions,
    deployments,
    is_clean,
    pod_uids,
    serving,
    standing,
    tell,
    unit_status,
)

TINY = "ModelService/llm/tiny"


def labelled(**labels: str) -> dict[str, str]:
    template = {"metadata": {"labels": labels}} if labels else {}
    return the_fleet(a_service(replicas=2, podTemplate=template))


def template_labels(world) -> list[dict[str, str]]:
    return [d["spec"]["template"]["metadata"]["labels"] for d in deployments(world)]


def test_a_label_alone_restarts_nothing_and_comes_with_the_next_rev(settled):
    """cases.md row 55's kin: a template's labels are held back, and said to be."""
    world = settled(labelled())
    before, standing_before = pod_uids(world), standing(world)

    world.commit("A label", labelled(team="search"))
    world.advance(5)

    assert before == pod_uids(world)
    assert standing_before == standing(world)
    assert all("team" not in labels for labels in template_labels(world))
    assert is_clean(world)
    world.work.state.looked = None  # a unit at rest is compared again in a whole pass
    world.one_pass()
    held = [c.held_back for u in world.work.last.changes.units for c in u.changes if c.held_back]
    assert 2 == len(held)
    assert "team" in str(held[0])

    with_env = yaml.safe_load(labelled(team="search")["models/tiny.yaml"])
    container = {"name": "engine", "env": [{"name": "NEXT", "value": "rev"}]}
    with_env["spec"]["podTemplate"]["spec"] = {"containers": [container]}
    world.commit("The next rev", {"models/tiny.yaml": yaml.safe_dump(with_env)})
    world.settle()

    assert ["search", "search"] == [labels["team"] for labels in template_labels(world)]
    assert before.isdisjoint(pod_uids(world))
    assert is_clean(world)


def test_a_new_replica_gets_the_template_of_the_others(settled):
    """A held-back label must not come in by the back door, on one of three replicas only."""
    world = settled(the_fleet(a_service(replicas=1)))
    before = pod_uids(world)

    world.commit("More", the_fleet(a_service(replicas=2)))
    world.settle()

    first, second = deployments(world)
    assert (
        first["spec"]["template"]["spec"]["containers"]
        == (second["spec"]["template"]["spec"]["containers"])
    )
    assert before < pod_uids(world)


def test_an_injected_field_restarts_nothing(settled, faults):
    """A webhook or a person adds to the pod template of a live Deployment: ours stays ours."""
    world = settled(the_fleet(a_service(replicas=1)))
    name = deployments(world)[0]["metadata"]["name"]
    patch = {"spec": {"template": {"metadata": {"annotations": {"injector/by": "mesh"}}}}}

    ref = ObjectRef("apps", "Deployment", "llm", name)
    world.cluster.patch(ref, "merge", patch, manager="injector")
    world.settle()
    before = pod_uids(world)
    faults.asked.clear()
    world.advance(20)

    assert before == pod_uids(world)
    assert [] == faults.writes
    assert (
        "mesh"
        == deployments(world)[0]["spec"]["template"]["metadata"]["annotations"]["injector/by"]
    )
    assert is_clean(world)


def test_defaults_and_unit_patches_reach_the_cluster(settled):
    """Lowest to highest: the Fleet's defaults, the unit's file, the Fleet's patch for it."""
    defaults = {
        "namespace": "llm",
        "modelService": {
            "engine": {"args": ["--max-model-len", "4096"]},
            "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
        },
    }
    patches = [
        {"target": {"kind": "ModelService", "name": "tiny"}, "patch": {"spec": {"replicas": 2}}}
    ]
    fleet = a_fleet(defaults=defaults, unitPatches=patches)
    own = {"requests": {"cpu": "3", "memory": "4Gi"}}
    world = settled(the_fleet(a_service(replicas=1, resources=own), fleet=fleet))

    assert 2 == len(serving(world))
    engine = deployments(world)[0]["spec"]["template"]["spec"]["containers"][0]
    assert "4096" in engine["args"]
    assert {"cpu": "3", "memory": "4Gi"} == {
        k: v for k, v in engine["resources"]["requests"].items() if k in {"cpu", "memory"}
    }
    assert is_clean(world)

    before = pod_uids(world)
    world.commit("No patch", {FLEET: a_fleet(defaults=defaults)})
    world.settle()

    assert 1 == len(serving(world))
    assert pod_uids(world) < before
    assert is_clean(world)


def test_a_template_of_the_repository_wins_over_the_shipped_one(settled):
    """Copy, name it, edit: nothing else of the service has to change."""
    template = """\
apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ unit.name }}-mine"}
"""
    mine = {"templates/mine.yaml.j2": template}
    fleet = a_fleet(templates=["/templates"])
    world = settled({**the_fleet(a_service(replicas=1), fleet=fleet), **mine})
    assert is_clean(world)

    bad = a_service(replicas=1, render={"template": "mine"})
    before = pod_uids(world)
    world.commit("Only an account", {"models/tiny.yaml": bad})
    tell(world)

    assert "True" == conditions(unit_status(world, TINY))["Stalled"][0]
    assert before == pod_uids(world)

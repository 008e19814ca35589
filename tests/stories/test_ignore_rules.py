"""Two tools on one field: an ignore rule ends the fight, in diff and apply alike."""

from __future__ import annotations

from stoker.model.refs import ObjectRef
from stories.files import a_bundle, a_config_map, a_fleet
from stories.looks import is_clean
from stories.test_commands import edit, stoker, stoker_on

__all__ = ["stoker", "stoker_on"]

FLEET = "clusters/local/fleet.yaml"
SIDE = ObjectRef("", "ConfigMap", "llm", "side")
RULE = {"target": {"kind": "ConfigMap", "labelSelector": "shared"}, "paths": ["/data/theirs"]}
OURS = {"theirs": "git", "ours": "1"}


def shared(**data: str) -> dict[str, str]:
    text = a_config_map("side", {**OURS, **data}, labels={"shared": "yes"})
    return {
        "bundles/side/bundle.yaml": a_bundle("side", ("side.yaml",)),
        "bundles/side/side.yaml": text,
    }


def test_an_ignored_field_is_left_to_others_and_the_rest_is_repaired(world, stoker):
    world.commit("Rule", {FLEET: a_fleet(ignore=[RULE]), **shared()})
    world.settle()
    patch = {"data": {"theirs": "live"}}
    version = world.cluster.patch(SIDE, "merge", patch, manager="kubectl-edit")["metadata"]
    world.settle()

    assert is_clean(world)
    assert version["resourceVersion"] == world.cluster.get(SIDE)["metadata"]["resourceVersion"]
    code, out, _ = stoker("diff")
    assert 0 == code
    assert "ignored by the fleet's rules" in out

    world.commit("More", shared(ours="2", theirs="git again"))
    world.settle()
    assert {"theirs": "live", "ours": "2"} == world.cluster.get(SIDE)["data"]


def test_without_the_rule_the_same_edit_is_drift(world, stoker):
    world.commit("No rule", shared())
    world.settle()
    world.cluster.patch(SIDE, "merge", {"data": {"theirs": "live"}}, manager="kubectl-edit")
    world.settle()

    assert OURS == world.cluster.get(SIDE)["data"]
    assert 0 == stoker("diff")[0]


def test_a_rule_that_covers_a_decision_is_refused(world, stoker):
    """Decided and then ignored would be computed, shown and never done."""
    rules = [{"target": {"kind": "Deployment"}, "paths": ["/spec/replicas"]}]
    edit(world, {FLEET: a_fleet(ignore=rules)})

    code, out, err = stoker("diff")
    assert 2 == code, (out, err)
    assert "ignore-covers-decision" in out + err
    assert "spec.ignore[0].paths[0]" in out + err


def test_a_rule_for_what_is_not_decided_is_none_of_that(world, stoker):
    rules = [{"target": {"kind": "Deployment"}, "paths": ["/metadata/annotations/a.b~1c"]}]
    edit(world, {FLEET: a_fleet(ignore=rules)})

    assert 0 == stoker("diff")[0]


def test_a_malformed_rule_has_its_line(world, stoker):
    rules = [{"target": {"labelSelector": "a ~ b"}, "paths": ["spec.replicas"]}]
    edit(world, {FLEET: a_fleet(ignore=rules)})

    code, _, err = stoker("diff")
    assert 2 == code
    assert "fleet.yaml:" in err
    assert "JSON pointer" in err
    assert "labelSelector" in err

"""Whose an object is: units that move or change their name, and fleets side by side."""

from __future__ import annotations

from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stories.files import (
    FLEET,
    a_bundle,
    a_config_map,
    a_fleet,
    a_service,
    the_fleet,
    the_village,
)
from stories.looks import (
    as_it_stands,
    conditions,
    data,
    deployments,
    errors,
    is_clean,
    pod_uids,
    serving,
    standing,
    tell,
    unit_status,
    watch,
)

SIDE = "Bundle/llm/side"


# ---------------------------------------------------------------- moved and renamed
def test_a_unit_that_moves_to_another_file_stays_as_it_is(world):
    """The file is where it stands, not what it is: no pod restarts, nothing is pruned."""
    before, pods = standing(world), pod_uids(world)

    moved = {"models/tiny.yaml": None, "models/eu/tiny.yaml": a_service(replicas=2)}
    include = ["/models/*.yaml", "/models/eu/*.yaml", "/bundles/*/bundle.yaml"]
    world.commit("Moved", {**moved, FLEET: a_fleet(include=include)})
    world.settle()

    assert before == standing(world)
    assert pods == pod_uids(world)
    assert "models/eu/tiny.yaml" == unit_status(world, "ModelService/llm/tiny")["source"]["path"]
    sources = {d["metadata"]["annotations"][names.SOURCE] for d in deployments(world)}
    assert {"models/eu/tiny.yaml"} == sources
    assert is_clean(world)


def test_a_renamed_service_is_another_one(settled):
    """Names are in selectors: the new one comes up, the old one goes, as two units would."""
    nodes = tuple(WorldNode(f"gpu-{number}") for number in (1, 2))
    world = settled(the_fleet(a_service("tiny")), *nodes)

    world.commit("Renamed", {"models/tiny.yaml": None, "models/small.yaml": a_service("small")})
    world.advance(12)
    world.settle()

    assert [] == deployments(world)
    assert 1 == len(serving(world, "small"))
    assert {"small"} == {name.split("/")[1].split("-")[0] for name in standing(world)}
    assert {} == unit_status(world, "ModelService/llm/tiny")
    assert is_clean(world)


def test_a_renamed_bundle_hands_its_objects_over(world):
    """Same objects, another unit: the mark changes, the object does not."""
    before = as_it_stands(world)

    world.commit("Renamed", {"bundles/side/bundle.yaml": a_bundle("aside", ("side.yaml",))})
    world.advance(4)

    mark = world.objects("", "ConfigMap", "llm")[-1]["metadata"]["annotations"][names.OWNER]
    assert "Bundle.llm.aside" in mark
    assert before == as_it_stands(world)
    assert {} == unit_status(world, SIDE)
    assert is_clean(world)

    world.commit("Gone", {"bundles/side/bundle.yaml": None, "bundles/side/side.yaml": None})
    world.advance(4)

    assert {} == data(world, "side")
    assert is_clean(world)


def test_an_object_that_moves_between_bundles_is_never_deleted(world):
    """However the two units are ordered: the new owner takes it before the old one prunes."""
    for new, old in (("away", "side"), ("side", "away"), ("zoo", "side")):
        uid = standing(world)["ConfigMap/side"]
        world.commit(
            "Moved",
            {
                f"bundles/{old}/bundle.yaml": None,
                f"bundles/{old}/side.yaml": None,
                f"bundles/{new}/bundle.yaml": a_bundle(new, ("side.yaml",)),
                f"bundles/{new}/side.yaml": a_config_map("side", {"in": new}),
            },
        )
        seen = watch(world, 4, lambda: standing(world).get("ConfigMap/side"))

        assert {uid} == set(seen)
        assert {"in": new} == data(world, "side")
        assert is_clean(world)


def test_two_units_that_render_one_object_are_both_told_and_it_stays_as_it_is(world):
    """Either choice would let one file silently win over the other."""
    world.commit(
        "Twice",
        {
            "bundles/twin/bundle.yaml": a_bundle("twin", ("side.yaml",)),
            "bundles/twin/side.yaml": a_config_map("side", {"key": "twin"}),
        },
    )
    tell(world)

    for name in ("side", "twin"):
        status = unit_status(world, f"Bundle/llm/{name}")
        assert ("True", "ObjectDefinedTwice") == conditions(status)["Stalled"]
        assert [("object-defined-twice", f"bundles/{name}/side.yaml", 1)] == errors(status)
    assert {"key": "value"} == data(world, "side")

    world.commit("Once", {"bundles/twin/bundle.yaml": None, "bundles/twin/side.yaml": None})
    tell(world)

    assert {"key": "value"} == data(world, "side")
    assert is_clean(world)


def test_a_service_that_is_made_again_by_hand_is_ours_again(world):
    """Somebody deletes one of our objects: it is drift, and comes back."""
    world.cluster.delete(ObjectRef("", "Service", "llm", "tiny"))

    tell(world)

    assert "Service/tiny" in standing(world)
    assert is_clean(world)


# -------------------------------------------------------------- two fleets, one cluster
def a_fleet_of(name: str, service: str) -> dict[str, str]:
    """A repository of its own, in a namespace of its own."""
    files = the_fleet(a_service(service), fleet=a_fleet(name, defaults={"namespace": name}))
    files["bundles/base/namespace.yaml"] = (
        f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"
    )
    return files


def both(first, second, seconds: int) -> None:
    for _ in range(seconds):
        first.advance(1)
        second.one_pass()


def test_two_fleets_of_one_cluster_do_not_touch_each_other(new_world):
    """cases.md row 155: every name that could clash has the fleet in it; deleting one leaves
    the other whole.
    """
    red = new_world(renderer=None)
    blue = new_world(beside=red, definitions=False, renderer=None)
    red.commit("First", a_fleet_of("local", "tiny"))
    blue.commit("First", a_fleet_of("local2", "tiny"))
    both(red, blue, 12)
    before = as_it_stands(red, "local")
    others = as_it_stands(blue, "local2")

    assert is_clean(red)
    assert is_clean(blue, "local2")
    assert before
    assert others
    nodes = [pod["spec"]["nodeName"] for pod in red.objects("", "Pod")]
    assert 2 == len(set(nodes))

    gone = {path: None for path in a_fleet_of("local2", "tiny") if path.startswith("models/")}
    include = ["/bundles/*/bundle.yaml"]
    less = a_fleet("local2", defaults={"namespace": "local2"}, include=include)
    blue.commit("No tiny", {**gone, FLEET: less})
    both(red, blue, 25)

    assert before == as_it_stands(red, "local")
    assert {} == as_it_stands(blue, "local2")
    assert is_clean(red)
    assert is_clean(blue, "local2")


def test_two_fleets_that_claim_one_object_leave_it_to_the_first(new_world):
    """The second meets it as somebody else's, and says whose."""
    red = new_world(renderer=None)
    blue = new_world(beside=red, definitions=False, renderer=None)
    red.commit("First", the_village())
    both_names = the_fleet(fleet=a_fleet("local2"), extra={"side.yaml": a_config_map("side")})
    del both_names["bundles/base/bundle.yaml"], both_names["bundles/base/namespace.yaml"]
    red.settle()

    blue.commit("Mine", both_names)
    both(red, blue, 4)

    extra = unit_status(blue, "Bundle/llm/extra", "local2")
    assert ("True", "AdoptionRequired") == conditions(extra)["Stalled"]
    assert {"key": "value"} == data(red, "side")
    assert is_clean(red)

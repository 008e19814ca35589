"""Files, units and objects that move or are renamed: the objects stay the ones they were."""

from __future__ import annotations

import pytest
import yaml

from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stories.files import a_bundle, a_config_map, a_fleet, a_service, the_fleet
from stories.looks import as_it_stands, is_clean, pod_uids, standing, tell, unit_status

NAMES = ("alpha", "beta", "gamma", "delta")


def bundles(*found: str, **fleet) -> dict[str, str]:
    """A fleet of Bundles, each with a ConfigMap of its name."""
    return the_fleet(
        fleet=a_fleet(**fleet), **{name: {"cm.yaml": a_config_map(name)} for name in found}
    )


def moved(files: dict[str, str], old: str, new: str) -> dict[str, str | None]:
    """The files of a folder under another name."""
    return {
        **{path: None for path in files if path.startswith(f"{old}/")},
        **{
            path.replace(f"{old}/", f"{new}/", 1): text
            for path, text in files.items()
            if path.startswith(f"{old}/")
        },
    }


def owner(world, name: str) -> str:
    live = world.cluster.get(ObjectRef("", "ConfigMap", "llm", name))
    return live["metadata"]["annotations"][names.OWNER].split("/")[1]


def deletes(world, since: int) -> list[str]:
    return [e.path for e in world.memory.audit[since:] if e.method == "DELETE"]


def test_a_file_that_moves_changes_nothing(settled):
    files = bundles(*NAMES)
    world = settled(files, WorldNode("gpu-1"))
    before, mark = as_it_stands(world), len(world.memory.audit)

    world.commit("Move", moved(files, "bundles/alpha", "bundles/elsewhere"))
    tell(world)

    assert before == as_it_stands(world)
    assert [] == deletes(world, mark)
    assert is_clean(world)


@pytest.mark.parametrize("mode", ["Auto", "Confirm", "Never"])
def test_a_unit_that_is_renamed_hands_its_objects_over(settled, mode):
    """Same UID, another mark; no prune, so no mode of prune has a say."""
    world = settled(bundles(*NAMES, prune={"mode": mode}), WorldNode("gpu-1"))
    before, mark = standing(world), len(world.memory.audit)

    renamed = a_bundle("omega", ("cm.yaml",))
    world.commit("Rename", {"bundles/alpha/bundle.yaml": renamed})
    tell(world)

    assert before == standing(world)
    assert "Bundle.llm.omega" == owner(world, "alpha")
    assert [] == [path for path in deletes(world, mark) if "configmaps/alpha" in path]
    assert is_clean(world)
    assert {} == unit_status(world, "Bundle/llm/alpha")


def test_all_units_renamed_at_once_pass_under_any_cap(settled):
    """Replaced and moved objects are not counted by maxUnits (design 6)."""
    world = settled(bundles(*NAMES, prune={"maxUnits": 1}), WorldNode("gpu-1"))
    before = standing(world)

    world.commit(
        "Rename all",
        {f"bundles/{name}/bundle.yaml": a_bundle(f"new-{name}", ("cm.yaml",)) for name in NAMES},
    )
    tell(world)

    assert before == standing(world)
    assert [f"Bundle.llm.new-{name}" for name in NAMES] == [owner(world, n) for n in NAMES]
    assert is_clean(world)


def test_a_unit_that_changes_its_namespace_keeps_what_says_its_own(settled):
    """A Bundle's namespace is a default for its objects; those that name theirs stay."""
    files = the_fleet(
        side={
            "side.yaml": a_config_map("side", namespace="llm"),
            "other.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n",
        }
    )
    world = settled(files, WorldNode("gpu-1"))
    before = standing(world)

    body = yaml.safe_load(files["bundles/side/bundle.yaml"])
    body["metadata"]["namespace"] = "other"
    world.commit("Elsewhere", {"bundles/side/bundle.yaml": yaml.safe_dump(body)})
    tell(world)

    assert before == standing(world)
    assert "Bundle.other.side" == owner(world, "side")
    assert is_clean(world)


def test_an_object_moves_between_units_and_back(settled):
    files = the_fleet(
        one={"a.yaml": a_config_map("a"), "m.yaml": a_config_map("moves")},
        two={"b.yaml": a_config_map("b")},
    )
    world = settled(files, WorldNode("gpu-1"))
    before = standing(world)
    there = {
        "bundles/one/bundle.yaml": a_bundle("one", ("a.yaml",)),
        "bundles/one/m.yaml": None,
        "bundles/two/bundle.yaml": a_bundle("two", ("b.yaml", "m.yaml")),
        "bundles/two/m.yaml": a_config_map("moves"),
    }
    back = {
        "bundles/one/bundle.yaml": files["bundles/one/bundle.yaml"],
        "bundles/one/m.yaml": files["bundles/one/m.yaml"],
        "bundles/two/bundle.yaml": files["bundles/two/bundle.yaml"],
        "bundles/two/m.yaml": None,
    }

    for step, holder in ((there, "Bundle.llm.two"), (back, "Bundle.llm.one")):
        world.commit("Move", step)
        tell(world)
        assert before == standing(world)
        assert holder == owner(world, "moves")
        assert is_clean(world)


def test_a_moved_object_stays_where_its_old_unit_cannot_be_read(settled):
    """Whoever might still want it is asked first; then it goes over with its UID."""
    files = bundles("alpha", "beta")
    world = settled(files, WorldNode("gpu-1"))
    before = standing(world)

    broken = {"bundles/alpha/bundle.yaml": "kind: Bundle\nnonsense: [\n"}
    taken = {
        "bundles/beta/bundle.yaml": a_bundle("beta", ("cm.yaml", "alpha.yaml")),
        "bundles/beta/alpha.yaml": a_config_map("alpha"),
    }
    world.commit("Half", {**broken, **taken})
    tell(world)

    assert before == standing(world)
    assert "Bundle.llm.alpha" == owner(world, "alpha")

    world.commit("Whole", {"bundles/alpha/bundle.yaml": None, "bundles/alpha/cm.yaml": None})
    tell(world)

    assert before == standing(world)
    assert "Bundle.llm.beta" == owner(world, "alpha")
    assert is_clean(world)


def test_a_services_file_that_moves_restarts_nothing(settled):
    text = a_service(replicas=1)
    world = settled(the_fleet(text), WorldNode("gpu-1"))
    pods = pod_uids(world)

    world.commit("Move", {"models/tiny.yaml": None, "models/renamed.yaml": text})
    tell(world)

    assert pods == pod_uids(world)
    assert is_clean(world)

"""Whoever may push attacks the controller: one unit is refused, everything else goes on."""

from __future__ import annotations

import random
import re
import subprocess

import pytest
import yaml

from stoker.cli.world import WorldNode
from stories.faults import forbidding
from stories.files import (
    FLEET,
    a_bundle,
    a_config_map,
    a_fleet,
    the_fleet,
    the_village,
)
from stories.looks import (
    as_it_stands,
    conditions,
    data,
    errors,
    fleet_status,
    is_clean,
    message,
    tell,
    unit_status,
)
from stories.test_commands import edit, stoker, stoker_on

__all__ = ["stoker", "stoker_on"]

SIDE = "Bundle/llm/side"
NODE = WorldNode("gpu-1")
CANARY = "canary-5e1f0c2d"


def link(world, path: str, target: str) -> None:
    place = world.work_tree / path
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def move(world, path: str, to: str) -> None:
    """Commit a file under another path that need not fit into a work tree, and push."""

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=You", "-c", "user.email=you@example.invalid")
        command = ["git", "-C", str(world.work_tree), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    oid = git("rev-parse", f"HEAD:{path}")
    git("update-index", "--force-remove", path)
    git("update-index", "--add", "--cacheinfo", f"100644,{oid},{to}")
    git("commit", "-q", "-m", "Move")
    git("push", "-q", "origin", "HEAD:refs/heads/main")


# ----------------------------------------------------------------------------- links
@pytest.mark.parametrize("target", ["/etc/passwd", "../../models/tiny.yaml"])
def test_a_manifest_that_is_a_link_is_not_followed(world, target):
    """b.A rows 4 (CVE-2022-24904) and 5 (CVE-2022-31036), b.F row 48: refused where it is named."""
    before = as_it_stands(world)
    link(world, "bundles/side/side.yaml", target)

    world.commit_all("A link")
    tell(world)

    assert ("True", "LinkNotFollowed") == conditions(unit_status(world, SIDE))["Stalled"]
    assert [("link-not-followed", "bundles/side/side.yaml", 0)] == errors(unit_status(world, SIDE))
    assert "root:" not in str(fleet_status(world)) + str(unit_status(world, SIDE))
    assert before == as_it_stands(world)

    (world.work_tree / "bundles/side/side.yaml").unlink()
    world.commit("Mended", the_village())
    tell(world)

    assert is_clean(world)


@pytest.mark.parametrize("target", ["/etc/passwd", "other.yaml"])
def test_a_unit_file_that_is_a_link_holds_every_delete(world, target):
    """b.A row 4: left out in silence, the service that its file held would be deleted."""
    before = as_it_stands(world)
    link(world, "models/tiny.yaml", target)

    world.commit_all("A link")
    tell(world)

    status = fleet_status(world)
    assert ("True", "LinkNotFollowed") == conditions(status)["Stalled"]
    assert [("link-not-followed", "models/tiny.yaml", 0)] == errors(status)
    assert before == as_it_stands(world)

    (world.work_tree / "models/tiny.yaml").unlink()
    world.commit("Mended", the_village())
    tell(world)

    assert is_clean(world)
    assert before == as_it_stands(world)


def test_a_unit_that_moves_to_a_path_nobody_can_check_out_is_not_deleted(settled):
    """Dropped in silence, the service would look removed, and its pods would go."""
    files = {path: text for path, text in the_village().items() if path != FLEET}
    deep = a_fleet(include=["/models/**/*.yaml", "/bundles/*/bundle.yaml"])
    world = settled({**files, FLEET: deep})
    before = as_it_stands(world)
    path = f"models/{'far/' * 1100}tiny.yaml"

    move(world, "models/tiny.yaml", path)
    tell(world)

    status = fleet_status(world)
    assert ("True", "PathTooLong") == conditions(status)["Stalled"]
    ((code, shown, line),) = errors(status)
    assert ("path-too-long", 0) == (code, line)
    assert shown.startswith("models/far/")
    assert len(shown) < len(path)
    assert before == as_it_stands(world)

    move(world, path, "models/tiny.yaml")
    tell(world)

    assert is_clean(world)
    assert before == as_it_stands(world)


def test_a_fleet_file_that_is_a_link_is_missing(world):
    """b.A row 4: whatever it points at is not the fleet."""
    before = as_it_stands(world)
    (world.work_tree / "other.yaml").write_text(a_fleet(), encoding="utf-8")
    link(world, FLEET, "../../other.yaml")

    world.commit_all("A link")
    tell(world)

    assert ("True", "FleetFileMissing") == conditions(fleet_status(world))["Stalled"]
    assert before == as_it_stands(world)


# ----------------------------------------------------------------------------- sizes
def a_jinja(text: str, **values) -> dict[str, str]:
    bundle = a_bundle("side", jinja={"paths": ["a.j2"], "values": values})
    return {**the_fleet(), "bundles/side/bundle.yaml": bundle, "bundles/side/a.j2": text}


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
BOMBS = {
    "a file over 5 MiB": ("# " + "x" * (5 * 2**20), "file-too-large"),
    "nine levels of nine aliases": (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: side}}\n{LAUGHS}",
        "invalid-yaml",
    ),
    "an object over 1 MiB": (a_config_map("side", {"key": "x" * 2**20}), "object-too-large"),
}


@pytest.mark.parametrize(("text", "code"), BOMBS.values(), ids=BOMBS.keys())
def test_what_is_too_large_stops_its_unit_alone(world, text, code):
    """b.A row 7 (CVE-2022-31016): sizes are asked before anything is read or expanded."""
    before = as_it_stands(world)

    world.commit("A bomb", {"bundles/side/side.yaml": text})
    tell(world)

    reason = "".join(part.capitalize() for part in code.split("-"))
    assert ("True", reason) == conditions(unit_status(world, SIDE))["Stalled"]
    assert before == as_it_stands(world)

    world.commit("Mended", the_village())
    tell(world)

    assert is_clean(world)


# --------------------------------------------------------------------- what repeats
def test_values_in_any_order_are_the_same_values(settled, faults):
    """cases.md row 53: a hash over unordered maps made an upgrade in every pass."""
    template = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata:\n"
        "  all: {{ values | to_json | to_json }}\n"
        "{% for key in values | sort %}  {{ key }}: {{ values[key] | to_json | to_json }}\n"
        "{% endfor %}"
    )
    values = {f"key{n}": {"a": n, "b": [n, {"one": 1, "two": 2}]} for n in range(12)}
    world = settled(a_jinja(template, **values), NODE)
    made = data(world, "made")
    assert 13 == len(made), unit_status(world, SIDE)
    faults.asked.clear()
    order = random.Random(7)

    for turn in range(6):
        keys = list(values)
        order.shuffle(keys)
        shuffled = {k: dict(sorted(values[k].items(), reverse=turn % 2 == 0)) for k in keys}
        bundle = a_bundle("side", jinja={"paths": ["a.j2"], "values": shuffled})
        world.commit(f"Shuffle {turn}", {"bundles/side/bundle.yaml": bundle})
        world.advance(1)

    assert [] == [path for path in faults.writes if "configmaps/made" in path]
    assert made == data(world, "made")


def test_a_delete_that_is_refused_makes_the_fleet_not_ready(world, faults):
    """cases.md row 77: pruning failed in every pass, and Ready stayed True."""
    faults.refuse = forbidding("/configmaps/side", methods=("DELETE",))

    world.commit("No side", {"bundles/side/bundle.yaml": None, "bundles/side/side.yaml": None})
    tell(world)

    assert {"key": "value"} == data(world, "side")
    status = fleet_status(world)
    assert "False" == conditions(status)["Ready"][0]
    assert "forbidden" in str(status) + str(unit_status(world, SIDE))

    faults.refuse = lambda request: None
    world.advance(30)

    assert {} == data(world, "side")
    assert is_clean(world)


# --------------------------------------------------------------------- the command line
def test_a_name_that_the_server_would_make_up_is_refused_and_nothing_is_left(world, stoker):
    """cases.md row 143: a new object at every pass; the look itself must leave none either."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "once-"},
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x:1"}]}
            }
        },
    }
    files = {
        "bundles/side/bundle.yaml": a_bundle("side", ("job.yaml", "side.yaml")),
        "bundles/side/job.yaml": yaml.safe_dump(job),
    }
    edit(world, files)

    code, _, err = stoker("diff")

    assert 2 == code
    assert "bundles/side/job.yaml:1" in err
    assert "give metadata.name" in err
    assert () == world.objects("batch", "Job", "llm")

    world.commit_all("All the same")
    tell(world)

    assert () == world.objects("batch", "Job", "llm")
    assert {"key": "value"} == data(world, "side")


def test_files_that_are_not_committed_are_never_applied(world, stoker):
    """b.A row 37 (CVE-2023-50726): only what Git approved reaches the cluster."""
    edit(world, {"bundles/side/side.yaml": a_config_map("side", {"key": "local"})})
    version = world.memory.resource_version

    code, _, err = stoker("apply", "--yes")

    assert 0 == code, err
    assert {"key": "value"} == data(world, "side")
    assert version == world.memory.resource_version


@pytest.mark.parametrize("command", ["diff", "plan"])
def test_a_comment_holds_no_markup_of_others(world, stoker, command):
    """b.A rows 31 (CVE-2025-47933) and 32: values stand in a fence that they cannot close."""
    evil = "`````` </details> <script>alert(1)</script> [click](javascript:alert(1)) @everyone"
    edit(world, {"bundles/side/side.yaml": a_config_map("side", {"key": evil})})

    _, out, _ = stoker(command, "-o", "markdown")

    outside = re.sub(r"(?ms)^(`{3,})text$.*?^\1$", "", out)
    assert "alert" in out
    assert "alert" not in outside
    assert "@everyone" not in outside


def test_a_name_in_use_is_told_without_what_it_holds(world):
    """b.A row 35 (CVE-2024-36106): a conflict names the object that Git names, nothing of it."""
    theirs = yaml.safe_load(a_config_map("taken", {"secret": CANARY}, namespace="llm"))
    world.cluster.apply(theirs, manager="helm")
    files = {
        "bundles/side/bundle.yaml": a_bundle("side", ("side.yaml", "taken.yaml")),
        "bundles/side/taken.yaml": a_config_map("taken", {"secret": "guess"}),
    }

    world.commit("Look", files)
    tell(world)

    status = unit_status(world, SIDE)
    assert "taken" in message(status, "Stalled")
    assert CANARY not in str(status) + str(fleet_status(world))
    assert {"secret": CANARY} == data(world, "taken")


def test_a_connection_that_is_not_verified_stands_in_status(world):
    """b.A row 38 (CVE-2022-31105): told for as long as it lasts, and stops nothing."""
    world.work.parts.cluster.warnings = ("TLS is not verified (insecure-skip-tls-verify)",)

    world.commit("News", {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})})
    tell(world)

    assert {"key": "new"} == data(world, "side")
    assert [("api-server-unverified", "", 0)] == errors(fleet_status(world))
    assert ("False", "NotStalled") == conditions(fleet_status(world))["Stalled"]

"""What a preview tells before a merge: classes, costs, file lines, comments, kept plans."""

from __future__ import annotations

import json

import pytest

from stoker.cli.print_markdown import MARKER, MAX_COMMENT
from stoker.model.refs import ObjectRef
from stories.files import NEW, a_bundle, a_config_map, a_service
from stories.test_commands import edit, stoker, stoker_on

__all__ = ["stoker", "stoker_on"]

A_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: llm, labels: {{tier: web}}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      nodeSelector: {{pool: {pool}}}
      containers:
      - {{name: main, image: "{image}", ports: [{{containerPort: 8000}}]}}
"""
WEB = {"replicas": 2, "pool": "a", "image": "x:1"}


def web(**changed: object) -> dict[str, str]:
    """A bundle with one Deployment."""
    return {
        "bundles/web/bundle.yaml": a_bundle("web", ("web.yaml",)),
        "bundles/web/web.yaml": A_DEPLOYMENT.format(**{**WEB, **changed}),
    }


# ----------------------------------------------------------------- classes and cost
@pytest.mark.parametrize(
    ("changed", "classes"),
    [
        ({"image": "x:2"}, {"restart"}),
        ({"replicas": 3}, {"scale"}),
        ({"pool": "b"}, {"placement", "restart"}),
    ],
    ids=["image", "count", "node selector"],
)
def test_fail_on_fails_for_its_classes_alone(world, stoker, changed, classes):
    world.commit("Web", web())
    world.settle()
    edit(world, web(**changed))

    for name in ("restart", "delete", "recreate", "scale", "placement"):
        code, _, err = stoker("diff", "--fail-on", name)
        assert int(name in classes) == code, (name, err)
    assert 1 == stoker("diff", "--fail-on", f"delete,{min(classes)}")[0]


def test_a_class_that_is_none_is_wrong_use(world, stoker):
    code, _, err = stoker("diff", "--fail-on", "restart,reboot")

    assert 2 == code
    assert "reboot" in err


def test_a_service_that_leaves_is_a_delete(world, stoker):
    world.commit("Web", web())
    world.settle()
    (world.work_tree / "bundles/web/bundle.yaml").unlink()
    (world.work_tree / "bundles/web/web.yaml").unlink()

    assert 1 == stoker("diff", "--fail-on", "delete")[0]
    assert 0 == stoker("diff", "--fail-on", "restart,scale")[0]


@pytest.mark.parametrize("others", [0, 1], ids=["room for a new one first", "full"])
def test_a_new_revision_of_weights_says_what_it_costs(world, stoker, others):
    """On a full cluster the first step only ends a replica: that is a restart, no delete."""
    files = {"models/other.yaml": a_service("other", replicas=others)}
    world.commit("Room", files)
    world.settle()
    edit(world, {"models/tiny.yaml": a_service(replicas=2, revision=NEW)})

    assert 1 == stoker("diff", "--fail-on", "restart")[0]
    assert 0 == stoker("diff", "--fail-on", "delete,scale")[0]
    out = stoker("diff")[1]
    assert ("cold starts 0" in out) == bool(others)
    summary = json.loads(stoker("diff", "-o", "json")[1])["summary"]
    assert summary["podsRestarted"] == 1
    if not others:
        assert " on gpu-" in out, "the place of the old replica stands beside the new one"
        assert summary["coldStartMs"] > 0


# ---------------------------------------------------------------------- selections
def test_labels_choose_objects(world, stoker):
    world.commit("Web", web())
    world.settle()
    side = {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})}
    edit(world, {**web(image="x:2"), **side})

    code, out, _ = stoker("diff", "-l", "tier=web")
    assert 1 == code
    assert "Deployment llm/web" in out
    assert "side" not in out
    assert 0 == stoker("diff", "-l", "tier notin (web),tier")[0]
    assert 2 == stoker("diff", "-l", "tier ~ web")[0]


def test_all_namespaces_wins_over_one(world, stoker):
    edit(world, {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})})

    assert 0 == stoker("diff", "-n", "elsewhere")[0]
    assert 1 == stoker("diff", "-n", "elsewhere", "-A")[0]


def test_status_shows_the_units_of_chosen_objects(world, stoker):
    world.commit("Web", web())
    world.settle()

    _, out, _ = stoker("status", "--all", "-l", "tier=web")
    assert "llm/web" in out
    assert "llm/side" not in out
    assert "llm/side" in stoker("status", "--all", "-n", "elsewhere", "-A")[1]
    assert 2 == stoker("status", "-l", "tier ~ web")[0]
    assert 3 == stoker("status", "-l", "tier=web", "--git")[0]


# ------------------------------------------------------------------------ file lines
def test_the_lines_of_the_file_head_a_service(world, stoker):
    """ux.md: a reader sees which line he changed, and what it does."""
    world.commit("Room", {"models/other.yaml": a_service("other", replicas=0)})
    world.settle()
    world.commit("New", {"models/tiny.yaml": a_service(replicas=3, revision=NEW)})
    lines = (world.work_tree / "models/tiny.yaml").read_text().splitlines()
    at = {key: 1 + next(n for n, row in enumerate(lines) if row.strip().startswith(f"{key}:"))
          for key in ("revision", "replicas")}  # fmt: skip

    out = stoker("diff", "--base", "HEAD~1", "--head", "HEAD")[1]

    (revision,) = [row for row in out.splitlines() if "spec.model.revision" in row]
    (replicas,) = [row for row in out.splitlines() if " spec.replicas " in row]
    assert revision.split() == [
        str(at["revision"]), "spec.model.revision", "aaaaaaa…", "->", "bbbbbbb…", "restarts", "pods",
    ]  # fmt: skip
    assert replicas.split() == [
        str(at["replicas"]), "spec.replicas", "2", "->", "3", "no", "restart",
    ]  # fmt: skip


def test_without_a_base_the_lines_are_those_since_the_applied_revision(world, stoker):
    edit(world, {"models/tiny.yaml": a_service(replicas=1)})
    out = stoker("diff")[1]

    assert "spec.replicas" in next(row for row in out.splitlines() if "no restart" in row)


def test_a_plan_names_what_happens_to_bundles(world, stoker):
    more = {"bundles/side/side.yaml": a_config_map("side", {"key": "another"})}
    idle = stoker("plan")[1]
    edit(world, more)

    out = stoker("plan")[1]
    document = json.loads(stoker("plan", "-o", "json")[1])

    assert "2 bundles unchanged\n" in idle
    assert "Bundle llm/side: 1 to change\n" in out
    assert {"Bundle/llm/side": 1} == {
        bundle["unit"]: bundle["objects"]["change"]
        for bundle in document["bundles"]
        if bundle["objects"]["change"]
    }


# -------------------------------------------------------------------------- markdown
@pytest.mark.parametrize("command", ["diff", "plan"])
def test_a_comment_is_marked_fenced_and_bounded(world, stoker, command):
    many = {f"key-{n:04}": "`" * 5 + "x" * 200 for n in range(900)}
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: canary-77}\n"
    edit(
        world,
        {
            "bundles/side/bundle.yaml": a_bundle("side", ("side.yaml", "s.yaml")),
            "bundles/side/side.yaml": a_config_map("side", {"key": "new", **many}),
            "bundles/side/s.yaml": secret,
            "models/tiny.yaml": a_service(replicas=2, revision=NEW),
        },
    )
    _, out, _ = stoker(command, "-o", "markdown")

    assert out.startswith(f"{MARKER}\n### Stoker {command}: **")
    assert len(out) <= MAX_COMMENT
    assert "``````text" in out, "longer than any run of backticks inside"
    assert "more lines" in out
    assert out.count("<details>") == out.count("</details>") >= 1
    assert "canary-77" not in out


def test_a_comment_without_effect_says_so(world, stoker):
    code, out, _ = stoker("diff", "-o", "markdown")

    assert 0 == code
    assert "no effect" in out
    assert "<details>" not in out


# -------------------------------------------------------------------------- kept plans
def test_a_kept_plan_is_applied_while_it_holds(world, stoker, tmp_path):
    file = tmp_path / "plan.json"
    world.commit("Two", {"bundles/side/side.yaml": a_config_map("side", {"key": "two"})})

    code, _, err = stoker("plan", "--out", str(file))
    assert 0 == code, err
    assert "stoker apply" in err
    assert 0 == stoker("apply", str(file), "--yes")[0]
    live = world.cluster.get(ObjectRef("", "ConfigMap", "llm", "side"))
    assert "two" == live["data"]["key"]


def test_a_plan_that_has_moved_is_refused(world, stoker, tmp_path):
    """b.F row 43: exit 3, with what moved; nothing is written."""
    file = tmp_path / "plan.json"
    world.commit("Two", {"bundles/side/side.yaml": a_config_map("side", {"key": "two"})})
    assert 0 == stoker("plan", "--out", str(file))[0]
    ref = ObjectRef("", "ConfigMap", "llm", "side")
    world.cluster.patch(ref, "merge", {"data": {"key": "by hand"}}, manager="kubectl-edit")
    version = world.memory.resource_version

    code, _, err = stoker("apply", str(file), "--yes")

    assert 3 == code
    assert "plan-stale" in err
    assert '+  data.key: "by hand" -> "two"' in err
    assert version == world.memory.resource_version


def test_a_plan_file_that_somebody_edited_is_refused(world, stoker, tmp_path):
    """b.F row 43, b.A row 33."""
    file = tmp_path / "plan.json"
    assert 0 == stoker("plan", "--out", str(file))[0]
    file.write_text(file.read_text().replace('"fleet": "local"', '"fleet": "other"'))

    code, _, err = stoker("apply", str(file), "--yes")

    assert 3 == code
    assert "plan-file-damaged" in err


def test_a_plan_is_kept_of_commits_alone(world, stoker, tmp_path):
    assert 2 == stoker("plan", "--out", str(tmp_path / "p"), "--base", "HEAD")[0]


def test_a_plan_with_an_object_in_error_does_not_exit_0(world, stoker):
    """A foreign object in the way is found before the merge, by plan as by diff."""
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "llm"},
    }
    world.cluster.create(theirs, manager="helm")
    edit(
        world,
        {
            "bundles/side/bundle.yaml": a_bundle("side", ("side.yaml", "x.yaml")),
            "bundles/side/x.yaml": a_config_map("x"),
        },
    )

    assert 2 == stoker("plan")[0]
    assert 2 == stoker("diff")[0]

"""The command line beside a running controller: looks never write, exit codes are one table."""

from __future__ import annotations

import json
import logging

import pytest
import yaml

from stoker.cli.app import run
from stoker.kube.client import Client
from stoker.model.refs import ObjectRef
from stories.faults import Faults
from stories.files import (
    FLEET,
    a_bundle,
    a_config_map,
    a_custom_kind,
    a_fleet,
    a_service,
    example,
    the_fleet,
    the_village,
)
from stories.looks import data, is_clean, tell

CANARY = "canary-5e1f0c2d"
A_JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.example/job:1}]
"""


@pytest.fixture
def stoker_on(monkeypatch, capsys):
    """Make a command on a world's cluster and work tree: exit code, stdout, stderr."""

    def on(world):
        def connect(*_arguments, **_options):
            return Client(Faults()(world.server), user_agent="command")

        monkeypatch.setattr("stoker.cli.session.connect", connect)

        def command(*arguments: str) -> tuple[int, str, str]:
            capsys.readouterr()
            code = run([*arguments, "--path", str(world.work_tree)])
            captured = capsys.readouterr()
            return int(code), captured.out, captured.err

        return command

    return on


@pytest.fixture
def stoker(world, stoker_on):
    """Run a command on the village's cluster and work tree."""
    return stoker_on(world)


def edit(world, files: dict[str, str]) -> None:
    """Change files of the work tree without a commit."""
    for path, text in files.items():
        target = world.work_tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace(a_uid(), world.cluster_uid), encoding="utf-8")


def a_uid() -> str:
    found: str = yaml.safe_load(a_fleet())["spec"]["cluster"]["uid"]
    return found


# --------------------------------------------------------------------- stoker diff
def test_a_clean_diff_prints_nothing_to_do_and_exits_0(world, stoker):
    """Nothing printed means Synced, and the reverse."""
    code, out, err = stoker("diff")

    assert 0 == code, err
    assert "0 to create, 0 to change, 0 to replace, 0 to delete" in out


def test_a_difference_exits_1_and_an_error_more(world, stoker):
    """cases.md row 139: drift was shown and the exit code was 0."""
    edit(world, {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})})
    code, out, _ = stoker("diff")

    assert 1 == code
    assert "1 to change" in out
    assert "key" in out

    assert 0 == stoker("diff", "--exit-zero")[0]

    edit(world, {"models/tiny.yaml": a_service(replicas=2, oops=1)})
    code, _, err = stoker("diff")

    assert 2 == code
    assert "models/tiny.yaml:" in err
    assert "oops" in err


def test_drift_of_the_cluster_alone_exits_1(world, stoker):
    """Nobody touched Git; CI still has to see it."""
    ref = ObjectRef("", "ConfigMap", "llm", "side")
    world.cluster.patch(ref, "merge", {"data": {"key": "by hand"}}, manager="kubectl")

    code, out, _ = stoker("diff")

    assert 1 == code
    assert "by hand" in out


def test_a_diff_leaves_the_cluster_as_it_was(world, stoker):
    """cases.md row 57: a dry run with local files changed live objects."""
    edit(
        world,
        {
            "bundles/side/side.yaml": a_config_map("side", {"key": "new"}),
            "models/tiny.yaml": a_service(replicas=3),
            "models/more.yaml": a_service("more"),
        },
    )
    version, tip = world.memory.resource_version, world.status_commits()

    assert 1 == stoker("diff")[0]
    assert 1 == stoker("diff", "-o", "unified")[0]
    assert 1 == stoker("diff", "-o", "json")[0]
    assert 0 == stoker("plan")[0]

    assert version == world.memory.resource_version
    assert tip == world.status_commits()


def test_what_is_not_there_yet_is_shown_as_created(world, stoker):
    """cases.md row 51."""
    files = {
        "bundles/side/bundle.yaml": a_bundle("side", ("fresh.yaml", "side.yaml")),
        "bundles/side/fresh.yaml": a_config_map("fresh"),
    }
    edit(world, files)

    code, out, _ = stoker("diff")

    assert 1 == code
    assert "+ create  ConfigMap llm/fresh" in out
    assert "1 to create" in out


def test_what_leaves_git_is_shown_as_removed(world, stoker):
    """cases.md row 49: the diff shows the removal that the pass then makes."""
    two = a_config_map("side", {"key": "value", "gone": "soon"})
    world.commit("Two", {"bundles/side/side.yaml": two})
    tell(world)
    edit(world, {"bundles/side/side.yaml": a_config_map("side")})

    code, out, _ = stoker("diff")

    assert 1 == code
    assert "gone" in out
    assert "soon" in out

    world.commit_all("One")
    tell(world)

    assert {"key": "value"} == data(world, "side")
    assert is_clean(world)


def test_a_refusal_of_the_server_is_told_before_anything_is_applied(world, stoker):
    """cases.md row 45: it was swallowed, and shown as Synced."""
    bundle = {"bundles/side/bundle.yaml": a_bundle("side", ("job.yaml", "side.yaml"))}
    world.commit("A job", {**bundle, "bundles/side/job.yaml": A_JOB})
    tell(world)
    edit(world, {"bundles/side/job.yaml": A_JOB.replace("job:1", "job:2")})

    code, out, err = stoker("diff")

    assert 2 == code
    assert "immutable" in out + err
    assert "Job llm/once" in out + err


def test_a_diff_against_the_wrong_cluster_is_refused(world, stoker):
    edit(world, {FLEET: a_fleet(cluster={"uid": "11111111-0000-4000-8000-000000000009"})})

    code, _, err = stoker("diff")

    assert 2 == code
    assert "wrong-cluster" in err


# ------------------------------------------------------------------ without a cluster
@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No kubeconfig, no service account, a home that is empty."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def folder(tmp_path):
    """The quickstart example as a folder, without Git."""
    root = tmp_path / "fleet"
    for path, text in example("quickstart").items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return root


def test_render_and_validate_need_no_cluster(nowhere, folder, capsys):
    """cases.md row 141."""
    assert 0 == run(["validate", str(folder)])
    assert 0 == run(["render", "--path", str(folder)])
    bodies = list(yaml.safe_load_all(capsys.readouterr().out))

    kinds = {body["kind"] for body in bodies}
    assert {"Namespace", "Deployment", "Service", "PodDisruptionBudget"} <= kinds


def test_a_diff_without_a_cluster_says_what_is_missing(nowhere, folder, capsys):
    code = run(["diff", "--path", str(folder)])

    assert 2 == code
    assert "kubeconfig" in capsys.readouterr().err.lower()


def test_a_malformed_reference_is_one_line_and_exit_2(nowhere, folder, capsys):
    """cases.md row 145: it was an internal unpack error."""
    file = folder / "models/qwen-0.5b.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("hf://Qwen/", "Qwen/"), encoding="utf-8")

    code = run(["validate", str(folder)])

    lines = [line for line in capsys.readouterr().err.splitlines() if "model.uri" in line]
    assert 2 == code
    assert 1 == len(lines)
    assert lines[0].startswith("models/qwen-0.5b.yaml:7:")
    assert "[invalid-model-uri]" in lines[0]


# ------------------------------------------------------------------------- secrets
def test_values_and_secrets_are_nowhere_to_be_read(world, stoker, caplog):
    """cases.md row 147: at the highest verbosity, through a failure of each stage."""
    caplog.set_level(logging.DEBUG)
    bundle = a_bundle("side", jinja={"paths": ["*.j2"], "values": {"password": CANARY}})
    broken = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {p: {{ values.password }}, {{ values.oops }}: 1}\n"
    refused = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\ntype: kubernetes.io/tls\n"
        "stringData: {p: '{{ values.password }}'}\n"
    )
    good = refused.replace("type: kubernetes.io/tls\n", "")
    outputs = []
    for template in (broken, refused, good, good.replace("}}'", "}}-2'")):
        world.commit(
            "A secret", {"bundles/side/bundle.yaml": bundle, "bundles/side/a.j2": template}
        )
        outputs += stoker("diff")[1:]
        tell(world)

    login = world.cluster.get(ObjectRef("", "Secret", "llm", "login"))
    assert login["data"]["p"]
    said = [
        caplog.text,
        *outputs,
        *[world.status_file(f) for f in ("status.yaml", "units/bundle.llm.side.yaml")],
        json.dumps(world.objects("stoker.dev", "Fleet", "stoker-system")),
        json.dumps(world.objects("", "ConfigMap", "stoker-system")),
    ]
    for text in said:
        assert CANARY not in text
        assert login["data"]["p"] not in text
    assert all("value" not in text or CANARY not in text for text in said)


def test_the_village_is_what_the_other_stories_think_it_is(world, stoker):
    """The files of the kit are in order: a story that fails on them says nothing."""
    assert is_clean(world)
    assert sorted(the_village()) == sorted(
        str(path.relative_to(world.work_tree))
        for path in world.work_tree.rglob("*.yaml")
        if ".git" not in path.parts
    )


def test_explain_names_the_health_file_that_called_an_object_unwell(settled, stoker_on):
    ref = ObjectRef("keda.sh", "ScaledObject", "llm", "llama", "v1alpha1")
    body = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"name": ref.name}}
    side = {"object.yaml": yaml.safe_dump(body), "map.yaml": a_config_map("side")}
    crds = {"crd.yaml": a_custom_kind(ref, "scaledobjects")}
    world = settled(the_fleet(crds=crds, side=side))
    condition = {"type": "Ready", "status": "False", "message": "no such metric"}
    status = {"status": {"conditions": [condition]}}
    world.cluster.patch(ref, "merge", status, manager="keda", subresource="status")

    code, out, _ = stoker_on(world)("explain", "side")

    assert code == 0
    assert out.splitlines()[1:] == [
        "HEALTH  1 of 2 objects are well",
        "  ScaledObject llm/llama  Degraded: Failed",
        "    no such metric",
        "    by policies/health/keda.yaml of Stoker",
    ]

    _, out, _ = stoker_on(world)("explain", "base")

    assert out.splitlines()[1:] == ["HEALTH  1 of 1 objects are well"]


# ------------------------------------------------------------------ stoker run --once
def test_a_pass_that_could_not_write_everything_says_so_with_its_exit_code(
    world, stoker, capsys, tmp_path
):
    """A pipeline that runs one pass must notice; what could be written is written."""
    foreign = yaml.safe_load(a_config_map("taken", {"theirs": "yes"}, namespace="llm"))
    world.cluster.apply(foreign, manager="helm")
    files = {
        "bundles/side/bundle.yaml": a_bundle("side", ("side.yaml", "taken.yaml")),
        "bundles/side/taken.yaml": a_config_map("taken", {"ours": "yes"}),
    }
    world.commit("Take it", {**files, "bundles/side/side.yaml": a_config_map("side", {"k": "2"})})
    once = ("run", "--repo", str(world.bare), "--allow-file", "--once", "--no-lease")

    code = run(
        [*once, "--fleet", "clusters/local/fleet.yaml", "--state-folder", str(tmp_path / "state")]
    )
    told = capsys.readouterr().err

    assert 3 == code, told
    assert "1 object could not be written" in told
    side = world.cluster.get(ObjectRef("", "ConfigMap", "llm", "side"))
    assert {"k": "2"} == side["data"]

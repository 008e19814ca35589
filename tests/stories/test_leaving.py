"""Leaving: `stoker uninstall` keeps every workload, `stoker inventory` says what there is."""

from __future__ import annotations

import json

import pytest
import yaml

from stoker.cli.app import run
from stoker.clock import SystemClock
from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.loop.lease import Lease
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stories.faults import Faults
from stories.files import a_bundle, a_config_map, a_service, the_village
from stories.looks import as_it_stands, is_clean, pod_uids, tell

KINDS = (
    ("", "Namespace"),
    ("", "ConfigMap"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("apps", "Deployment"),
    ("policy", "PodDisruptionBudget"),
)


@pytest.fixture
def stoker(world, monkeypatch, capsys):
    """Run a command on the world's cluster and work tree: exit code, stdout, stderr."""

    def connect(*_arguments, **_options):
        return Client(Faults()(world.server), user_agent="command")

    monkeypatch.setattr("stoker.cli.session.connect", connect)

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([*arguments, "--path", str(world.work_tree)])
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return command


def fleet_id(world) -> str:
    return names.fleet_id_of(world.cluster_uid, "local")


def ours(world) -> list[str]:
    """Objects on which anything says that this fleet manages them."""
    found = []
    for group, kind in KINDS:
        for body in world.objects(group, kind):
            metadata = body["metadata"]
            managers = {e["manager"] for e in metadata.get("managedFields") or ()}
            marked = names.OWNER in (metadata.get("annotations") or {})
            if metadata.get("namespace") == "stoker-system":
                continue
            if marked or names.manager_of(fleet_id(world)) in managers:
                found.append(f"{kind}/{metadata['name']}")
    return sorted(found)


def stamps(world) -> list[str]:
    """Annotations and labels of ours on objects themselves; pods keep their labels."""
    return [
        f"{kind}/{body['metadata']['name']} {key}"
        for group, kind in KINDS
        for body in world.objects(group, kind, "" if kind == "Namespace" else "llm")
        for place in ("annotations", "labels")
        for key in body["metadata"].get(place) or {}
        if key.startswith("stoker.dev/")
    ]


def state_of(world) -> list[str]:
    return [o["metadata"]["name"] for o in world.objects("", "ConfigMap", "stoker-system")]


# ---------------------------------------------------------------------- uninstall
def test_leaving_keeps_every_object_every_value_and_every_pod(world, stoker):
    """ux.md: kept N objects in M namespaces; released field manager; 0 pods restarted."""
    before, pods = as_it_stands(world), pod_uids(world)
    specs = {d["metadata"]["name"]: d["spec"] for d in world.objects("apps", "Deployment", "llm")}
    assert ours(world)
    world.stop_controller()

    code, out, err = stoker("uninstall", "--yes")

    assert (0, "") == (code, "" if code == 0 else err)
    assert "released field manager; 0 pods restarted" in out.splitlines()[-1]
    assert [] == ours(world)
    assert [] == stamps(world)
    assert set(before) == set(as_it_stands(world))
    assert pods == pod_uids(world)
    assert specs == {
        d["metadata"]["name"]: d["spec"] for d in world.objects("apps", "Deployment", "llm")
    }
    assert [] == [name for name in state_of(world) if name.startswith("stoker-")]
    assert () == world.objects("stoker.dev", "ModelService")
    assert () == world.objects("stoker.dev", "Fleet")


def test_a_fleet_that_left_and_comes_back_must_adopt(world, stoker):
    """Nothing is ours by habit: without marks and inventory the names are somebody's."""
    world.stop_controller()
    assert 0 == stoker("uninstall", "--yes")[0]
    before = as_it_stands(world)

    world.settle()

    assert before == as_it_stands(world)
    assert not is_clean(world)


def test_a_dry_run_and_a_no_write_nothing(world, stoker, monkeypatch):
    before = (ours(world), as_it_stands(world), state_of(world))
    world.stop_controller()

    code, out, _ = stoker("uninstall", "--dry-run")
    assert 0 == code
    assert "= keep" in out
    monkeypatch.setattr("typer.confirm", lambda *_a, **_k: False)
    assert 0 == stoker("uninstall")[0]

    assert before == (ours(world), as_it_stands(world), state_of(world))


def test_it_refuses_while_a_controller_is_installed(world, stoker):
    """It would take everything back within a minute."""
    before = ours(world)
    body = yaml.safe_load(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: X, namespace: stoker-system},"
        " spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels:"
        " {a: b}}, spec: {containers: [{name: c, image: x}]}}}}"
    )
    body["metadata"]["name"] = f"stoker-{fleet_id(world)}"
    world.cluster.create(body, manager="kubectl")

    code, _, err = stoker("uninstall", "--yes")

    assert 3 == code
    assert "controller-running" in err
    assert f"scale deployment stoker-{fleet_id(world)} --replicas=0" in err
    assert before == ours(world)


def test_it_refuses_while_a_lease_is_renewed(world, stoker, monkeypatch):
    before = ours(world)
    other = Lease(
        world.cluster,
        SystemClock(),
        namespace="stoker-system",
        name=f"stoker-{fleet_id(world)}",
        holder="another",
    )
    assert other.renew()
    monkeypatch.setattr("stoker.clock.SystemClock.wait", lambda *_a: other.renew())

    code, _, err = stoker("uninstall", "--yes")

    assert 3 == code
    assert "another holds the lease" in err
    assert before == ours(world)


def test_an_object_that_left_between_is_no_trouble(world, stoker):
    world.stop_controller()
    world.cluster.delete(ObjectRef("", "ConfigMap", "llm", "side"))

    assert 0 == stoker("uninstall", "--yes")[0]
    with pytest.raises(NotFound):
        world.cluster.get(ObjectRef("", "ConfigMap", "llm", "side"))


def test_a_pod_that_was_draining_is_named(world, stoker):
    """It stays without traffic: nobody is left to give it back."""
    world.commit("No tiny", {"models/tiny.yaml": None})
    world.advance(2)
    world.stop_controller()

    code, out, _ = stoker("uninstall", "--dry-run")

    assert 0 == code
    assert 2 == out.count("was draining and takes no requests")


def test_definitions_go_only_when_nobody_else_uses_them(world, stoker):
    other = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": "Fleet",
        "metadata": {
            "name": "theirs",
            "namespace": "stoker-system",
            "annotations": {"stoker.dev/fleet-id": "other"},
        },
        "spec": {},
    }
    world.cluster.apply(other, manager="stoker-other")
    world.stop_controller()

    code, out, _ = stoker("uninstall", "--yes", "--definitions")

    assert 0 == code
    assert "the CRDs stay" in out
    assert [] != world.objects("apiextensions.k8s.io", "CustomResourceDefinition")


# ---------------------------------------------------------------------- inventory
def rows(stoker) -> dict[str, str]:
    code, out, err = stoker("inventory", "-o", "names")
    assert 0 == code, err
    return {line.split()[1]: line.split()[0] for line in out.splitlines()}


def test_the_inventory_says_what_is_whose_and_why(world, stoker):
    kept = a_config_map("kept", annotations={"stoker.dev/prune": "disabled"})
    alone = a_config_map("alone", annotations={"stoker.dev/reconcile": "disabled"})
    taken = a_config_map("taken", annotations={"stoker.dev/adopt": "enabled"})
    world.cluster.create(
        yaml.safe_load(a_config_map("taken", namespace="llm")), manager="kubectl-create"
    )
    files = {"side.yaml": a_config_map("side"), "kept.yaml": kept, "taken.yaml": taken}
    named = {f"bundles/side/{name}": text for name, text in files.items()}
    bundle = "bundles/side/bundle.yaml"
    world.commit("More", {**named, bundle: a_bundle("side", tuple(files))})
    tell(world)
    more = {"alone.yaml": alone, "taken.yaml": taken}
    world.commit(
        "Less",
        {
            "bundles/side/alone.yaml": alone,
            "bundles/side/kept.yaml": None,
            bundle: a_bundle("side", tuple(more)),
        },
    )

    found = rows(stoker)

    assert "orphaned" == found["ConfigMap/llm/side"]
    assert "kept" == found["ConfigMap/llm/kept"]
    assert "adopted" == found["ConfigMap/llm/taken"]
    assert "left-alone" == found["ConfigMap/llm/alone"]
    assert "owned" == found["Namespace/llm"]


def test_a_create_only_object_is_told_by_diff_and_inventory(world, stoker):
    """cases.md row 75: whoever wonders why a change of Git does nothing finds the word."""
    once = {"stoker.dev/reconcile": "create-only"}
    made = {"bundles/side/side.yaml": a_config_map("side", annotations=once)}
    world.cluster.create(
        yaml.safe_load(a_config_map("theirs", namespace="llm")), manager="kubectl-create"
    )
    made |= {
        "bundles/side/theirs.yaml": a_config_map("theirs", annotations=once),
        "bundles/side/bundle.yaml": a_bundle("side", ("side.yaml", "theirs.yaml")),
    }
    world.commit("Once", made)
    tell(world)

    code, out, _ = stoker("diff")
    changed = json.loads(stoker("diff", "-o", "json")[1])

    assert 0 == code
    assert "ConfigMap side  only created where absent, never changed [create-only]" in out
    (unit,) = changed["units"]
    assert [("unchanged", "create-only")] * 2 == [
        (item["action"], item["code"]) for item in unit["objects"]
    ]
    assert "left as they are: 2 create-only\n" in stoker("plan")[1]
    found = rows(stoker)
    assert "owned" == found["ConfigMap/llm/side"]
    assert "left-alone" == found["ConfigMap/llm/theirs"]
    assert "never changed [create-only]" in stoker("inventory")[1]


def test_an_inventory_as_json_and_text(world, stoker):
    code, out, _ = stoker("inventory", "-o", "json")
    data = json.loads(out)

    assert 0 == code
    assert fleet_id(world) == data["fleetId"]
    assert len(data["objects"]) == data["summary"]["owned"]
    assert all(item["uid"] for item in data["objects"])
    text = stoker("inventory")[1]
    assert f"{len(data['objects'])} owned" == text.splitlines()[-1]


def test_an_inventory_of_nothing_says_so(new_world, monkeypatch, capsys):
    world = new_world()
    world.commit("First", the_village(tiny=a_service()))
    monkeypatch.setattr(
        "stoker.cli.session.connect", lambda *_a, **_k: Client(Faults()(world.server))
    )

    assert 0 == run(["inventory", "--path", str(world.work_tree)])
    assert "the fleet holds nothing" in capsys.readouterr().out

"""`deletionPolicy: Delete`: `stoker uninstall` deletes what is provably ours, with prune's safety."""

from __future__ import annotations

import pytest
import yaml

from stoker.model.refs import ObjectRef
from stoker.objects import names
from stories.faults import Faults
from stories.files import FLEET, a_config_map, a_fleet, a_service, the_fleet
from stories.looks import as_it_stands, deployments, pod_uids, serving, standing

DELETES = {"deletionPolicy": "Delete"}
SIDE = {
    "side.yaml": a_config_map("side"),
    "kept.yaml": a_config_map("kept", annotations={"stoker.dev/prune": "disabled"}),
    "claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
}


def a_leaving_fleet(**spec):
    return the_fleet(a_service(replicas=2), fleet=a_fleet(**{**DELETES, **spec}), side=SIDE)


def claims(world) -> list[str]:
    return [c["metadata"]["name"] for c in world.objects("", "PersistentVolumeClaim", "llm")]


def test_workloads_drain_and_go_and_what_is_protected_stays(settled, leave):
    """Design 3 and 6: Delete deletes; never a Namespace, a claim, or what policy keeps."""
    world = settled(a_leaving_fleet())
    assert 2 == len(serving(world))
    faults = Faults()

    code, out, err = leave(world, "--yes", "--delete", "local", faults=faults)

    assert (0, "") == (code, "" if code == 0 else err)
    assert [] == deployments(world)
    assert {"ConfigMap/kept"} == set(standing(world))
    assert ["claim"] == claims(world)
    assert "llm" in [n["metadata"]["name"] for n in world.objects("", "Namespace")]
    assert () == world.objects("stoker.dev", "ModelService")
    mapped = world.objects("", "ConfigMap", "stoker-system")
    assert [] == [c["metadata"]["name"] for c in mapped if names.manager_of("") in str(c)]
    assert "deleted " in out.splitlines()[-1]
    assert "kept 3 objects in 1 namespaces" in out.splitlines()[-1]
    drains = [r for r in faults.asked if r.method == "PATCH" and "/pods/" in r.path]
    assert 2 == len(drains), "traffic is taken off before a replica is deleted"
    for sent in faults.asked:
        if sent.method == "DELETE" and "/leases/" not in sent.path:
            assert b'"uid"' in (sent.body or b""), sent.path


def test_the_preview_names_what_goes_and_writes_nothing(settled, leave):
    """Preview equals action: what is printed as going is what is deleted."""
    world = settled(a_leaving_fleet())
    before, pods = as_it_stands(world), pod_uids(world)

    code, out, _ = leave(world, "--dry-run")

    assert 0 == code
    assert (before, pods) == (as_it_stands(world), pod_uids(world))
    assert "- delete  ConfigMap llm/side" in out
    assert "? wait    Deployment llm/tiny-" in out
    assert "= keep    ConfigMap llm/kept" in out
    assert "deletionPolicy Delete: 6 objects go" in out
    assert "Stoker-Allow-Delete: PersistentVolumeClaim/llm/claim" in out


def test_yes_alone_deletes_nothing(settled, leave):
    """A habit of --yes must not delete a fleet: its name has to be said."""
    world = settled(a_leaving_fleet())
    before = as_it_stands(world)

    for arguments in (("--yes",), ("--yes", "--delete", "other")):
        code, _, err = leave(world, *arguments)

        assert 2 == code
        assert "--delete local" in err
        assert before == as_it_stands(world)


def test_another_answer_than_the_name_writes_nothing(settled, leave, monkeypatch):
    world = settled(a_leaving_fleet())
    before = as_it_stands(world)
    monkeypatch.setattr("typer.prompt", lambda *_a, **_k: "yes")

    code, _, err = leave(world)

    assert 0 == code
    assert "nothing was written" in err
    assert before == as_it_stands(world)


def test_it_can_be_kept_all_the_same(settled, leave):
    world = settled(a_leaving_fleet())
    before = (standing(world), pod_uids(world))

    code, out, _ = leave(world, "--yes", "--keep")

    assert 0 == code
    assert before == (standing(world), pod_uids(world))
    assert "released field manager; 0 pods restarted" in out


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"mode": "Observe"}, "mode Observe"),
        ({"suspend": True}, "suspended"),
    ],
    ids=["observe", "suspended"],
)
def test_a_fleet_that_must_not_act_deletes_nothing(settled, leave, spec, why):
    """Two wishes that contradict each other: the one that does less is obeyed, and said."""
    world = settled(a_leaving_fleet())
    world.commit("Stop", {FLEET: a_fleet(**DELETES, **spec)})
    before = as_it_stands(world)

    code, _, err = leave(world, "--yes", "--delete", "local")

    assert 3 == code
    assert why in err
    assert before == as_it_stands(world)


def test_a_lost_inventory_deletes_nothing(settled, leave):
    """Design 6: a lost inventory prunes nothing."""
    world = settled(a_leaving_fleet())
    for body in world.objects("", "ConfigMap", "stoker-system"):
        if "stoker.dev/inventory" in (body["metadata"].get("labels") or {}):
            name = body["metadata"]["name"]
            world.cluster.delete(ObjectRef("", "ConfigMap", "stoker-system", name))
    before = as_it_stands(world)

    code, _, err = leave(world, "--yes", "--delete", "local")

    assert 3 == code
    assert "inventory" in err
    assert before == as_it_stands(world)


def test_what_is_only_written_in_the_folder_deletes_nothing(settled, leave):
    """Git says what happens, and Git has not heard of it yet."""
    world = settled(the_fleet(a_service(replicas=1), side=SIDE))
    text = (world.work_tree / FLEET).read_text(encoding="utf-8")
    changed = yaml.safe_load(text)
    changed["spec"]["deletionPolicy"] = "Delete"
    (world.work_tree / FLEET).write_text(yaml.safe_dump(changed), encoding="utf-8")
    before = (standing(world), pod_uids(world))

    code, _, err = leave(world, "--yes")

    assert 0 == code, err
    assert before == (standing(world), pod_uids(world))


def test_an_adopted_object_and_a_copied_mark_stay(settled, leave):
    """What somebody else made is given up; a mark that names something else proves nothing."""
    taken = a_config_map("taken", annotations={"stoker.dev/adopt": "enabled"})
    files = the_fleet(fleet=a_fleet(**DELETES), side={"taken.yaml": taken})
    files[FLEET] = files[FLEET].replace("  - /models/*.yaml\n", "")
    world = settled(the_fleet(fleet=files[FLEET]))
    world.cluster.create(
        yaml.safe_load(a_config_map("taken", namespace="llm")), manager="kubectl-create"
    )
    world.commit("Take", files)
    world.settle()

    code, out, err = leave(world, "--yes", "--delete", "local")

    assert 0 == code, err
    assert {"ConfigMap/taken"} == set(standing(world))
    assert "it was adopted" in out


def test_leaving_a_file_or_the_fleet_file_deletes_nothing_by_policy(settled):
    """Design 6: a missing Fleet file is an error; only `uninstall` obeys the policy."""
    world = settled(a_leaving_fleet())
    before = as_it_stands(world)

    world.commit("No fleet", {FLEET: None})
    world.advance(5)

    assert before == as_it_stands(world)

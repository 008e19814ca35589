"""What people and controllers do to live objects, and what a field that leaves Git does."""

from __future__ import annotations

import yaml

from stoker.model.refs import ObjectRef
from stories.files import a_bundle, a_config_map, the_village
from stories.looks import (
    conditions,
    data,
    deployments,
    errors,
    is_clean,
    message,
    standing,
    tell,
    unit_status,
    watch,
)

SIDE = "Bundle/llm/side"
SIDE_MAP = ObjectRef("", "ConfigMap", "llm", "side")


def side(text: str) -> dict[str, str]:
    return {"bundles/side/side.yaml": text}


def side_of(**manifests: str) -> dict[str, str]:
    files = {f"{name}.yaml": text for name, text in manifests.items()}
    return {
        "bundles/side/bundle.yaml": a_bundle("side", tuple(sorted({"side.yaml", *files}))),
        **{f"bundles/side/{path}": text for path, text in files.items()},
    }


def a_job(image: str) -> str:
    container = {"name": "main", "image": image}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": spec}
    return yaml.safe_dump(body, sort_keys=False)


STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  replicas: 0
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: store}}
      containers:
      - name: main
        image: registry.example/store:1
        resources: {requests: {cpu: 1000m, memory: 1000M}, limits: {memory: "2147483648"}}
"""


# ---------------------------------------------------------------- fields of others, and ours
def test_a_field_changed_by_hand_is_put_back_once(world):
    """a.3 A8."""
    patch = {"data": {"key": "by hand"}}
    world.cluster.patch(SIDE_MAP, "merge", patch, manager="kubectl-edit")

    seen = watch(world, 5, lambda: world.cluster.get(SIDE_MAP)["metadata"]["resourceVersion"])

    assert {"key": "value"} == data(world, "side")
    assert 1 == len(set(seen))
    summary = world.work.last.report.documents[0].data["summary"]
    assert 1 == summary["driftRepaired24h"]
    assert is_clean(world)


def test_labels_of_another_controller_cost_no_write(world, faults):
    """cases.md row 55: a labeler that touches our Deployment every second."""
    name = deployments(world)[0]["metadata"]["name"]
    ref = ObjectRef("apps", "Deployment", "llm", name)
    faults.asked.clear()

    for second in range(10):
        labels = {"metadata": {"labels": {"cost/seen": str(second)}}}
        world.cluster.patch(ref, "merge", labels, manager="labeler")
        world.advance(1)

    assert [] == faults.writes
    assert "9" == world.cluster.get(ref)["metadata"]["labels"]["cost/seen"]
    assert is_clean(world)


def test_a_key_of_another_controller_in_our_map_stays(world):
    """a.3 A5 and A6."""
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"theirs": "yes"}}
    theirs["metadata"] = {"name": "side", "namespace": "llm"}
    world.cluster.apply(theirs, manager="operator")

    world.commit("Ours", side(a_config_map("side", {"key": "new"})))
    tell(world)

    assert {"key": "new", "theirs": "yes"} == data(world, "side")
    assert is_clean(world)


def test_a_field_that_leaves_git_leaves_the_cluster(world):
    """cases.md row 49: a removed key, env var or annotation."""
    notes = {"note": "kept", "old": "dropped"}
    both = a_config_map("side", {"key": "value", "gone": "soon"}, annotations=notes)
    world.commit("More", side(both))
    tell(world)

    less = a_config_map("side", {"key": "value"}, annotations={"note": "kept"})
    world.commit("Less", side(less))
    tell(world)

    assert {"key": "value"} == data(world, "side")
    annotations = world.cluster.get(SIDE_MAP)["metadata"]["annotations"]
    assert "kept" == annotations["note"]
    assert "old" not in annotations
    assert is_clean(world)


def test_other_spellings_of_an_amount_are_no_drift(world, faults):
    """cases.md row 47: 1000m is 1 and 1000M is 1G, with spread constraints beside them."""
    world.commit("A store", side_of(store=STATEFUL_SET))
    world.advance(3)
    faults.asked.clear()

    world.advance(5)

    assert [] == faults.writes
    assert is_clean(world)


# -------------------------------------------------------------------- refused changes
def test_an_immutable_field_is_an_error_with_the_servers_reason(world):
    """cases.md row 45: a swallowed refusal was shown as Synced.

    reliability-security c.2 row 44.
    """
    world.commit("A job", side_of(job=a_job("registry.example/job:1")))
    world.advance(3)
    before = standing(world)

    world.commit("Another image", side_of(job=a_job("registry.example/job:2")))
    tell(world)

    status = unit_status(world, SIDE)
    assert "OutOfSync" == status["sync"]["status"]
    assert "True" == conditions(status)["Stalled"][0]
    assert "immutable" in message(status, "Stalled")
    assert [("bundles/side/job.yaml", 1)] == [(path, line) for _, path, line in errors(status)]
    assert before == standing(world)
    job = world.objects("batch", "Job", "llm")[0]
    assert "registry.example/job:1" == job["spec"]["template"]["spec"]["containers"][0]["image"]

    world.commit("Back", side_of(job=a_job("registry.example/job:1")))
    tell(world)

    assert ("False", "NotStalled") == conditions(unit_status(world, SIDE))["Stalled"]
    assert [] == errors(unit_status(world, SIDE))


def test_a_manifest_that_the_server_refuses_is_bad_input_with_its_line(world):
    """An unknown field comes back as a 500 that no retry cures."""
    text = a_config_map("side").replace("\ndata:", "\ndta:")

    world.commit("A typo", side(text))
    tell(world)

    status = unit_status(world, SIDE)
    assert "True" == conditions(status)["Stalled"][0]
    assert [("bundles/side/side.yaml", 1)] == [(path, line) for _, path, line in errors(status)]
    assert "dta" in message(status, "Stalled")
    assert {"key": "value"} == data(world, "side")

    world.commit("Fixed", the_village())
    tell(world)

    assert is_clean(world)


# ----------------------------------------------------------------------------- health
def test_a_stateful_set_between_two_revisions_is_progressing(world):
    """cases.md row 83: all replicas ready, and still half of them old."""
    world.commit("A store", side_of(store=STATEFUL_SET.replace("replicas: 0", "replicas: 2")))
    tell(world)
    ref = ObjectRef("apps", "StatefulSet", "llm", "store")
    generation = world.cluster.get(ref)["metadata"]["generation"]

    def report(current: str, updated: int) -> None:
        status = {
            "observedGeneration": generation,
            "replicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "currentReplicas": 2 - updated,
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": "store-2",
        }
        body = {"status": status}
        world.cluster.patch(ref, "merge", body, manager="statefulset", subresource="status")
        tell(world)

    report("store-1", 1)
    assert "Progressing" == unit_status(world, SIDE)["health"]["status"]

    report("store-2", 2)
    assert "Healthy" == unit_status(world, SIDE)["health"]["status"]
    assert is_clean(world)


def test_drift_is_repaired_at_the_next_pass_whatever_was_missed(world):
    """cases.md row 87: level-based, so a lost event costs one pass at most."""
    world.cluster.delete(SIDE_MAP)
    world.advance(3, passes=False)
    assert {} == data(world, "side")

    seen = watch(world, 1, lambda: data(world, "side"))

    assert [{"key": "value"}] == seen

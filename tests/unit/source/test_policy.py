"""ScalePolicy files: checked and converted already, refused until something obeys them."""

from __future__ import annotations

import pytest

from stoker.model.refs import ObjectRef
from stoker.model.scale_policy import ScalePolicy
from stoker.model.scaling import Scaling
from stoker.source.compile import UnitSettings, compile_draft
from stoker.source.policy import policy_from_spec
from stoker.source.schema_policy import ScalePolicyFile
from stoker.source.unit_file import read_unit_file
from stoker.source.yaml_strict import read_yaml
from unit.source.scaling_builders import QUEUE, SOURCES
from unit.source.source_builders import SERVICE, desired_of, named, with_spec

POLICY = """\
apiVersion: stoker.dev/v1alpha1
kind: ScalePolicy
metadata: {name: other}
spec:
  target: {apiVersion: apps/v1, kind: Deployment, name: vllm}
  scaling: {maxReplicas: 4}
"""


def compiled(text: str):
    (draft,) = read_unit_file("models/p.yaml", text.encode()).drafts
    return compile_draft(draft, UnitSettings(namespace="llm", pools=(), sources=SOURCES))


def faults(text: str):
    """Everything said of a policy but that its kind is not implemented yet."""
    return [f for f in compiled(text).findings if f.code != "not-implemented-yet"]


def policy(text: str) -> ScalePolicy:
    assert faults(text) == []
    value = read_yaml("p.yaml", text.encode()).documents[0].value
    return policy_from_spec(ScalePolicyFile.model_validate(value).spec, "llm")


def test_a_policy_names_a_workload_of_its_own_namespace_and_what_its_count_follows():
    assert policy(POLICY) == ScalePolicy(
        ObjectRef("apps", "Deployment", "llm", "vllm"), Scaling(1, 4)
    )


def test_any_kind_with_the_scale_subresource_can_be_a_target():
    """Issue D: Deployment, StatefulSet, LeaderWorkerSet, any scale subresource."""
    text = POLICY.replace(
        "apiVersion: apps/v1, kind: Deployment",
        "apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet",
    )

    assert policy(text).target == ObjectRef(
        "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "llm", "vllm"
    )


def test_priority_and_gpus_are_taken():
    found = policy(POLICY + "  priority: 7\n  gpusPerReplica: 4\n")

    assert (7, 4) == (found.priority, found.gpus_per_replica)


@pytest.mark.parametrize(
    ("old", "new", "code", "field", "line"),
    [
        ("maxReplicas: 4", "minReplicas: 1", "field-missing", "spec.scaling.maxReplicas", 6),
        ("maxReplicas: 4", f"maxReplicas: 4, metrics: [{QUEUE}, {QUEUE}]", "duplicate-metric", "spec.scaling.metrics[1].name", 6),
        ("maxReplicas: 4", "mode: External", "invalid-value", "spec.scaling.mode", 6),
        ("maxReplicas: 4", "maxReplicas: 4, load: {source: x, query: up}", "unknown-metric-source", "spec.scaling.load.source", 6),
        ("scaling: {maxReplicas: 4}", "gpusPerReplica: 4\n  scaling: {minReplicas: 2, maxReplicas: 4, maxGPUs: 7}", "budget-below-min", "spec.scaling.maxGPUs", 7),
        ("kind: Deployment", "kind: DaemonSet", "invalid-value", "spec.target.kind", 5),
        ("kind: Deployment", "kind: ReplicaSet", "invalid-value", "spec.target.kind", 5),
        ("kind: Deployment", "kind: deployment", "invalid-value", "spec.target.kind", 5),
        ("name: vllm", "name: Vllm", "invalid-value", "spec.target.name", 5),
        ("name: vllm", "name: vllm, namespace: other", "unknown-field", "spec.target.namespace", 5),
        (", name: vllm", "", "field-missing", "spec.target.name", 5),
    ],
)  # fmt: skip
def test_a_wrong_policy_is_one_error_at_its_line(old, new, code, field, line):
    found = faults(POLICY.replace(old, new))

    assert [(code, field, line)] == [(f.code, f.field, f.location.line) for f in found]


def test_two_policies_of_one_workload_are_refused_and_each_names_the_other():
    """Issue D: a second owner is refused with both names; two would fight over the count."""
    files = {
        "models/a.yaml": named("first", POLICY.replace("other", "first")),
        "models/b.yaml": POLICY,
    }
    desired = desired_of({**files, "models/q.yaml": SERVICE})

    found = [f for f in desired.findings if f.code == "second-owner"]
    assert ["models/a.yaml", "models/b.yaml"] == [f.location.path for f in found]
    assert all("ScalePolicy/llm/first" in f.message for f in found)
    assert all("ScalePolicy/llm/other" in f.message for f in found)
    assert ["spec.target.name"] * 2 == [f.field for f in found]
    assert [str(unit.ref) for unit in desired.units] == ["ModelService/llm/qwen"]


def test_two_services_that_adopt_one_deployment_are_refused():
    text = with_spec("placement: {mode: Scheduler}\nadopt: {name: vllm}")
    files = {"models/a.yaml": text, "models/b.yaml": named("second", text)}
    desired = desired_of(files)

    assert ["second-owner"] * 2 == [f.code for f in desired.findings]
    assert desired.units == ()


def test_a_policy_beside_the_service_that_adopted_its_target_is_refused():
    text = with_spec("placement: {mode: Scheduler}\nadopt: {name: vllm}")
    desired = desired_of({"models/a.yaml": text, "models/p.yaml": POLICY})

    found = [f for f in desired.findings if f.code == "second-owner"]
    assert ["ModelService/llm/qwen", "ScalePolicy/llm/other"] == [f.unit for f in found]


def test_a_policy_may_scale_what_a_service_leaves_to_others():
    text = with_spec("placement: {mode: Scheduler}\nadopt: {name: vllm}\nscaling: {mode: External}")
    desired = desired_of({"models/a.yaml": text, "models/p.yaml": POLICY})

    assert "second-owner" not in {f.code for f in desired.findings}


def test_policies_of_workloads_in_other_namespaces_have_nothing_to_do_with_each_other():
    elsewhere = POLICY.replace("{name: other}", "{name: other, namespace: second}")
    desired = desired_of({"models/a.yaml": elsewhere, "models/p.yaml": POLICY})

    assert "second-owner" not in {f.code for f in desired.findings}


def test_two_policies_keep_what_each_of_them_follows():
    """cases.md row 111: two policies with different metrics shared one result."""
    first = policy(POLICY.replace("maxReplicas: 4", f"maxReplicas: 2, metrics: [{QUEUE}]"))
    second = policy(POLICY.replace("name: vllm", "name: rerank"))

    assert (2, "queue") == (first.scaling.max_replicas, first.scaling.metrics[0].name)
    assert (4, ()) == (second.scaling.max_replicas, second.scaling.metrics)
    assert first.target != second.target

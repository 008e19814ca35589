import pytest

from builders import a_ref
from stoker.cel import Cel
from stoker.model.health_file import HealthCheck
from stoker.objects import names
from stoker.objects.health_rules import HealthRules
from stoker.observe.events import ObjectEvent, events_from
from stoker.observe.keys import CRDS, NODE_STATES, NODES, PODS, WatchKey
from stoker.observe.projection import entry_from
from stoker.observe.store import Changed
from unit.observe.observe_builders import FLEET, LLAMA, deployment, manifest, marked, node, pod

DEPLOYMENTS = WatchKey("apps", "Deployment", "v1", "llm")
MAPS = WatchKey("", "ConfigMap", "v1")


def told(key, before, after, rules=None, awaited=()):
    change = Changed(
        *(None if raw is None else entry_from(raw, key, FLEET) for raw in (before, after))
    )
    return events_from(key, [change], rules, awaited)


def entry(*fields, manager="other", **more):
    owned: dict[str, dict] = {field: {} for field in fields}
    return {"manager": manager, "operation": "Update", "fieldsV1": owned, **more}


def with_status(raw, **status):
    return {**raw, "status": {**raw.get("status", {}), **status}}


def test_our_own_objects_are_told_with_their_unit():
    raw = deployment("d1")

    assert told(DEPLOYMENTS, raw, with_status(raw, updatedReplicas=1)) == (
        ObjectEvent(DEPLOYMENTS.ref("llm", "d1"), LLAMA),
    )


def test_a_status_that_changes_no_verdict_wakes_nobody():
    """A thousand autoscalers write their measurements every 15 s: an idle fleet stays idle."""
    raw = deployment("d1", managedFields=[entry("f:spec")])
    measured = with_status(raw, observedGeneration=0, readyReplicas=0, note="12 %")
    by_status = entry("f:status", manager="hpa", subresource="status", time="2026-01-01T00:00:00Z")
    measured["metadata"] = {
        **raw["metadata"],
        "resourceVersion": "99",
        "managedFields": [entry("f:spec"), by_status],
    }

    assert told(DEPLOYMENTS, raw, measured) == ()


def test_every_change_of_a_unit_is_told_while_an_expression_about_it_is_waited_for():
    """It may ask of any field; of other units the rule above holds."""
    raw = deployment("d1", managedFields=[entry("f:spec")])
    measured = with_status(raw, note="12 %")
    measured["metadata"] = {**raw["metadata"], "resourceVersion": "99"}

    assert told(DEPLOYMENTS, raw, measured, awaited=frozenset({LLAMA})) == (
        ObjectEvent(DEPLOYMENTS.ref("llm", "d1"), LLAMA),
    )
    assert told(DEPLOYMENTS, raw, measured, awaited=frozenset({a_ref("other")})) == ()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"labels": {"a": "b"}}, id="a label"),
        pytest.param({"finalizers": ["a.example/b"]}, id="a finalizer"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, id="its deletion"),
        pytest.param({"managedFields": []}, id="an owner that gives its fields up"),
    ],
)
def test_what_a_comparison_can_see_is_told(change):
    """Git may have to take it back, or to wait."""
    raw = deployment("d1", managedFields=[entry("f:spec")])
    changed = {**raw, "metadata": {**raw["metadata"], **change}}

    assert len(told(DEPLOYMENTS, raw, changed)) == 1


def test_fields_that_a_status_writer_takes_beside_the_status_are_told():
    """The deployment controller writes an annotation through the status subresource."""
    raw = deployment("d1", managedFields=[entry("f:spec")])
    taken = [entry("f:spec"), entry("f:metadata", manager="kcm", subresource="status")]
    changed = {**raw, "metadata": {**raw["metadata"], "managedFields": taken}}

    assert len(told(DEPLOYMENTS, raw, changed)) == 1


def test_pods_of_a_service_are_told_with_their_unit():
    raw = pod(metadata={"labels": {names.SERVICE_LABEL: "llama"}})

    assert told(PODS, raw, None)[0].detail == "Pod llm/p1"
    assert told(PODS, raw, None) == (ObjectEvent(PODS.ref("llm", "p1"), LLAMA, deleted=True),)


def test_heartbeats_and_status_of_strangers_wake_nobody():
    """Thousands of nodes and pods report all day: none of it may start a pass."""
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    stranger = pod("foreign")
    config = manifest("v1", "ConfigMap", "a", "llm", data={"k": "1"})

    assert told(NODES, node(), node(conditions=[beat])) == ()
    assert told(PODS, stranger, with_status(stranger, conditions=[beat])) == ()
    assert told(MAPS, config, {**config, "data": {"k": "2"}}) == ()


def test_a_strangers_pod_that_frees_its_gpus_is_told():
    assert len(told(PODS, pod("foreign"), pod("foreign", phase="Succeeded"))) == 1
    assert len(told(PODS, pod("foreign"), None)) == 1


def test_an_object_that_loses_our_mark_is_told():
    raw = deployment("d1")
    stripped = manifest("apps/v1", "Deployment", "d1", "llm")

    assert len(told(DEPLOYMENTS, raw, stripped)) == 1


def test_an_object_made_anew_under_its_name_is_told():
    first = manifest("v1", "ConfigMap", "a", "llm", metadata={"uid": "1"})
    second = manifest("v1", "ConfigMap", "a", "llm", metadata={"uid": "2"})

    assert len(told(MAPS, first, second)) == 1


def test_a_changed_definition_is_told_for_its_versions_may_have_changed():
    raw = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a.b.c")

    assert len(told(CRDS, raw, with_status(raw, conditions=[]))) == 1


def test_a_new_notice_is_urgent_and_an_old_one_is_not():
    noticed = node(taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])
    report = manifest("stoker.dev/v1alpha1", "NodeState", "n1", status={"notice": {"kind": "spot"}})
    cordoned = {**noticed, "spec": {**noticed["spec"], "unschedulable": True}}

    assert [(e.notice, e.detail) for e in told(NODES, node(), noticed)] == [(True, "n1")]
    assert [event.notice for event in told(NODE_STATES, None, report)] == [True]
    assert [event.notice for event in told(NODES, noticed, cordoned)] == [False]
    assert [event.notice for event in told(NODES, noticed, None)] == [False]


@pytest.mark.parametrize(
    ("phase", "is_told"),
    [pytest.param("Down", True, id="it fails"), pytest.param("Busy", False, id="still well")],
)
def test_a_custom_kind_is_told_when_its_health_file_says_otherwise(phase, is_told):
    """No condition changes, and kstatus would see no difference."""
    key = WatchKey("example.com", "Widget", "v1", "llm")
    check = HealthCheck(
        "example.com", "Widget", "w.yaml", current="true", failed="status.phase == 'Down'"
    )
    raw = marked(manifest("example.com/v1", "Widget", "w", "llm"))
    before, after = with_status(raw, phase="Up"), with_status(raw, phase=phase)

    assert bool(told(key, before, after, HealthRules(Cel(), [check]))) is is_told

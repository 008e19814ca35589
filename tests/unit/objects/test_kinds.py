"""Order of kinds, pod templates, scopes."""

import pytest

from stoker.model.refs import ObjectRef
from stoker.objects.kinds import (
    NEEDS_CONSENT,
    Stage,
    apply_order,
    delete_order,
    is_builtin_group,
    is_builtin_namespaced,
    pod_template_paths,
    stage_of,
)


def ref(group, kind, name="x", namespace="llm"):
    return ObjectRef(group, kind, namespace, name)


NAMESPACE = ref("", "Namespace", "llm", "")
CRD = ref("apiextensions.k8s.io", "CustomResourceDefinition", "gizmos.example.org", "")
SECRET = ref("", "Secret")
ROLE = ref("rbac.authorization.k8s.io", "Role")
BINDING = ref("rbac.authorization.k8s.io", "RoleBinding")
SERVICE = ref("", "Service")
CUSTOM = ref("example.org", "Gizmo")
DEPLOYMENT = ref("apps", "Deployment")
HPA = ref("autoscaling", "HorizontalPodAutoscaler")
HOOK = ref("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "x", "")

ORDERED = [NAMESPACE, CRD, SECRET, ROLE, BINDING, SERVICE, CUSTOM, DEPLOYMENT, HPA, HOOK]


def test_what_others_need_is_applied_first():
    assert ORDERED == sorted([*ORDERED[5:], *ORDERED[:5]], key=apply_order)


def test_dependents_are_deleted_first_and_namespaces_last():
    """cases.md row 81: children once, namespace last."""
    ordered = sorted(ORDERED, key=delete_order)

    assert list(reversed(ORDERED)) == ordered


def test_ties_break_by_namespace_and_name():
    objects = [ref("", "ConfigMap", "b"), ref("", "ConfigMap", "a"), ref("", "ConfigMap", "z", "a")]

    assert ["z", "a", "b"] == [o.name for o in sorted(objects, key=apply_order)]
    assert ["z", "a", "b"] == [o.name for o in sorted(objects, key=delete_order)]


@pytest.mark.parametrize(
    ("object_ref", "stage"),
    [
        (NAMESPACE, Stage.FOUNDATION),
        (CRD, Stage.FOUNDATION),
        (SECRET, Stage.CONFIG),
        (CUSTOM, Stage.CONFIG),
        (DEPLOYMENT, Stage.WORKLOAD),
        (HOOK, Stage.GUARD),
    ],
    ids=lambda value: getattr(value, "kind", str(value)),
)
def test_every_kind_has_a_stage(object_ref, stage):
    assert stage is stage_of(object_ref)


def test_data_and_secrets_need_consent_to_go():
    kinds = {kind for _, kind in NEEDS_CONSENT}

    assert kinds == {
        "Namespace",
        "CustomResourceDefinition",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Secret",
    }


def test_pod_templates_are_found_where_the_kind_has_them():
    assert pod_template_paths("apps", "Deployment") == (("spec", "template"),)
    assert pod_template_paths("batch", "CronJob") == (("spec", "jobTemplate", "spec", "template"),)
    assert len(pod_template_paths("leaderworkerset.x-k8s.io", "LeaderWorkerSet")) == 2
    assert pod_template_paths("", "Pod") == ()
    assert pod_template_paths("", "Service") == ()


def test_scopes_of_builtin_kinds_are_known_without_discovery():
    assert is_builtin_namespaced("", "Namespace") is False
    assert is_builtin_namespaced("apps", "Deployment") is True
    assert is_builtin_namespaced("example.org", "Gizmo") is None
    assert is_builtin_group("apps")
    assert not is_builtin_group("keda.sh")

"""What a change does to running pods."""

import pytest

from stoker.model.change import Impact
from stoker.objects.impact import impact_of

NONE, SCALE, PLACEMENT = Impact.NONE, Impact.SCALE, Impact.PLACEMENT
RESTART, RECREATE = Impact.RESTART, Impact.RECREATE


@pytest.mark.parametrize(
    ("group", "kind", "path", "impact"),
    [
        ("apps", "Deployment", "spec.replicas", SCALE),
        ("apps", "Deployment", "spec.template.spec.containers.[name=c].image", RESTART),
        ("apps", "Deployment", "spec.template.metadata.labels.x", RESTART),
        ("apps", "Deployment", "spec.template", RESTART),
        ("apps", "Deployment", "spec", RESTART),
        ("apps", "Deployment", "spec.template.spec.affinity.nodeAffinity", PLACEMENT),
        ("apps", "Deployment", "spec.template.spec.tolerations", PLACEMENT),
        ("apps", "Deployment", "spec.selector.matchLabels.x", RECREATE),
        ("apps", "Deployment", "metadata.labels.x", NONE),
        ("apps", "Deployment", "spec.strategy.type", NONE),
        ("apps", "StatefulSet", "spec.serviceName", RECREATE),
        ("batch", "Job", "spec.template.spec.containers", RECREATE),
        ("batch", "Job", "spec.parallelism", SCALE),
        ("batch", "CronJob", "spec.jobTemplate.spec.template.spec.containers", NONE),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "spec.replicas", SCALE),
        (
            "leaderworkerset.x-k8s.io",
            "LeaderWorkerSet",
            "spec.leaderWorkerTemplate.workerTemplate.spec.containers",
            RESTART,
        ),
        ("", "Service", "spec.ports.[port=80].targetPort", NONE),
        ("", "Service", "spec.clusterIP", RECREATE),
        ("", "ConfigMap", "data.x", NONE),
        ("", "PersistentVolumeClaim", "spec.resources.requests.storage", NONE),
        ("", "PersistentVolumeClaim", "spec.storageClassName", RECREATE),
        ("rbac.authorization.k8s.io", "RoleBinding", "roleRef.name", RECREATE),
        ("", "Pod", "spec.containers.[name=c].image", RESTART),
        ("", "Pod", "spec.containers.[name=c].env", RECREATE),
        ("", "Pod", "spec.tolerations", NONE),
        ("", "Pod", "spec.activeDeadlineSeconds", NONE),
        ("", "Pod", "metadata.labels.x", NONE),
        ("example.org", "Gizmo", "spec.replicas", NONE),
    ],
)
def test_impact_of_one_path(group, kind, path, impact):
    assert impact is impact_of(group, kind, [tuple(path.split("."))])


def test_the_worst_of_all_paths_counts():
    paths = [("spec", "replicas"), ("spec", "template", "spec", "affinity"), ("metadata", "labels")]

    assert impact_of("apps", "Deployment", paths) is PLACEMENT
    assert impact_of("apps", "Deployment", [*paths, ("spec", "selector")]) is RECREATE
    assert impact_of("apps", "Deployment", []) is NONE


def test_data_marked_immutable_must_be_made_anew():
    assert impact_of("", "ConfigMap", [("data", "x")], frozen_data=True) is RECREATE
    assert impact_of("", "ConfigMap", [("metadata", "labels")], frozen_data=True) is NONE

"""What is carried into Git, applied by us, changes nothing but who answers for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from stoker.kube.client import Client
from stoker.kube.memory import MemoryServer
from stoker.kube.memory_defaults import with_defaults
from stoker.model.refs import ref_from_manifest
from stoker.objects.carried import carry
from stoker.objects.takeover import LAST_APPLIED
from stoker.sim.clock import VirtualClock

OURS = "stoker-a1b2c3d4"

KINDS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {app: x}}
spec:
  selector: {matchLabels: {app: x}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: x}, annotations: {note: "1"}}
    spec:
      nodeSelector: {pool: a}
      tolerations: [{key: gpu, operator: Exists}]
      volumes: [{name: shm, emptyDir: {medium: Memory}}, {name: plain, emptyDir: {}}]
      containers:
      - name: c
        image: x:1
        args: ["--a", "b"]
        env: [{name: A, value: ""}, {name: P, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}}
        readinessProbe: {httpGet: {path: /, port: 80}}
        volumeMounts: [{name: shm, mountPath: /dev/shm}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec:
  serviceName: s
  replicas: 2
  selector: {matchLabels: {app: s}}
  template:
    metadata: {labels: {app: s}}
    spec: {containers: [{name: c, image: "x:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: v}
spec: {selector: {app: x}, ports: [{port: 80, name: a, targetPort: 8000}, {port: 81, name: b}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m, annotations: {a: ""}}
data: {conf: "a\\nb\\n", empty: ""}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h}
spec:
  minReplicas: 2
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}
  behavior: {scaleDown: {stabilizationWindowSeconds: 60}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: j}
spec:
  schedule: "0 1 * * *"
  jobTemplate:
    spec:
      template: {spec: {restartPolicy: Never, containers: [{name: c, image: "x:1"}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: p}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: x}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: r}
roleRef: {kind: Role, name: x, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: sa, namespace: default}]
"""

BODIES: list[dict[str, Any]] = [
    {**body, "metadata": {**body["metadata"], "namespace": "default"}}
    for body in yaml.safe_load_all(KINDS)
]


def by_kubectl(cluster, body):
    notes = body["metadata"].get("annotations") or {}
    noted = {**body["metadata"], "annotations": {**notes, LAST_APPLIED: json.dumps(body)}}
    cluster.create({**body, "metadata": noted}, manager="kubectl-client-side-apply")


def by_create(cluster, body):
    cluster.create(body, manager="kubectl-create")


def by_server_side_apply(cluster, body):
    cluster.apply(body, manager="kustomize-controller")


def by_an_operator(cluster, body):
    """Nothing says which of its fields somebody meant."""
    cluster.create(body, manager="terraform")


MAKERS = [by_kubectl, by_create, by_server_side_apply, by_an_operator]


def live_of(made, body):
    cluster = Client(MemoryServer(VirtualClock()))
    made(cluster, body)
    return cluster, cluster.get(ref_from_manifest(body))


def carried(live, **more):
    return carry(live, fill=lambda m: with_defaults(live["kind"], m), **more).manifest


def bare(live):
    """Without what every write may change."""
    passing = {"managedFields", "resourceVersion", "generation"}
    kept = {k: v for k, v in live["metadata"].items() if k not in passing}
    return {**live, "metadata": kept}


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body["kind"])
@pytest.mark.parametrize("made", MAKERS, ids=lambda made: made.__name__)
def test_what_is_carried_changes_nothing(made, body):
    cluster, live = live_of(made, body)
    after = cluster.apply(carried(live), manager=OURS)

    assert bare(after) == bare(live)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body["kind"])
@pytest.mark.parametrize("made", MAKERS[:3], ids=lambda made: made.__name__)
def test_it_holds_what_somebody_wrote_and_no_default(made, body):
    """A file full of defaults cannot be reviewed, and pins what the server may improve."""
    _, live = live_of(made, body)
    cluster, _ = live_of(by_server_side_apply, carried(live))

    manifest = carried(live)
    written = cluster.get(ref_from_manifest(body))
    assert bare(written)["metadata"].get("labels") == live["metadata"].get("labels")
    assert "terminationMessagePath" not in json.dumps(manifest)
    assert "status" not in manifest
    assert set(manifest["metadata"]) <= {"name", "namespace", "labels", "annotations"}


def test_what_the_server_allocated_stays_out():
    """The same address cannot be had twice, in another cluster or after a delete."""
    service = next(body for body in BODIES if body["kind"] == "Service")
    fixed = {**service, "spec": {**service["spec"], "clusterIP": "10.0.0.7"}}
    _, live = live_of(by_an_operator, fixed)

    assert "clusterIP" in live["spec"]
    assert "clusterIP" not in carried(live)["spec"]


def test_an_annotation_that_is_no_manifest_says_nothing():
    body = next(body for body in BODIES if body["kind"] == "ConfigMap")
    note = {LAST_APPLIED: "not JSON"}
    noted = {**body, "metadata": {**body["metadata"], "annotations": note}}
    _, live = live_of(by_create, noted)

    assert carried(live)["data"] == body["data"]


def test_a_count_of_somebody_else_is_left_out():
    body = next(body for body in BODIES if body["kind"] == "StatefulSet")
    _, live = live_of(by_kubectl, body)

    assert carried(live)["spec"]["replicas"] == 2
    assert "replicas" not in carried(live, counted_elsewhere=True)["spec"]

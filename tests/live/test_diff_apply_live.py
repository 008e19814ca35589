"""Diff and apply against the real API server: in sync after one pass, for every kind."""

from __future__ import annotations

import copy
import uuid
from dataclasses import replace
from typing import Any

import pytest
import yaml

from fakes_live import FakeLive, live_object
from stoker.apply import InventoryStore, apply
from stoker.clock import SystemClock
from stoker.diff import DiffMemo, diff
from stoker.kube.client import Client
from stoker.kube.errors import KindNotFound
from stoker.model.change import Action, ChangeSet
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.outcome import PassOutcome
from stoker.model.ports import ServerInfo
from stoker.model.refs import UnitRef, ref_from_manifest
from stoker.objects import names
from unit.apply.apply_world import Caches
from unit.diff.diff_builders import desired

pytestmark = pytest.mark.live

CORPUS = """
kind: ServiceAccount
apiVersion: v1
metadata: {name: sa, labels: {app: x}}
---
kind: Secret
apiVersion: v1
metadata: {name: secret}
stringData: {token: abc}
data: {other: eA==}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: config, annotations: {"a.b/c": "1"}}
data: {a: "1", b: ""}
binaryData: {c: eA==}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: empty, labels: {}}
data: {}
---
kind: ResourceQuota
apiVersion: v1
metadata: {name: quota}
spec: {hard: {requests.cpu: 1000000m, count/configmaps: "100"}}
---
kind: LimitRange
apiVersion: v1
metadata: {name: limits}
spec: {limits: [{type: Container, default: {cpu: 1000m}, defaultRequest: {cpu: 500m}, max: {memory: 1024Gi}}]}
---
kind: PersistentVolumeClaim
apiVersion: v1
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
---
kind: Role
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: role}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: binding}
roleRef: {kind: Role, name: role, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: sa}, {kind: User, name: u}]
---
kind: Service
apiVersion: v1
metadata: {name: service}
spec:
  selector: {app: x}
  ports: [{name: http, port: 80, targetPort: http}, {name: dns, port: 53, protocol: UDP}]
---
kind: Service
apiVersion: v1
metadata: {name: headless}
spec: {clusterIP: None, selector: {app: x}, publishNotReadyAddresses: false, ports: [{port: 80}]}
---
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata: {name: policy}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchLabels: {app: x}}}], ports: [{port: 80}]}]
---
kind: Ingress
apiVersion: networking.k8s.io/v1
metadata: {name: ingress}
spec:
  rules:
  - host: x.example.org
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: service, port: {number: 80}}}}]}
---
kind: PodDisruptionBudget
apiVersion: policy/v1
metadata: {name: budget}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: x}}, unhealthyPodEvictionPolicy: AlwaysAllow}
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: full, labels: {app: x}}
spec:
  replicas: 0
  minReadySeconds: 0
  progressDeadlineSeconds: 900
  revisionHistoryLimit: 0
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: full}}
  template:
    metadata: {labels: {app: full}, annotations: {}}
    spec:
      hostNetwork: false
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 90
      nodeSelector: {}
      securityContext: {runAsNonRoot: false, fsGroup: 1000}
      tolerations: [{key: nvidia.com/gpu, operator: Exists}, {key: spot, value: "true"}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: full}}}
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 100, preference: {matchFields: [{key: metadata.name, operator: In, values: [n1]}]}}
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]
      initContainers: [{name: init, image: "x:1", restartPolicy: Always}]
      containers:
      - name: engine
        image: x:1
        args: ["--a", "1"]
        command: []
        env:
        - {name: EMPTY, value: ""}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        - {name: TOKEN, valueFrom: {secretKeyRef: {name: secret, key: token, optional: false}}}
        ports: [{containerPort: 8000, name: http}, {containerPort: 8001, protocol: UDP}]
        resources: {requests: {cpu: 1000m, memory: 1024Mi, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: "1"}}
        readinessProbe: {httpGet: {path: /health, port: http}, periodSeconds: 5, initialDelaySeconds: 0}
        startupProbe: {exec: {command: [sh, -c, "true"]}, failureThreshold: 120}
        lifecycle: {preStop: {exec: {command: [sleep, "15"]}}}
        securityContext: {capabilities: {drop: [ALL]}, privileged: false}
        volumeMounts: [{name: shm, mountPath: /dev/shm}, {name: models, mountPath: /models, readOnly: false}]
      - {name: side, image: "y:1", env: []}
      volumes:
      - {name: shm, emptyDir: {medium: Memory, sizeLimit: 1024Mi}}
      - {name: models, hostPath: {path: /mnt}}
      - {name: config, configMap: {name: config, items: [{key: a, path: a}]}}
      - name: token
        projected: {sources: [{serviceAccountToken: {path: token}}, {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}]}
---
kind: StatefulSet
apiVersion: apps/v1
metadata: {name: stateful}
spec:
  serviceName: headless
  replicas: 0
  selector: {matchLabels: {app: stateful}}
  template:
    metadata: {labels: {app: stateful}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1000m, memory: 1000M}}}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1000m}}}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: daemon}
spec:
  selector: {matchLabels: {app: daemon}}
  template: {metadata: {labels: {app: daemon}}, spec: {nodeSelector: {none: here}, containers: [{name: c, image: x}]}}
---
kind: Job
apiVersion: batch/v1
metadata: {name: job}
spec: {suspend: true, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}
---
kind: CronJob
apiVersion: batch/v1
metadata: {name: cron}
spec:
  schedule: "0 0 1 1 *"
  suspend: false
  jobTemplate: {spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: x}]}}}}
---
kind: HorizontalPodAutoscaler
apiVersion: autoscaling/v2
metadata: {name: hpa}
spec:
  minReplicas: 2
  maxReplicas: 5
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}
  - {type: Pods, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: 1000m}}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 600}}
---
kind: Lease
apiVersion: coordination.k8s.io/v1
metadata: {name: lease}
spec: {holderIdentity: x, leaseDurationSeconds: 15}
"""

CRD = """
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: PLURAL.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: KIND, plural: PLURAL, singular: SINGULAR, listKind: KINDList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              size: {type: string, default: small}
              port: {x-kubernetes-int-or-string: true}
              plain: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string, default: x}}}}
              byname: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, v: {type: integer}}}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              whole: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
"""


class Fleet:
    """One fleet of its own, with its own namespace, on the shared cluster."""

    def __init__(self, cluster: Client) -> None:
        self.cluster = cluster
        self.id = uuid.uuid4().hex[:8]
        self.space = f"diff-{self.id}"
        self.unit = UnitRef("Bundle", self.space, "corpus")
        self.caches = Caches()
        self.memo = DiffMemo()
        self.asked: list[str] = []
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.space}}
        cluster.create(body, manager="kubectl-create")
        self.store = InventoryStore(cluster, self.id, namespace=self.space)

    def rendered(self, *bodies: dict[str, Any]) -> ManifestSet:
        found = []
        for body in bodies:
            metadata = body["metadata"]
            if body["kind"] != "CustomResourceDefinition":
                metadata["namespace"] = self.space
            ref = ref_from_manifest(body)
            mark = names.owner_mark(self.id, self.unit, ref)
            metadata.setdefault("annotations", {})
            metadata["annotations"] = {**metadata["annotations"], names.OWNER: mark}
            found.append(Manifest(ref, body, digest=repr(body)))
        return ManifestSet(self.unit, tuple(found))

    def frozen(self, body: dict[str, Any]) -> ManifestSet:
        found = self.rendered(body)
        (only,) = found.manifests
        return replace(found, manifests=(replace(only, frozen_template=True),))

    def live(self, *sets: ManifestSet) -> FakeLive:
        view = FakeLive(phases={self.space: "Active"})
        kinds = {(m.ref.group, m.ref.kind, m.ref.version) for s in sets for m in s.manifests}
        for group, kind, version in sorted(kinds):
            space = "" if kind == "CustomResourceDefinition" else self.space
            try:
                items = self.cluster.list(group, kind, space, version=version).items
            except KindNotFound:
                view.missing_kinds.add((group, kind))
                continue
            for item in items:
                found = live_object(item)
                view.objects[found.ref] = found
        return view

    def look(self, found: ManifestSet, **options: Any) -> ChangeSet:
        view = self.live(found)
        inventory = self.store.read("prod", view)
        counting = _Counting(self.cluster, self.asked)
        fleet = desired(self.unit)
        return diff(fleet, (found,), view, inventory, counting, self.id, self.memo, **options)

    def run(self, found: ManifestSet) -> PassOutcome:
        changes = self.look(found)
        clock = SystemClock()
        fleet = desired(self.unit)
        return apply(changes, fleet, self.cluster, self.store, self.caches, clock, self.id)


class _Counting:
    """The cluster, with the dry runs that diff asks for written down."""

    def __init__(self, cluster: Client, asked: list[str]) -> None:
        self._cluster = cluster
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def server(self) -> ServerInfo:
        return self._cluster.server()

    def apply(self, manifest: dict[str, Any], **options: Any) -> dict[str, Any]:
        assert options.get("dry_run")
        self._asked.append(f"{manifest['kind']}/{manifest['metadata']['name']}")
        return self._cluster.apply(manifest, **options)


@pytest.fixture
def fleet(live_cluster: Client) -> Fleet:
    return Fleet(live_cluster)


def differing(changes: ChangeSet) -> dict[str, Any]:
    return {
        str(change.ref): (str(change.action), change.code, change.note, change.fields)
        for unit in changes.units
        for change in unit.changes
        if change.action is not Action.UNCHANGED
    }


def custom(kind: str) -> list[dict[str, Any]]:
    plural = f"{kind.lower()}s"
    text = CRD.replace("KIND", kind).replace("PLURAL", plural).replace("SINGULAR", kind.lower())
    spec: dict[str, Any] = {
        "port": 10,
        "plain": [{"a": "1"}],
        "byname": [{"name": "n", "v": 1}],
        "set": ["x", "y"],
        "whole": {"k": "1"},
        "free": {"cpu": "1000m", "empty": {}, "none": [], "list": [{"a": 1}]},
    }
    resource = {
        "apiVersion": "example.org/v1",
        "kind": kind,
        "metadata": {"name": "one"},
        "spec": spec,
    }
    return [yaml.safe_load(text), resource]


def test_everything_is_in_sync_right_after_one_pass(fleet: Fleet) -> None:
    """a.3 A1: no false difference, cases.md row 47."""
    found = fleet.rendered(*yaml.safe_load_all(CORPUS))
    outcome = fleet.run(found)

    assert [
        (o.ref.kind, o.message) for o in outcome.units[0].objects if o.result != "created"
    ] == []
    assert differing(fleet.look(found)) == {}
    asked = list(fleet.asked)
    assert differing(fleet.look(found)) == {}
    assert fleet.asked == asked
    assert len(asked) <= 6, asked


def test_custom_resources_are_in_sync_after_one_pass(fleet: Fleet) -> None:
    """Defaults, list types and int-or-string of a CRD are settled by one dry run."""
    found = fleet.rendered(*custom(f"Gizmo{fleet.id}"))
    for _ in range(20):
        outcome = fleet.run(found)
        if outcome.units[0].applied:
            break
        SystemClock().wait(0.2)

    assert outcome.units[0].applied
    assert differing(fleet.look(found)) == {}
    asked = list(fleet.asked)
    assert differing(fleet.look(found)) == {}
    assert fleet.asked == asked


def test_verify_changes_nothing_in_the_cluster(fleet: Fleet) -> None:
    """cases.md row 57, a.3 A2: a preview writes nothing."""
    found = fleet.rendered(*yaml.safe_load_all(CORPUS))
    changes = fleet.look(found, verify=True)

    assert {c.action for u in changes.units for c in u.changes} == {Action.CREATE}
    assert not fleet.live(found).owned(fleet.id)


def test_an_immutable_field_is_an_error_with_the_servers_words(fleet: Fleet) -> None:
    """cases.md row 45."""
    bodies = {b["metadata"]["name"]: b for b in yaml.safe_load_all(CORPUS)}
    fleet.run(fleet.rendered(bodies["job"], bodies["full"]))
    again = {b["metadata"]["name"]: b for b in yaml.safe_load_all(CORPUS)}
    again["job"]["spec"]["template"]["spec"]["containers"][0]["image"] = "y"
    found = differing(fleet.look(fleet.rendered(again["job"], again["full"])))

    ((action, code, note, _),) = found.values()
    assert (action, code) == ("error", "invalid-object")
    assert "field is immutable" in note


def test_a_frozen_template_restarts_nothing(fleet: Fleet) -> None:
    """While rev stands, labels of Git and defaults of the server leave the template alone."""
    body = next(b for b in yaml.safe_load_all(CORPUS) if b["metadata"]["name"] == "full")
    body["metadata"]["annotations"] = {names.REV: "r1"}
    fleet.run(fleet.frozen(copy.deepcopy(body)))
    (before,) = [o.body for o in fleet.live(fleet.frozen(copy.deepcopy(body))).objects.values()]
    body["spec"]["template"]["metadata"]["labels"]["team"] = "x"
    held = fleet.look(fleet.frozen(copy.deepcopy(body))).units[0].changes[0]
    body["spec"]["paused"] = True
    outcome = fleet.run(fleet.frozen(copy.deepcopy(body)))
    (after,) = [o.body for o in fleet.live(fleet.frozen(copy.deepcopy(body))).objects.values()]

    assert held.action is Action.UNCHANGED
    assert held.held_back == ("spec.template.metadata.labels.team",)
    assert outcome.units[0].objects[0].result == "changed"
    assert after["spec"]["template"] == before["spec"]["template"]
    assert after["spec"]["paused"] is True


def test_each_kind_of_drift_is_repaired_once(fleet: Fleet) -> None:
    """a.3 A8: a manual edit is reverted within one pass."""
    found = fleet.rendered(*yaml.safe_load_all(CORPUS))
    fleet.run(found)
    live = fleet.live(found)
    edits: dict[str, Any] = {
        "full": {"spec": {"template": {"spec": {"nodeSelector": {"x": "y"}, "tolerations": []}}}},
        "config": {"data": {"a": "9", "b": None}},
        "service": {"spec": {"selector": {"app": "y"}}},
        "budget": {"spec": {"maxUnavailable": 3}},
        "role": {"rules": []},
    }
    for ref in sorted(live.objects):
        if ref.name in edits:
            fleet.cluster.patch(ref, "merge", edits[ref.name], manager="kubectl-edit")
    drifted = differing(fleet.look(found))
    outcome = fleet.run(found)

    assert {name.rpartition("/")[2] for name in drifted} == set(edits)
    assert outcome.units[0].applied
    assert differing(fleet.look(found)) == {}

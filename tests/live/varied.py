"""Objects of every usual kind, as people spell them: a seeded generator of valid manifests.

`varied(seed, count)` gives manifests for one namespace. Spellings vary where the API server
normalises: quantities, nulls, empty maps and lists, int-or-string, ports without protocol,
defaults that are written out or left out. No two have the same kind and name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

Body = dict[str, Any]

_CPU = ("1000m", "1", 1, "0.5", "500m", 0.25, "250m", "2e0", "1500m")
_MEMORY = ("1Gi", "1024Mi", "1048576Ki", "1e9", "1G", "1000M", "1.5Gi", "1073741824", 134217728)
_SERVICE_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Headless", "")


class _Maker:
    """One seed. Every method gives fields of one kind; `maybe` leaves fields out at random."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def any_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def maybe(self, **fields: Any) -> Body:
        """Each field or not."""
        return {key: value for key, value in fields.items() if self.random.random() < 0.5}

    # ------------------------------------------------------------------- pieces
    def metadata(self, name: str) -> Body:
        return {
            "name": name,
            **self.maybe(
                labels=self.any_of({"app": name, "version": "1"}, {"a.b/c": ""}, {}, None),
                annotations=self.any_of({"note": "1e3 = yes", "empty": ""}, {}, None),
            ),
        }

    def selector(self, name: str) -> Body:
        return {
            "matchLabels": {"app": name},
            **self.maybe(matchExpressions=[{"key": "app", "operator": "Exists"}]),
        }

    def resources(self) -> Body:
        cpu, memory = self.any_of(*_CPU), self.any_of(*_MEMORY)
        return self.any_of(
            {},
            {"requests": {"cpu": cpu, "memory": memory}},
            {"limits": {"cpu": cpu, "nvidia.com/gpu": self.any_of(1, "1", "2")}},
            {"requests": {"cpu": cpu}, "limits": {"cpu": cpu, "memory": memory}, "claims": []},
            {"requests": {"ephemeral-storage": memory}, "limits": None},
        )

    def env(self) -> list[Body]:
        found: list[Body] = [
            {"name": "PLAIN", "value": "1"},
            {"name": "EMPTY", "value": ""},
            {"name": "NONE"},
            {"name": "NULL", "value": None},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {
                "name": "OPTION",
                "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": False}},
            },
        ]
        return self.random.sample(found, self.random.randint(0, len(found)))

    def probe(self) -> Body:
        return {
            **self.any_of(
                {"httpGet": {"path": "/health", "port": self.any_of("http", 8000)}},
                {"tcpSocket": {"port": 8000}},
                {"exec": {"command": ["true"]}},
                {"grpc": {"port": 8001}},
            ),
            **self.maybe(periodSeconds=5, initialDelaySeconds=0, timeoutSeconds=1),
        }

    def container(self, name: str, *, serving: bool = True) -> Body:
        ports = [
            {"name": "http", "containerPort": 8000},
            {"containerPort": 8001, "protocol": "UDP"},
        ]
        return {
            "name": name,
            "image": "registry.invalid/x:1",
            **self.maybe(
                args=["--a", "1"],
                command=self.any_of([], None, ["sh", "-c", "true"]),
                env=self.env(),
                envFrom=self.any_of([], [{"configMapRef": {"name": "c"}}]),
                imagePullPolicy="IfNotPresent",
                ports=[*ports, {"containerPort": 8000, "protocol": "UDP"}],
                resources=self.resources(),
                securityContext=self.any_of(
                    {}, {"privileged": False, "capabilities": {"drop": ["ALL"], "add": []}}
                ),
                volumeMounts=[{"name": "shm", "mountPath": "/dev/shm", "readOnly": False}],
                **(
                    {"readinessProbe": self.probe(), "startupProbe": self.probe()}
                    if serving
                    else {}
                ),
            ),
        }

    def pod(self, *, restart: str = "", serving: bool = True) -> Body:
        terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a", "b"]}]}]
        preferred = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
        affinity = {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "preference": preferred}
                ],
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            }
        }
        containers = [self.container("engine", serving=serving)]
        if self.random.random() < 0.4:
            containers.append(self.container("second", serving=serving))
        containers[0]["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
        return {
            "containers": containers,
            "volumes": [
                {"name": "shm", "emptyDir": self.any_of({}, {"sizeLimit": self.any_of(*_MEMORY)})},
                {"name": "c", "configMap": {"name": "c", "optional": True}},
                {
                    "name": "p",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"path": "token"}},
                            {"downwardAPI": {"items": [self.downward()]}},
                        ]
                    },
                },
            ],
            "nodeSelector": {"nowhere": "true"},
            **({"restartPolicy": restart} if restart else {}),
            **self.maybe(
                affinity=self.any_of(affinity, {}, None),
                automountServiceAccountToken=False,
                hostNetwork=False,
                hostAliases=[{"ip": "10.1.2.3", "hostnames": ["x"]}],
                imagePullSecrets=self.any_of([], [{"name": "pull"}]),
                initContainers=[self.container("init", serving=False)],
                securityContext=self.any_of({}, {"fsGroup": 1000, "runAsNonRoot": False}),
                terminationGracePeriodSeconds=self.any_of(0, 30, 90),
                tolerations=self.any_of(
                    [], [{"operator": "Exists"}], [{"key": "gpu", "value": "a"}, {"key": "b"}]
                ),
                topologySpreadConstraints=[
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": {"app": "x"}},
                    }
                ],
            ),
        }

    def downward(self) -> Body:
        field = {"fieldPath": "metadata.labels"}
        return {"path": "labels", "fieldRef": self.any_of(field, {**field, "apiVersion": "v1"})}

    def template(self, name: str) -> Body:
        more = self.maybe(annotations=self.any_of({}, None, {"scrape": "true"}))
        return {"metadata": {"labels": {"app": name}, **more}, "spec": self.pod()}

    # -------------------------------------------------------------------- kinds
    def deployment(self, name: str) -> Body:
        rolling = {"maxSurge": self.any_of(0, "25%", 1), "maxUnavailable": self.any_of(1, "50%")}
        return {
            "spec": {
                "selector": self.selector(name),
                "template": self.template(name),
                **self.maybe(
                    replicas=self.any_of(0, 1, 2),
                    minReadySeconds=self.any_of(0, 5),
                    paused=False,
                    progressDeadlineSeconds=900,
                    revisionHistoryLimit=self.any_of(0, 10),
                    strategy=self.any_of(
                        {"type": "Recreate"},
                        {},
                        {"type": "RollingUpdate", "rollingUpdate": rolling},
                    ),
                ),
            }
        }

    def statefulset(self, name: str) -> Body:
        claim = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": self.any_of(*_MEMORY)}},
            },
        }
        return {
            "spec": {
                "serviceName": name,
                "selector": self.selector(name),
                "template": self.template(name),
                **self.maybe(
                    replicas=self.any_of(0, 1),
                    podManagementPolicy="Parallel",
                    updateStrategy=self.any_of({}, {"rollingUpdate": {"partition": 0}}),
                    volumeClaimTemplates=[claim],
                    persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"},
                ),
            }
        }

    def daemonset(self, name: str) -> Body:
        update = {"rollingUpdate": {"maxUnavailable": self.any_of(1, "10%")}}
        return {
            "spec": {
                "selector": self.selector(name),
                "template": self.template(name),
                **self.maybe(updateStrategy=self.any_of({"type": "OnDelete"}, update)),
            }
        }

    def replicaset(self, name: str) -> Body:
        return {
            "spec": {
                "selector": self.selector(name),
                "template": self.template(name),
                **self.maybe(replicas=self.any_of(0, 1), minReadySeconds=0),
            }
        }

    def job(self, name: str) -> Body:
        del name
        template = {"spec": self.pod(restart=self.any_of("Never", "OnFailure"), serving=False)}
        more = self.maybe(parallelism=1, completions=1, backoffLimit=0, completionMode="NonIndexed")
        return {"spec": {"suspend": self.any_of(True, False), "template": template, **more}}

    def cronjob(self, name: str) -> Body:
        return {
            "spec": {
                "schedule": self.any_of("0 0 1 1 *", "@yearly"),
                "jobTemplate": {"spec": self.job(name)["spec"]},
                **self.maybe(
                    suspend=self.any_of(True, False),
                    concurrencyPolicy="Forbid",
                    timeZone="Etc/UTC",
                    successfulJobsHistoryLimit=0,
                ),
            }
        }

    def bare_pod(self, name: str) -> Body:
        del name
        spec = self.pod(restart=self.any_of("Always", "Never", ""))
        return {"spec": {**spec, "serviceAccountName": "default"}}

    def service(self, name: str) -> Body:
        kind = self.any_of(*_SERVICE_TYPES)
        ports = [
            {"name": "http", "port": 80, "targetPort": self.any_of("http", 8000)},
            {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53},
        ]
        spec: Body = {"ports": ports[: self.random.randint(1, 3)], "selector": {"app": name}}
        match kind:
            case "ExternalName":
                spec = {"externalName": "x.example.org", "ports": spec["ports"]}
            case "Headless":
                spec |= {"clusterIP": "None", "publishNotReadyAddresses": False}
            case "LoadBalancer":
                spec |= self.maybe(allocateLoadBalancerNodePorts=False, loadBalancerSourceRanges=[])
        if kind not in {"", "Headless"}:
            spec["type"] = kind
        if kind in {"", "ClusterIP"}:
            spec |= self.maybe(sessionAffinity="ClientIP", ipFamilyPolicy="SingleStack")
        return {"spec": spec}

    def ingress(self, name: str) -> Body:
        port = self.any_of({"number": 80}, {"name": "http"})
        backend = {"service": {"name": name, "port": port}}
        path = {"path": "/", "pathType": self.any_of("Prefix", "Exact"), "backend": backend}
        rule = {"host": f"{name}.example.org", "http": {"paths": [path]}}
        return {
            "spec": {
                "rules": [rule],
                **self.maybe(
                    defaultBackend=backend,
                    tls=[{"hosts": [rule["host"]]}],
                    ingressClassName="nginx",
                ),
            }
        }

    def networkpolicy(self, name: str) -> Body:
        del name
        ports = [{"port": 80}, {"port": "http", "protocol": "TCP"}, {"port": 90, "endPort": 99}]
        peer = self.any_of(
            {"podSelector": {}},
            {"namespaceSelector": {"matchLabels": {"a": "b"}}},
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
        )
        rule = {"from": [peer], "ports": ports[: self.random.randint(0, 3)]}
        return {
            "spec": {
                "podSelector": self.any_of({}, {"matchLabels": {"app": "x"}}),
                **self.maybe(ingress=self.any_of([], [{}], [rule]), policyTypes=["Ingress"]),
            }
        }

    def budget(self, name: str) -> Body:
        limit = self.any_of("maxUnavailable", "minAvailable")
        return {
            "spec": {
                limit: self.any_of(1, 0, "50%"),
                "selector": self.any_of({}, self.selector(name)),
                **self.maybe(unhealthyPodEvictionPolicy="AlwaysAllow"),
            }
        }

    def configmap(self, name: str) -> Body:
        del name
        return self.maybe(
            data=self.any_of({}, None, {"a": "1", "empty": "", "multi": "a\nb\n"}),
            binaryData={"b": "eA=="},
            immutable=self.any_of(True, False),
        )

    def secret(self, name: str) -> Body:
        del name
        return {
            **self.maybe(
                stringData=self.any_of({}, {"token": "abc", "empty": ""}),
                data=self.any_of({}, None, {"other": "eA==", "none": ""}),
                immutable=False,
                type="Opaque",
            ),
        }

    def serviceaccount(self, name: str) -> Body:
        del name
        return self.maybe(
            automountServiceAccountToken=self.any_of(True, False),
            imagePullSecrets=self.any_of([], [{"name": "pull"}]),
        )

    def rules(self) -> list[Body] | None:
        found = [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["*"], "resourceNames": [], "verbs": ["*"]},
        ]
        return self.any_of([], found, found[:1], None)

    def role(self, name: str) -> Body:
        del name
        return {"rules": self.rules()}

    def binding(self, name: str) -> Body:
        group = self.maybe(apiGroup="rbac.authorization.k8s.io")
        subjects = [
            {"kind": "ServiceAccount", "name": name, "namespace": "default"},
            {"kind": "User", "name": "u", **group},
        ]
        return {
            "roleRef": {"kind": "ClusterRole", "name": "view", **group},
            **self.maybe(subjects=self.any_of([], subjects)),
        }

    def claim(self, name: str) -> Body:
        del name
        return {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": self.any_of(*_MEMORY)}},
                **self.maybe(storageClassName="", volumeMode="Filesystem"),
            }
        }

    def autoscaler(self, name: str) -> Body:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"of-{name}"}
        value = {"type": "AverageValue", "averageValue": self.any_of(*_CPU)}
        cpu = {"type": "Utilization", "averageUtilization": 80}
        metrics = [
            {"type": "Resource", "resource": {"name": "cpu", "target": cpu}},
            {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": value}},
        ]
        return {
            "spec": {
                "scaleTargetRef": target,
                "maxReplicas": 5,
                **self.maybe(
                    minReplicas=1,
                    metrics=self.any_of(metrics, metrics[:1]),
                    behavior=self.any_of({}, {"scaleDown": {"stabilizationWindowSeconds": 0}}),
                ),
            }
        }

    def old_autoscaler(self, name: str) -> Body:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"of-{name}"}
        more = self.maybe(minReplicas=2, targetCPUUtilizationPercentage=70)
        return {"spec": {"scaleTargetRef": target, "maxReplicas": 5, **more}}

    def lease(self, name: str) -> Body:
        held = self.maybe(holderIdentity="x", leaseDurationSeconds=15, leaseTransitions=0)
        del name
        return self.any_of({}, {"spec": {**held, "renewTime": "2026-11-29T03:04:05.123456Z"}})

    def gizmo(self, name: str) -> Body:
        del name
        return {
            "spec": self.maybe(
                size=self.any_of("small", "large"),
                port=self.any_of(80, "http", "80"),
                plain=self.any_of([], [{"a": "1"}, {}]),
                byname=[{"name": "n", "v": 1}, {"name": "m"}],
                bykey=[{"port": 80}, {"port": 80, "protocol": "UDP"}],
                set=self.any_of([], ["x", "y"]),
                whole=self.any_of({}, {"k": "1"}),
                nothing=self.any_of(None, "x"),
                free={"cpu": "1000m", "empty": {}, "none": [], "list": [{"a": 1}], "nil": None},
                nested=self.any_of({}, {"on": False}, {"deep": {"n": 0}}),
                amount=self.any_of(0, 1, 10),
            )
        }

    # ----------------------------------------------------------- without namespace
    def storageclass(self, name: str) -> Body:
        more = self.maybe(
            reclaimPolicy="Delete",
            parameters=self.any_of({}, {"a": "b"}),
            allowVolumeExpansion=False,
        )
        return {"provisioner": f"{name}.example.org", **more}

    def priorityclass(self, name: str) -> Body:
        del name
        more = self.maybe(globalDefault=False, description="", preemptionPolicy="Never")
        return {"value": self.random.randint(-10, 10), **more}

    def validator(self, name: str) -> Body:
        rule = {
            "apiGroups": ["none.example.org"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["nothing"],
            **self.maybe(scope="*"),
        }
        service = {"name": name, "namespace": "default", **self.maybe(path="/x", port=443)}
        hook = {
            "name": f"{name}.example.org",
            "clientConfig": {"service": service},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore",
            **self.maybe(timeoutSeconds=5, matchPolicy="Equivalent", namespaceSelector={}),
        }
        return {"webhooks": [hook]}

    def clusterrole(self, name: str) -> Body:
        aggregated = {"clusterRoleSelectors": [{"matchLabels": {f"to-{name}": "true"}}]}
        return self.any_of({"rules": self.rules()}, {"aggregationRule": aggregated})


NAMESPACED: tuple[tuple[str, str, Callable[[_Maker, str], Body]], ...] = (
    ("apps/v1", "Deployment", _Maker.deployment),
    ("apps/v1", "StatefulSet", _Maker.statefulset),
    ("apps/v1", "DaemonSet", _Maker.daemonset),
    ("apps/v1", "ReplicaSet", _Maker.replicaset),
    ("batch/v1", "Job", _Maker.job),
    ("batch/v1", "CronJob", _Maker.cronjob),
    ("v1", "Pod", _Maker.bare_pod),
    ("v1", "Service", _Maker.service),
    ("v1", "ConfigMap", _Maker.configmap),
    ("v1", "Secret", _Maker.secret),
    ("v1", "ServiceAccount", _Maker.serviceaccount),
    ("v1", "PersistentVolumeClaim", _Maker.claim),
    ("networking.k8s.io/v1", "Ingress", _Maker.ingress),
    ("networking.k8s.io/v1", "NetworkPolicy", _Maker.networkpolicy),
    ("policy/v1", "PodDisruptionBudget", _Maker.budget),
    ("rbac.authorization.k8s.io/v1", "Role", _Maker.role),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", _Maker.binding),
    ("autoscaling/v2", "HorizontalPodAutoscaler", _Maker.autoscaler),
    ("autoscaling/v1", "HorizontalPodAutoscaler", _Maker.old_autoscaler),
    ("coordination.k8s.io/v1", "Lease", _Maker.lease),
    ("varied.example.org/v1", "Gizmo", _Maker.gizmo),
)
CLUSTER_WIDE: tuple[tuple[str, str, Callable[[_Maker, str], Body]], ...] = (
    ("storage.k8s.io/v1", "StorageClass", _Maker.storageclass),
    ("scheduling.k8s.io/v1", "PriorityClass", _Maker.priorityclass),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", _Maker.clusterrole),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", _Maker.binding),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", _Maker.validator),
)


def varied(seed: int, count: int, namespace: str) -> dict[str, list[Body]]:
    """`count` manifests, kind after kind in turn, by kind and version."""
    maker = _Maker(seed)
    found: dict[str, list[Body]] = {}
    turns = itertools.cycle((*NAMESPACED, *CLUSTER_WIDE))
    for number, (version, kind, make) in zip(range(count), turns, strict=False):
        name = f"{kind[:9].lower()}-{version.rpartition('/')[2]}-{seed}-{number}"
        metadata = maker.metadata(name)
        if (version, kind, make) in NAMESPACED:
            metadata["namespace"] = namespace
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, **make(maker, name)}
        found.setdefault(
            f"{kind}-{version.replace('/', '-').replace('.', '-')}".lower(), []
        ).append(body)
    return found


def limits(namespace: str) -> list[Body]:
    """Quotas and limit ranges, which keep others out of their namespace."""
    quota = {"requests.cpu": "1000000m", "count/configmaps": "100", "requests.memory": "1e3Gi"}
    ranges = [
        {"type": "Container", "default": {"cpu": "1000m"}, "max": {"memory": "1024Gi"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1000M"}},
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        for name, kind, spec in (
            ("some", "ResourceQuota", {"hard": {"pods": "0.1e2", "requests.cpu": 10}}),
            ("more", "ResourceQuota", {"hard": dict(list(quota.items())[:2])}),
            ("scoped", "ResourceQuota", {"hard": {"pods": 5}, "scopes": ["BestEffort"]}),
            ("both", "LimitRange", {"limits": ranges}),
            ("none", "LimitRange", {"limits": []}),
        )
    ]


def gizmos() -> Body:
    """The definition of Gizmo: defaults, unknown fields kept, every list type, nullable."""
    item = {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}
    port = {
        "type": "object",
        "required": ["port"],
        "properties": {
            "port": {"type": "integer"},
            "protocol": {"type": "string", "default": "TCP"},
        },
    }
    plain = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "x"}},
    }
    deep = {"type": "object", "properties": {"n": {"type": "integer"}}}
    fields: Body = {
        "size": {"type": "string", "default": "small"},
        "port": {"x-kubernetes-int-or-string": True},
        "plain": {"type": "array", "items": plain},
        "byname": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {**item, "required": ["name"]},
        },
        "bykey": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": port,
        },
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "additionalProperties": {"type": "string"},
        },
        "nothing": {"type": "string", "nullable": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nested": {
            "type": "object",
            "default": {"on": True},
            "properties": {"on": {"type": "boolean", "default": True}, "deep": deep},
        },
        "amount": {"type": "integer", "default": 3},
    }
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": fields}},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.varied.example.org"},
        "spec": {
            "group": "varied.example.org",
            "scope": "Namespaced",
            "names": {"kind": "Gizmo", "plural": "gizmos", "singular": "gizmo"},
            "versions": [version],
        },
    }

"""The manifests that run the node reporter, as one YAML stream: apart from the controller's.

In: ReporterInstall from the command line. Out: text for `kubectl apply -f -`. A reporter may
read and make NodeStates and patch their status; an admission policy holds each to its own
node's. It has a namespace of its own, for reading a folder of the host needs weaker pod
security than the controller's namespace allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker.objects.names import GROUP, MANAGED_BY
from stoker.report.definitions import definition_texts
from stoker.report.install_rights import RBAC_GROUP
from stoker.report.plain_yaml import dump

__all__ = ["ReporterInstall", "reporter_manifests"]

NAME = "stoker-reporter"
PORT = 8081
USER = 65532
_LABELS = {"app.kubernetes.io/name": NAME}
_ADMISSION = "admissionregistration.k8s.io/v1"
_NODE_OF_TOKEN = "authentication.kubernetes.io/node-name"  # noqa: S105 - the name of a claim


@dataclass(frozen=True, slots=True)
class ReporterInstall:
    """What `stoker install --reporter` was told.

    `cache_path` is the folder on the node that is mounted, read-only; empty mounts none. With
    `evict` it is mounted for writing, and the reporter is root, to delete what engines wrote.
    `options` are further options of `stoker reporter`.
    """

    image: str
    namespace: str = NAME
    cache_path: str = ""
    evict: bool = False
    engine_namespaces: tuple[str, ...] = ()
    """Where pods may be listed, to find the engines of the node."""
    host_network: bool = False
    node_selector: tuple[tuple[str, str], ...] = (("nvidia.com/gpu.present", "true"),)
    options: tuple[str, ...] = ()


def reporter_manifests(settings: ReporterInstall) -> str:
    """Everything, in the order in which it can be applied."""
    objects = [
        _namespace(settings),
        _object("v1", "ServiceAccount", settings.namespace, automountServiceAccountToken=False),
        _object(f"{RBAC_GROUP}/v1", "ClusterRole", "", rules=_rules()),
        _object(
            f"{RBAC_GROUP}/v1",
            "ClusterRoleBinding",
            "",
            roleRef={"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": NAME},
            subjects=[{"kind": "ServiceAccount", "name": NAME, "namespace": settings.namespace}],
        ),
        *_pod_rights(settings),
        _policy(settings),
        _object(
            _ADMISSION,
            "ValidatingAdmissionPolicyBinding",
            "",
            spec={"policyName": NAME, "validationActions": ["Deny"]},
        ),
        _daemon_set(settings),
    ]
    texts = [text.rstrip() for name, text in definition_texts() if name == "nodestates.yaml"]
    texts += [dump(manifest).decode().rstrip() for manifest in objects]
    return "".join(f"---\n{text}\n" for text in texts)


def _rules() -> list[dict[str, Any]]:
    """RBAC cannot name the node of a DaemonSet's pod; the admission policy does."""
    return [
        {"apiGroups": [GROUP], "resources": ["nodestates"], "verbs": ["get", "create"]},
        {"apiGroups": [GROUP], "resources": ["nodestates/status"], "verbs": ["patch"]},
    ]


def _pod_rights(settings: ReporterInstall) -> list[dict[str, Any]]:
    """Listing pods in the namespaces that were named, and nowhere else; RBAC knows no nodes."""
    found = []
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": settings.namespace}
    role = {"apiGroup": RBAC_GROUP, "kind": "Role", "name": NAME}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    for space in sorted(set(settings.engine_namespaces)):
        found += [
            _object(f"{RBAC_GROUP}/v1", "Role", space, rules=rules),
            _object(f"{RBAC_GROUP}/v1", "RoleBinding", space, roleRef=role, subjects=[subject]),
        ]
    return found


def _policy(settings: ReporterInstall) -> dict[str, Any]:
    """A token that is bound to a pod names its node (1.32 and later): only that one's state."""
    account = f"system:serviceaccount:{settings.namespace}:{NAME}"
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["nodestates", "nodestates/status"],
    }
    node = f"request.userInfo.extra[?'{_NODE_OF_TOKEN}'][?0].orValue('')"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": "reporter", "expression": f"request.userInfo.username == '{account}'"}
        ],
        "validations": [
            {
                "expression": f"{node} != '' && {node} == object.metadata.name",
                "message": "a reporter writes the NodeState of its own node alone",
            }
        ],
    }
    return _object(_ADMISSION, "ValidatingAdmissionPolicy", "", spec=spec)


def _daemon_set(settings: ReporterInstall) -> dict[str, Any]:
    cache = [{"name": "cache", "hostPath": {"path": settings.cache_path}}]
    pod = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "hostNetwork": settings.host_network,
        "nodeSelector": dict(settings.node_selector),
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 10,
        "securityContext": {
            "runAsNonRoot": not settings.evict,
            "runAsUser": 0 if settings.evict else USER,
            "runAsGroup": 0 if settings.evict else USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(settings)],
        **({"volumes": cache} if settings.cache_path else {}),
    }
    spec = {
        "selector": {"matchLabels": _LABELS},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }
    return _object("apps/v1", "DaemonSet", settings.namespace, spec=spec)


def _container(settings: ReporterInstall) -> dict[str, Any]:
    options = ["--node=$(NODE_NAME)", "--holder=$(POD_NAME)", "--log-format=json"]
    if settings.cache_path:
        options += ["--cache=/cache", *(["--evict"] if settings.evict else [])]
    options += [f"--engine-namespace={name}" for name in sorted(set(settings.engine_namespaces))]
    # On the host's network nobody outside the node is to reach it.
    host = "127.0.0.1" if settings.host_network else "0.0.0.0"  # noqa: S104 - the pod's own
    options.append(f"--listen={host}:{PORT}")
    probe = {"path": "/healthz", "port": PORT, **({"host": host} if settings.host_network else {})}
    mount = {"name": "cache", "mountPath": "/cache", "readOnly": not settings.evict}
    # Engines write as whatever user their image has.
    added = {"add": ["DAC_OVERRIDE"]} if settings.evict else {}
    return {
        "name": "reporter",
        "image": settings.image,
        "args": ["reporter", *options, *settings.options],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            # For --reporter-option='--engine=$(NODE_IP):8000': loopback is the pod's own.
            {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
            # The NVIDIA container runtime gives the driver's library, and takes no GPU away.
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        "livenessProbe": {"httpGet": probe, "periodSeconds": 20, "failureThreshold": 6},
        "resources": {
            "requests": {"cpu": "20m", "memory": "96Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], **added},
        },
        **({"volumeMounts": [mount]} if settings.cache_path else {}),
    }


def _namespace(settings: ReporterInstall) -> dict[str, Any]:
    level = "privileged" if settings.cache_path or settings.host_network else "restricted"
    labels = {"pod-security.kubernetes.io/enforce": level}
    found = _object("v1", "Namespace", "", name=settings.namespace)
    found["metadata"]["labels"].update(labels)
    return found


def _object(
    api_version: str, kind: str, namespace: str, *, name: str = NAME, **body: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {**_LABELS, MANAGED_BY: "stoker-install"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}

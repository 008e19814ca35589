"""The manifests that run the controller in a cluster, as one YAML stream.

In: InstallSettings from the command line. Out: text for `kubectl apply -f -`. Every name
but the namespace and the CRDs carries the fleet id, so that two fleets in one namespace
share nothing and deleting one leaves the other whole (cases.md row 155).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stoker.objects.names import MANAGED_BY
from stoker.report.definitions import definition_texts
from stoker.report.install_key import DeployKey
from stoker.report.install_rights import InstallNames, rights
from stoker.report.plain_yaml import dump

__all__ = ["InstallSettings", "Login", "install_manifests", "instance_id"]

PORT = 8080
USER = 65532
"""The user of distroless images; any number but 0 would do."""


class Login(StrEnum):
    """How the controller proves itself to the forge."""

    SSH = "ssh"
    HTTPS = "https"


@dataclass(frozen=True, slots=True)
class InstallSettings:
    """What `stoker install` was told. `fleet_id` is fixed for good at the first install;
    without one the controller derives it, and names here carry `instance_id` instead.

    `namespaces` are those that the fleet may write in; none means that it can only look.
    `deploy_key` goes into a new Secret; without one `secret` names an existing Secret
    with `ssh-privatekey` and `known_hosts`, or with `credentials`; an open repository
    needs none.
    """

    image: str
    repo: str
    fleet: str
    ref: str = "main"
    namespace: str = "stoker-system"
    fleet_id: str = ""
    namespaces: tuple[str, ...] = ()
    deploy_key: DeployKey | None = field(default=None, repr=False)
    known_hosts: str = ""
    """Host keys of the forge, as in a known_hosts file."""
    secret: str = ""
    login: Login = Login.SSH
    """How `secret` logs in."""
    poll_interval: str = "30s"
    header_secrets: tuple[str, ...] = ()
    """Secrets that metric sources are asked with (`headersFrom`): the right to read each."""


def instance_id(repo: str, fleet: str) -> str:
    """What tells installs apart that name no fleet id: 8 hex digits of repository and file."""
    return hashlib.sha256(f"{repo}\0{fleet}".encode()).hexdigest()[:8]


def install_manifests(settings: InstallSettings) -> str:
    """Everything, in the order in which it can be applied.

    The namespaces of workloads are not among it: `kubectl delete -f` of this output must
    not take them along.
    """
    names = InstallNames(
        settings.fleet_id or instance_id(settings.repo, settings.fleet), settings.namespace
    )
    objects = [_account(names)]
    objects += rights(names, settings.namespaces, settings.header_secrets)
    if settings.deploy_key is not None:
        objects.append(_secret(settings, settings.deploy_key, names))
    objects += [_deployment(settings, names), _service(names)]
    texts = [text.rstrip() for _, text in definition_texts()]
    texts.insert(0, dump(_namespace(settings)).decode().rstrip())
    texts += [dump(manifest).decode().rstrip() for manifest in objects]
    return "".join(f"---\n{text}\n" for text in texts)


def _namespace(settings: InstallSettings) -> dict[str, Any]:
    """The namespace is shared by all fleets of the cluster, so it names none."""
    labels = {
        "app.kubernetes.io/name": "stoker",
        "pod-security.kubernetes.io/enforce": "restricted",
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": settings.namespace, "labels": labels},
    }


def _account(names: InstallNames) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names.metadata(),
        "automountServiceAccountToken": False,
    }


def _secret(settings: InstallSettings, key: DeployKey, names: InstallNames) -> dict[str, Any]:
    data = {"ssh-privatekey": key.private, "ssh-publickey": key.public + "\n"}
    if settings.known_hosts:
        data["known_hosts"] = settings.known_hosts
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": names.metadata("-git"),
        "type": "Opaque",
        "stringData": data,
    }


def _deployment(settings: InstallSettings, names: InstallNames) -> dict[str, Any]:
    """One replica that is replaced, never doubled: the lease allows one at work anyway."""
    selector = names.labels
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(),
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": {**selector, MANAGED_BY: "stoker-install"}},
                "spec": {
                    "serviceAccountName": names.name,
                    "automountServiceAccountToken": True,
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "fsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_container(settings, names)],
                    "volumes": _volumes(settings, names),
                },
            },
        },
    }


def _container(settings: InstallSettings, names: InstallNames) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10}
    mounts: list[dict[str, Any]] = [
        {"name": "work", "mountPath": "/var/lib/stoker"},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the container's own, an emptyDir
    ]
    if _secret_name(settings, names):
        mounts.append({"name": "git", "mountPath": "/etc/stoker/git", "readOnly": True})
    return {
        "name": "stoker",
        "image": settings.image,
        "args": _arguments(settings, names),
        "ports": [{"name": "http", "containerPort": PORT}],
        "startupProbe": {**probe, "failureThreshold": 30},
        "livenessProbe": {**probe, "failureThreshold": 6},
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "http"},
            "periodSeconds": 10,
        },
        "resources": {
            "requests": {"cpu": "200m", "memory": "512Mi"},
            "limits": {"memory": "2Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _arguments(settings: InstallSettings, names: InstallNames) -> list[str]:
    arguments = [
        "run",
        f"--repo={settings.repo}",
        f"--ref={settings.ref}",
        f"--fleet={settings.fleet}",
        f"--state-namespace={settings.namespace}",
        f"--poll-interval={settings.poll_interval}",
        f"--listen=0.0.0.0:{PORT}",
        "--state-folder=/var/lib/stoker/state",
        "--log-format=json",
    ]
    if settings.fleet_id:
        arguments.append(f"--fleet-id={settings.fleet_id}")
    if not _secret_name(settings, names):
        return arguments
    if settings.login is Login.HTTPS and settings.deploy_key is None:
        return [*arguments, "--credentials=/etc/stoker/git/credentials"]
    arguments.append("--ssh-key=/etc/stoker/git/ssh-privatekey")
    if settings.known_hosts or settings.deploy_key is None:
        arguments.append("--known-hosts=/etc/stoker/git/known_hosts")
    return arguments


def _secret_name(settings: InstallSettings, names: InstallNames) -> str:
    return f"{names.name}-git" if settings.deploy_key is not None else settings.secret


def _volumes(settings: InstallSettings, names: InstallNames) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "work", "emptyDir": {"sizeLimit": "4Gi"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
    ]
    secret = _secret_name(settings, names)
    if secret:
        # The files belong to root and are read through the group, which ssh accepts: it
        # insists on 0600 only for keys of its own user.
        volumes.append({"name": "git", "secret": {"secretName": secret, "defaultMode": 0o440}})
    return volumes


def _service(names: InstallNames) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            **names.metadata("-metrics"),
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": str(PORT)},
        },
        "spec": {
            "selector": names.labels,
            "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
        },
    }

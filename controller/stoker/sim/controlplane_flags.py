"""Command lines and files of the control plane's components; pure text.

Flags as measured 2026-11-29 on Kubernetes 1.37.2: nothing is switched off that a test
could miss (RBAC, priority and fairness, admission), only fsync and leader election.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Ports", "audit_policy", "flags", "kubeconfig", "token_rows"]


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback ports, one each."""

    etcd: int
    etcd_peer: int
    api: int
    controllers: int
    scheduler: int


def flags(component: str, folder: Path, ports: Ports, *, audit: bool) -> tuple[str, ...]:
    """Everything that follows the component's name on its command line."""
    match component:
        case "etcd":
            return _etcd(folder, ports)
        case "kube-apiserver":
            return _apiserver(folder, ports, audit=audit)
        case "kube-controller-manager":
            return (
                *_client(folder, ports.controllers),
                f"--service-account-private-key-file={folder}/sa.key",
                "--use-service-account-credentials=false",
            )
        case "kube-scheduler":
            return _client(folder, ports.scheduler)
        case _:
            message = f"no such component: {component}"
            raise ValueError(message)


def _etcd(folder: Path, ports: Ports) -> tuple[str, ...]:
    client = f"http://127.0.0.1:{ports.etcd}"
    peer = f"http://127.0.0.1:{ports.etcd_peer}"
    return (
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    )


def _apiserver(folder: Path, ports: Ports, *, audit: bool) -> tuple[str, ...]:
    common = (
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        f"--secure-port={ports.api}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder}/certs",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/sa.key",
        f"--service-account-signing-key-file={folder}/sa.key",
        f"--token-auth-file={folder}/tokens.csv",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--endpoint-reconciler-type=none",
        # Pods may name service accounts that no test made.
        "--disable-admission-plugins=ServiceAccount",
    )
    if not audit:
        return common
    return (
        *common,
        f"--audit-policy-file={folder}/audit-policy.json",
        f"--audit-log-path={folder}/audit.log",
        "--audit-log-mode=blocking",
    )


def _client(folder: Path, port: int) -> tuple[str, ...]:
    return (
        f"--kubeconfig={folder}/kubeconfig",
        "--leader-elect=false",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder}/certs/{port}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    )


def audit_policy() -> dict[str, Any]:
    """Who asked for what, once a request, without bodies."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{"level": "Metadata"}],
    }


def kubeconfig(url: str, ca: Path, token: str, user: str) -> str:
    """A kubeconfig in JSON, which is YAML; one context called `stoker-dev`."""
    cluster = {"server": url, "certificate-authority": str(ca)}
    data = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "stoker-dev",
        "clusters": [{"name": "stoker-dev", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "stoker-dev", "context": {"cluster": "stoker-dev", "user": user}}],
    }
    return json.dumps(data, indent=2) + "\n"


def token_rows(tokens: dict[str, str]) -> str:
    """The API server's token file: `admin` is a master, all others service accounts."""
    rows = []
    for number, (name, token) in enumerate(sorted(tokens.items()), start=1):
        if name == "admin":
            rows.append(f'{token},admin,{number},"system:masters"')
            continue
        namespace, _, account = name.partition("/")
        groups = f"system:serviceaccounts,system:serviceaccounts:{namespace}"
        user = f"system:serviceaccount:{namespace}:{account}"
        rows.append(f'{token},{user},{number},"{groups}"')
    return "\n".join(rows) + "\n"

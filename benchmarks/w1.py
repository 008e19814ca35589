"""Workload W1: a repository of many small units, for comparison with Flux on the same tree.

`apps/uNNNNN` holds four objects (ServiceAccount, Service, Deployment with replicas 0,
HorizontalPodAutoscaler) and an unread kustomization.yaml; the bytes are fixed, so that the
subtree hash is the one that Flux was measured with. Beside it stand fleet.yaml and one Bundle
a unit that lists its four files. Everything is deterministic.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["FILES", "SUBTREE_OF_3_UNITS", "commit", "fleet_file", "unit_files", "write"]

SUBTREE_OF_3_UNITS = "e0837403a5468b02bfb1c6a3cade5dd7c5db73f2"
"""Tree hash of apps/ with three units: tests hold the generator to it."""

FILES = ("serviceaccount.yaml", "service.yaml", "deployment.yaml", "hpa.yaml")

_HEAD = """\
apiVersion: {api}
kind: {kind}
metadata:
  name: {name}
  namespace: {namespace}
  labels:
    app.kubernetes.io/name: {name}
"""

_SERVICE = """\
spec:
  type: ClusterIP
  selector:
    app.kubernetes.io/name: {name}
  ports:
    - name: http
      port: 8000
      protocol: TCP
      targetPort: http
    - name: metrics
      port: 8001
      protocol: TCP
      targetPort: metrics
"""

_PROBE = """\
          {kind}Probe:
            httpGet:
              path: /{path}
              port: http
            initialDelaySeconds: 5
            timeoutSeconds: 5
"""

_DEPLOYMENT = (
    """\
spec:
  replicas: 0
  minReadySeconds: 3
  progressDeadlineSeconds: 60
  revisionHistoryLimit: 2
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "8001"
    spec:
      serviceAccountName: {name}
      containers:
        - name: server
          image: registry.invalid/w1/server:1.0.0
          imagePullPolicy: IfNotPresent
          args: ["--port=8000", "--metrics-port=8001", "--level=info"]
          env:
            - name: UNIT
              value: {name}
          ports:
            - name: http
              containerPort: 8000
              protocol: TCP
            - name: metrics
              containerPort: 8001
              protocol: TCP
"""
    + _PROBE.format(kind="liveness", path="healthz")
    + _PROBE.format(kind="readiness", path="readyz")
    + """\
          resources:
            requests:
              cpu: {cpu}
              memory: 16Mi
            limits:
              cpu: 500m
              memory: 128Mi
"""
)

_HPA = """\
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {name}
  minReplicas: 2
  maxReplicas: 4
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: 99
"""

_KUSTOMIZATION = (
    "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
    + "".join(f"  - {name}\n" for name in FILES)
)

_FLEET = """\
apiVersion: stoker.dev/v1alpha1
kind: Fleet
metadata: {{name: w1}}
spec:
  cluster: {{uid: {uid}}}
  mode: Correct
  include: [/bundles/*.yaml]
  defaults: {{namespace: {namespace}}}
"""

_BUNDLE = """\
apiVersion: stoker.dev/v1alpha1
kind: Bundle
metadata: {{name: {name}}}
spec:
  render:
    manifests:
{paths}"""


def _name(number: int) -> str:
    return f"u{number:05d}"


def unit_files(number: int, *, namespace: str = "w1", cpu: str = "1m") -> dict[str, str]:
    """The files of one unit under apps/: path from the root -> text."""
    values = {"name": _name(number), "namespace": namespace, "cpu": cpu}
    kinds = {
        "serviceaccount.yaml": ("v1", "ServiceAccount", ""),
        "service.yaml": ("v1", "Service", _SERVICE),
        "deployment.yaml": ("apps/v1", "Deployment", _DEPLOYMENT),
        "hpa.yaml": ("autoscaling/v2", "HorizontalPodAutoscaler", _HPA),
    }
    folder = f"apps/{values['name']}"
    files = {
        f"{folder}/{file}": _HEAD.format(api=api, kind=kind, **values) + body.format(**values)
        for file, (api, kind, body) in kinds.items()
    }
    files[f"{folder}/kustomization.yaml"] = _KUSTOMIZATION
    return files


def fleet_file(uid: str, namespace: str) -> str:
    """The Fleet of every benchmark: it takes all Bundles below bundles/."""
    return _FLEET.format(uid=uid, namespace=namespace)


def bundle(name: str, paths: Iterable[str]) -> str:
    """A Bundle of the manifests at these paths from the repository root."""
    return _BUNDLE.format(name=name, paths="".join(f"    - /{path}\n" for path in paths))


def _all_files(units: int, uid: str, namespace: str) -> Iterator[tuple[str, str]]:
    yield "fleet.yaml", fleet_file(uid, namespace)
    for number in range(1, units + 1):
        name = _name(number)
        yield f"bundles/{name}.yaml", bundle(name, (f"apps/{name}/{file}" for file in FILES))
        yield from unit_files(number, namespace=namespace).items()


def write(folder: Path, *, units: int, cluster_uid: str, namespace: str = "w1") -> None:
    """Write the whole repository into a work tree."""
    for path, text in _all_files(units, cluster_uid, namespace):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def commit(folder: Path, message: str, *, remote: Path | None = None) -> str:
    """Commit everything in the work tree (made on demand), push it, give the commit id."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", "bench"), ("EMAIL", "bench@bench.invalid"))
        },
    }

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            check=True,
            env=environment,
            capture_output=True,
            text=True,
        ).stdout.strip()

    if not (folder / ".git").exists():
        git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", message)
    if remote is not None:
        git("push", "-q", str(remote), "HEAD:refs/heads/main")
    return git("rev-parse", "HEAD")

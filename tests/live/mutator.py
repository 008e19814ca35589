"""A mutating webhook on loopback: what service meshes, schedulers and policies do to objects.

`Mutator` is an HTTPS server with a certificate of its own, `configuration` what makes the API
server call it. It adds a label and an annotation that are always the same, an annotation that
never is, and to pods and pod templates a sidecar and two tolerations, one of them random.
"""

from __future__ import annotations

import base64
import itertools
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

RULES = {
    "": [
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "secrets",
        "serviceaccounts",
        "services",
        "replicationcontrollers",
    ],
    "apps": ["daemonsets", "deployments", "replicasets", "statefulsets"],
    "batch": ["cronjobs", "jobs"],
    "networking.k8s.io": ["ingresses", "networkpolicies"],
    "policy": ["poddisruptionbudgets"],
    "varied.example.org": ["*"],
}
OPT_IN = "mutated"
"""Only namespaces with this label are mutated: the cluster is shared with other tests."""


class Mutator:
    """Answers admission reviews until it is left. `calls` counts them."""

    def __init__(self, folder: Path) -> None:
        self._certificate = folder / "webhook.crt"
        key = folder / "webhook.key"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
                *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=127.0.0.1"),
                *("-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", str(key), "-out", str(self._certificate)),
            ],
            check=True,
            capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate, key)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def calls(self) -> int:
        """Admission reviews so far."""
        return self._server.calls

    def configuration(self, name: str) -> dict[str, Any]:
        """A MutatingWebhookConfiguration that fails closed, for marked namespaces."""
        bundle = base64.b64encode(self._certificate.read_bytes()).decode()
        rules = [
            {
                "apiGroups": [group],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": resources,
                "scope": "Namespaced",
            }
            for group, resources in RULES.items()
        ]
        hook = {
            "name": "mutator.example.org",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self._server.server_port}/",
                "caBundle": bundle,
            },
            "rules": rules,
            "namespaceSelector": {"matchLabels": {OPT_IN: "true"}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "reinvocationPolicy": "IfNeeded",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 20,
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [hook],
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], answerer: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, answerer)
        self.calls = 0
        self.numbers = itertools.count(1)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        self.server.calls += 1
        found = list(_mutations(request["object"], next(self.server.numbers)))
        response = {
            "uid": request["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(found).encode()).decode(),
        }
        answer = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        del format, args


def _mutations(body: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """One JSON patch: the same for every object, but for the number.

    What a controller makes is left alone: Deployments copy their annotations to their
    ReplicaSets, and two that never agree would be written for ever.
    """
    metadata = body.get("metadata") or {}
    if metadata.get("ownerReferences"):
        return
    labels = {**(metadata.get("labels") or {}), "mutator.example.org/team": "a"}
    notes = {
        **(metadata.get("annotations") or {}),
        "mutator.example.org/constant": "yes",
        "mutator.example.org/random": str(number),
    }
    yield {"op": "add", "path": "/metadata/labels", "value": labels}
    yield {"op": "add", "path": "/metadata/annotations", "value": notes}
    for path, pod in _pods(body):
        if all(c["name"] != "sidecar" for c in pod.get("containers") or ()):
            sidecar = {"name": "sidecar", "image": "registry.invalid/sidecar:1"}
            yield {"op": "add", "path": f"{path}/containers/-", "value": sidecar}
        there = pod.get("tolerations") or []
        if all("mutator" not in toleration.get("key", "") for toleration in there):
            added = [
                {"key": "mutator.example.org/constant", "operator": "Exists"},
                {"key": "mutator.example.org/random", "operator": "Equal", "value": str(number)},
            ]
            yield {"op": "add", "path": f"{path}/tolerations", "value": [*there, *added]}


def _pods(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Pod specs that may still be changed, with their JSON pointers."""
    spec = body.get("spec") or {}
    match body["kind"]:
        case "Pod" if not spec.get("nodeName") and "resourceVersion" not in body["metadata"]:
            yield "/spec", spec
        case "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet":
            yield "/spec/template/spec", spec["template"]["spec"]
        case "CronJob":
            inner = spec["jobTemplate"]["spec"]["template"]["spec"]
            yield "/spec/jobTemplate/spec/template/spec", inner
        case _:
            return

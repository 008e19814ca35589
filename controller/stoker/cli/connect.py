"""From flags to a connected API client; the only place where commands choose a transport."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from stoker._version import __version__
from stoker.errors import Stalled
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request, Response, Transport

__all__ = ["connect"]

SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def connect(
    kubeconfig: Path | None = None, context: str = "", *, timeout_seconds: float = 30.0
) -> Client:
    """A client by --kubeconfig, KUBECONFIG, the pod's service account, or ~/.kube/config.

    Raises Stalled with what is missing; nothing is asked of the server yet.
    """
    named = kubeconfig is not None or bool(os.environ.get("KUBECONFIG"))
    if not named and not context and SERVICE_ACCOUNT_TOKEN.exists():
        transport: Transport = HttpsTransport.in_cluster(environment=os.environ)
    else:
        if kubeconfig is not None and not kubeconfig.exists():
            raise Stalled(f"{kubeconfig} does not exist", code="kubeconfig-missing")
        transport = HttpsTransport.from_kubeconfig(
            kubeconfig, context or None, environment=os.environ
        )
    return Client(_Bounded(transport, timeout_seconds), user_agent=f"stoker/{__version__}")


class _Bounded:
    """A transport whose requests take at most so many seconds; watches have their own limit."""

    def __init__(self, inner: Transport, seconds: float) -> None:
        self.url = inner.url
        self._inner = inner
        self._seconds = seconds

    def send(self, request: Request) -> Response:
        """Send with the bound."""
        return self._inner.send(replace(request, timeout_seconds=self._seconds))

    def stream(self, request: Request) -> Iterator[bytes]:
        """Pass on."""
        return self._inner.stream(request)

    def close(self) -> None:
        """Pass on."""
        self._inner.close()

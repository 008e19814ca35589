"""From flags to a connected API client; the only place where commands choose a transport."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from stoker._version import __version__
from stoker.credential_file import read_credential
from stoker.errors import Stalled
from stoker.kube.caller import account_of_token
from stoker.kube.client import Client
from stoker.kube.gate import Gated, WriteGate
from stoker.kube.https import HttpsTransport
from stoker.kube.kubeconfig import access_from_kubeconfig
from stoker.kube.transport import Request, Response, Transport

__all__ = ["ALLOW_EXEC", "connect", "context_name", "expected_caller"]

SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
ALLOW_EXEC = "STOKER_ALLOW_EXEC"
"""Environment variable: `1` lets the kubeconfig's user run its program for credentials."""


def connect(
    kubeconfig: Path | None = None,
    context: str = "",
    *,
    timeout_seconds: float = 30.0,
    as_user: str = "",
    gate: WriteGate | None = None,
) -> Client:
    """A client by --kubeconfig, KUBECONFIG, the pod's service account, or ~/.kube/config.

    `as_user` is impersonated, as kubectl's --as does. Writes ask the `gate`. Raises Stalled
    with what is missing; nothing is asked of the server yet.
    """
    if _in_pod(kubeconfig, context):
        transport = _ActingAs.in_cluster(environment=os.environ)
    else:
        if kubeconfig is not None and not kubeconfig.exists():
            raise Stalled(f"{kubeconfig} does not exist", code="kubeconfig-missing")
        transport = _from_kubeconfig(kubeconfig, context)
    assert isinstance(transport, _ActingAs)
    transport.as_user = as_user
    inner: Transport = transport if gate is None else Gated(transport, gate)
    return Client(
        _Bounded(inner, timeout_seconds),
        user_agent=f"stoker/{__version__}",
        warnings=transport.warnings,
    )


def expected_caller(kubeconfig: Path | None = None, context: str = "", as_user: str = "") -> str:
    """Whom the API server should take us for; empty where nothing says so (certificates, exec)."""
    if as_user:
        return as_user
    token = ""
    try:
        if _in_pod(kubeconfig, context):
            token = _token_in(SERVICE_ACCOUNT_TOKEN)
        else:
            access = access_from_kubeconfig(
                kubeconfig, context or None, allow_exec=True, environment=os.environ
            )
            token = _token_in(Path(access.token_file)) if access.token_file else access.token
    except (ValueError, Stalled):
        return ""  # connecting names what is wrong with it
    return account_of_token(token.strip())


def _token_in(path: Path) -> str:
    return read_credential(path, code="token-unreadable").decode("ascii")


def context_name(kubeconfig: Path | None = None, context: str = "") -> str:
    """The context that `connect` uses; `in-cluster` in a pod, empty where none can be read."""
    if _in_pod(kubeconfig, context):
        return "in-cluster"
    if context:
        return context
    try:
        found = access_from_kubeconfig(kubeconfig, None, allow_exec=True, environment=os.environ)
    except Stalled:
        return ""
    return found.context


def _in_pod(kubeconfig: Path | None, context: str) -> bool:
    named = kubeconfig is not None or bool(os.environ.get("KUBECONFIG")) or bool(context)
    return not named and SERVICE_ACCOUNT_TOKEN.exists()


def _from_kubeconfig(kubeconfig: Path | None, context: str) -> HttpsTransport:
    allowed = os.environ.get(ALLOW_EXEC) == "1"
    try:
        return _ActingAs.from_kubeconfig(
            kubeconfig, context or None, allow_exec=allowed, environment=os.environ
        )
    except Stalled as error:
        if error.code == "kubeconfig-exec-refused":
            error.hint = f"{ALLOW_EXEC}=1 allows it; or use a token or a client certificate"
        raise


class _ActingAs(HttpsTransport):
    """HTTPS that sends Impersonate-User when it acts for somebody else."""

    as_user: str = ""

    def _headers(self, request: Request) -> dict[str, str]:
        headers = super()._headers(request)
        if self.as_user:
            headers["Impersonate-User"] = self.as_user
        return headers


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

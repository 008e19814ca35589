"""Connections to the API server: trust, client certificate, proxy, keep-alive pools.

An `Access` and a certificate pair come in, urllib3 pools go out; called by `kube.https`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import InsecureRequestWarning

from stoker.errors import Stalled
from stoker.kube.kubeconfig import Access

__all__ = ["pool", "tls_context", "warnings_of"]


def pool(
    access: Access,
    context: ssl.SSLContext | None,
    *,
    size: int,
    block: bool,
    before_bytes: Callable[[], None] = lambda: None,
) -> urllib3.PoolManager:
    """Connections that are kept alive, at most `size` of them when `block`.

    `before_bytes` is called on the sender's thread each time before bytes of a request are
    given to the socket, when connecting is over; what it raises breaks the connection off.
    """
    options: dict[str, object] = {"num_pools": 2, "maxsize": size, "block": block}
    if context is not None:
        options["ssl_context"] = context
        if access.tls_server_name:
            options["server_hostname"] = access.tls_server_name
    if access.proxy_url:
        made: urllib3.PoolManager = _proxy(access.proxy_url, options)
    else:
        made = urllib3.PoolManager(**options)  # type: ignore[arg-type]
    made.pool_classes_by_scheme = _asking(before_bytes)
    return made


def _asking(before_bytes: Callable[[], None]) -> dict[str, Any]:
    """Pool classes whose connections ask before they give bytes to their socket."""

    class Plain(HTTPConnection):
        def send(self, data: Any) -> None:
            before_bytes()
            super().send(data)

    class Secure(HTTPSConnection):
        def send(self, data: Any) -> None:
            before_bytes()
            super().send(data)

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _proxy(url: str, options: dict[str, object]) -> urllib3.PoolManager:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        raise Stalled("only http(s) proxies are supported", code="kubeconfig-unsupported")
    if parts.username:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        options["proxy_headers"] = urllib3.make_headers(proxy_basic_auth=user)
    return urllib3.ProxyManager(url, **options)  # type: ignore[arg-type]


def tls_context(access: Access, pair: tuple[bytes, bytes]) -> ssl.SSLContext | None:
    """Trust and client certificate; None without TLS. Raises Stalled on unusable PEM."""
    if not access.server.startswith("https:"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if access.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            urllib3.disable_warnings(InsecureRequestWarning)
        elif access.ca_pem:
            context.load_verify_locations(cadata=access.ca_pem.decode("ascii"))
        else:
            context.load_default_certs()
        if pair[0]:
            _load_pair(context, *pair)
    except (ssl.SSLError, ValueError) as error:
        raise Stalled(
            "a certificate or key of the kubeconfig is not usable PEM", code="kubeconfig-invalid"
        ) from error
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """The ssl module reads files only: give it one in memory, so that no key reaches a disk."""
    descriptor = os.memfd_create("client-certificate")
    try:
        os.write(descriptor, certificate.rstrip() + b"\n" + key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def warnings_of(access: Access) -> tuple[str, ...]:
    """Sentences for a person on what makes this access less than safe."""
    found = []
    if access.insecure:
        found.append("TLS is not verified (insecure-skip-tls-verify): anyone between may act as us")
    if access.server.startswith("http:"):
        found.append("the API server is spoken to without TLS")
    return tuple(found)

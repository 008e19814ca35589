"""Connections to the API server: trust, client certificate, proxy, keep-alive pools.

An `Access` and a certificate pair come in, urllib3 pools go out; called by `kube.https`.
"""

from __future__ import annotations

import os
import ssl
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.exceptions import InsecureRequestWarning

from stoker.errors import Stalled
from stoker.kube.kubeconfig import Access

__all__ = ["pool", "tls_context"]


def pool(
    access: Access, context: ssl.SSLContext | None, *, size: int, block: bool
) -> urllib3.PoolManager:
    """Connections that are kept alive, at most `size` of them when `block`."""
    options: dict[str, object] = {"num_pools": 2, "maxsize": size, "block": block}
    if context is not None:
        options["ssl_context"] = context
        if access.tls_server_name:
            options["server_hostname"] = access.tls_server_name
    if access.proxy_url:
        return _proxy(access.proxy_url, options)
    return urllib3.PoolManager(**options)  # type: ignore[arg-type]


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

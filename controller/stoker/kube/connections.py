"""The connections in use, made anew when a certificate file has changed.

An `Access` comes in; pools for requests and for watches go out, with the trust and the client
certificate that the files hold now. Asked by `kube.https` before each request. What runs on
an older connection ends there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import urllib3

from stoker.credential_file import read_credential
from stoker.errors import Stalled
from stoker.kube.identity import Identity
from stoker.kube.kubeconfig import Access
from stoker.kube.tls import pool, tls_context
from stoker.log import get_log
from stoker.model.ports import Clock

__all__ = ["CERTIFICATE_SECONDS", "Connections"]

CERTIFICATE_SECONDS = 60.0
"""How long what the files held is believed, as with token files; the kubelet and cert-manager
put a new certificate down hours before the old one ends."""

_log = get_log("kube")


class Connections:
    """Safe to use from many threads. `before_bytes` is asked before each request's bytes."""

    def __init__(
        self,
        access: Access,
        identity: Identity,
        clock: Clock,
        *,
        size: int,
        before_bytes: Callable[[], None],
    ) -> None:
        self._access = access
        self._identity = identity
        self._clock = clock
        self._size = size
        self._before_bytes = before_bytes
        self._lock = threading.Lock()
        self._read_at = clock.monotonic()
        self._requests, self._streams = self._pools(access)

    def requests(self) -> urllib3.PoolManager:
        """Kept-alive connections for requests, at most `size` of them."""
        self.renew(at_once=False)
        return self._requests

    def streams(self) -> urllib3.PoolManager:
        """Connections for watches."""
        self.renew(at_once=False)
        return self._streams

    def renew(self, *, at_once: bool = True) -> bool:
        """Read the files, every minute or at once; True when later connections are others.

        Files that cannot be read, or of which one is newer than the other, leave what is in
        use: it may serve for a while.
        """
        with self._lock:
            now = self._clock.monotonic()
            if not at_once and now < self._read_at + CERTIFICATE_SECONDS:
                return False
            self._read_at = now
            try:
                access = _as_the_files_are(self._access)
                if access == self._access:
                    return False
                self._requests, self._streams = self._pools(access)
            except Stalled as error:
                _log.warning("certificate.unread", code=error.code, message=error.message)
                return False
            self._access = access
        _log.info("certificate.renewed")
        return True

    def close(self) -> None:
        """Close what is idle."""
        self._requests.clear()
        self._streams.clear()

    def _pools(self, access: Access) -> tuple[urllib3.PoolManager, urllib3.PoolManager]:
        """Old pools are only let go: who waits in one for its turn must not be broken off."""
        pair = (access.client_certificate, access.client_key)
        context = tls_context(access, self._identity.certificate() if access.login else pair)
        return (
            pool(access, context, size=self._size, block=True, before_bytes=self._before_bytes),
            pool(access, context, size=1, block=False),
        )


def _as_the_files_are(access: Access) -> Access:
    """The access with what its certificate files hold now; raises Stalled."""
    return replace(
        access,
        ca_pem=_content(access.ca_file, access.ca_pem),
        client_certificate=_content(access.certificate_file, access.client_certificate),
        client_key=_content(access.key_file, access.client_key),
    )


def _content(file: str, otherwise: bytes) -> bytes:
    return read_credential(Path(file), code="kubeconfig-not-found") if file else otherwise

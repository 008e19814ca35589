"""Credentials that a program hands out (kubeconfig users with exec or auth-provider).

An `Access` that needs a login comes in; a bearer token and perhaps a client certificate
go out. Only reached when the caller allowed it: the `kubernetes` package runs the program
and is imported here alone, because the import takes 0.4 s (measured 2026-11).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stoker.errors import Stalled
from stoker.kube.kubeconfig import Access

__all__ = ["Login"]


class Login:
    """What the program of one kubeconfig context gives. Raises Stalled (login-failed)."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._configuration: Any = None

    def bearer(self, *, again: bool = False) -> str:
        """The current token, without `Bearer`; `again` after a 401 runs the program anew."""
        configuration = self._loaded(again=again)
        value = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return str(value or "").removeprefix("Bearer ").strip()

    def certificate(self) -> tuple[bytes, bytes]:
        """Client certificate and key as PEM, both empty when the program gives none."""
        configuration = self._loaded(again=False)
        if not configuration.cert_file or not configuration.key_file:
            return b"", b""
        return Path(configuration.cert_file).read_bytes(), Path(configuration.key_file).read_bytes()

    def _loaded(self, *, again: bool) -> Any:
        if self._configuration is None or again:
            from kubernetes import client, config

            configuration = client.Configuration()
            try:
                config.load_kube_config(
                    config_file=os.pathsep.join(self._access.files),
                    context=self._access.context,
                    client_configuration=configuration,
                    persist_config=False,
                )
            except (config.ConfigException, OSError, ValueError, TypeError) as error:
                # The chained error may quote what the program printed: it is left out.
                raise self._failed(type(error).__name__) from None
            if not configuration.api_key and not configuration.cert_file:
                # The package only logs a failing program and would go on as nobody.
                raise self._failed("it gave no credentials")
            self._configuration = configuration
        return self._configuration

    def _failed(self, why: str) -> Stalled:
        return Stalled(
            f"the login program of kubeconfig context {self._access.context!r} failed: {why}",
            code="login-failed",
            hint="run kubectl get --raw /readyz with the same context",
        )

"""As whom requests are sent: the bearer token and the client certificate in use.

Made by `kube.https` from an `Access`; asked before each request, renewed after a 401.
"""

from __future__ import annotations

from pathlib import Path

from stoker.errors import Stalled
from stoker.kube.kubeconfig import Access
from stoker.kube.login import Login
from stoker.log import hide_value

__all__ = ["Identity"]


class Identity:
    """The bearer token in use; renewed at most once per 401 answer."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._login = Login(access) if access.login else None
        self._token: str | None = None if access.token_file or access.login else access.token
        hide_value(access.token)

    def certificate(self) -> tuple[bytes, bytes]:
        """Client certificate and key as PEM, both empty without one."""
        if self._login is not None:
            return self._login.certificate()
        return self._access.client_certificate, self._access.client_key

    def token(self) -> str:
        """The bearer token, empty without one; raises Stalled (token-unreadable)."""
        if self._token is None:
            self._token = self._read(again=False)
        return self._token

    def renew(self) -> bool:
        """Whether there is another token to try than the one just refused."""
        before = self._token
        if self._login is None and not self._access.token_file:
            return False
        self._token = self._read(again=True)
        return self._token != before

    def _read(self, *, again: bool) -> str:
        if self._login is not None:
            token = self._login.bearer(again=again)
        else:
            try:
                token = Path(self._access.token_file).read_text("ascii").strip()
            except (OSError, ValueError) as error:
                raise Stalled(
                    f"the token file {self._access.token_file} cannot be read",
                    code="token-unreadable",
                ) from error
        hide_value(token)
        return token

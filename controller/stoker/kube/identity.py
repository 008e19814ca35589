"""As whom requests are sent: the bearer token and the client certificate in use.

Made by `kube.https` from an `Access`; asked before each request. A token file is read again
every minute, since the kubelet rotates it, and after a 401. Never anonymous by accident.
"""

from __future__ import annotations

from pathlib import Path

from stoker.credential_file import read_credential
from stoker.errors import Stalled
from stoker.kube.kubeconfig import Access
from stoker.kube.login import Login
from stoker.log import get_log, hide_value
from stoker.model.ports import Clock

__all__ = ["TOKEN_FILE_SECONDS", "Identity"]

TOKEN_FILE_SECONDS = 60.0
"""How long a token file's content is believed, as in client-go; the kubelet rotates it at 80 %
of its life, which is at least ten minutes."""

_log = get_log("kube")


class Identity:
    """The bearer token in use; renewed every minute and at most once per 401 answer."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._read_at = 0.0
        self._login = Login(access) if access.login else None
        self._token: str | None = None if access.token_file or access.login else access.token
        hide_value(access.token)

    def certificate(self) -> tuple[bytes, bytes]:
        """Client certificate and key as PEM, both empty without one."""
        if self._login is not None:
            return self._login.certificate()
        return self._access.client_certificate, self._access.client_key

    def token(self) -> str:
        """The bearer token, empty without one; raises Stalled (token-unreadable).

        A file that cannot be read any more leaves the token in use: it may serve for a while.
        """
        if self._token is None:
            self._token = self._read(again=False)
        elif self._access.token_file and self._login is None and self._is_old():
            try:
                self._token = self._read(again=True)
            except Stalled as error:
                self._read_at = self._clock.monotonic()
                _log.warning("token.unread", code=error.code, message=error.message)
        return self._token

    def _is_old(self) -> bool:
        return self._clock.monotonic() >= self._read_at + TOKEN_FILE_SECONDS

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
            content = read_credential(Path(self._access.token_file), code="token-unreadable")
            try:
                token = content.decode("ascii").strip()
            except UnicodeDecodeError:
                raise Stalled(
                    f"the token file {self._access.token_file} holds no token",
                    code="token-unreadable",
                ) from None
            self._read_at = self._clock.monotonic()
            if not token:
                raise Stalled(
                    f"the token file {self._access.token_file} is empty: requests without it "
                    "would be anonymous",
                    code="token-unreadable",
                )
        hide_value(token)
        return token

"""API answers as errors of the tree, by HTTP meaning.

NotFound          404 of an object (or its namespace)
KindNotFound      404 of a kind: no such group, version or resource
AlreadyExists     409 on create
Conflict          409: field conflict (has causes), stale resourceVersion, uid
Invalid           422, 400, and 500 "failed to create typed patch object" (bad input)
Forbidden         401, 403
Gone              410: the resourceVersion is too old, list again
TooManyRequests   429, with the server's delay
ServerFailure     other 5xx
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from stoker.errors import Refused, Retryable, StokerError, Waiting

__all__ = [
    "AlreadyExists",
    "ApiStatus",
    "Cause",
    "Conflict",
    "Forbidden",
    "Gone",
    "Hide",
    "Invalid",
    "KindNotFound",
    "NotFound",
    "ServerFailure",
    "TooManyRequests",
    "api_error",
]


Hide: TypeAlias = Callable[[str], str]
"""A text of the server's to what may be told of it: refusals quote the values they refuse."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of a Status' details.causes."""

    reason: str
    message: str
    field: str


@dataclass(frozen=True, slots=True)
class ApiStatus:
    """What an error answer said: HTTP code, reason, whole message (up to 4 KiB), causes."""

    code: int
    reason: str
    message: str
    causes: tuple[Cause, ...] = ()


class _ApiMixin:
    status: ApiStatus


class NotFound(Waiting, _ApiMixin):
    """The object or its namespace is not there."""

    code = "not-found"


class KindNotFound(Waiting, _ApiMixin):
    """The API server does not serve this kind (yet)."""

    code = "kind-not-found"


class AlreadyExists(Refused, _ApiMixin):
    """The name is taken."""

    code = "already-exists"


class Conflict(Retryable, _ApiMixin):
    """Three things in one reason; `is_field_conflict` tells the first from the others."""

    code = "conflict"

    @property
    def is_field_conflict(self) -> bool:
        """Whether other managers own fields that were sent."""
        return any(cause.reason == "FieldManagerConflict" for cause in self.status.causes)


class Invalid(Refused, _ApiMixin):
    """The object itself is wrong; sending it again changes nothing."""

    code = "invalid-object"


class Forbidden(Refused, _ApiMixin):
    """RBAC, admission or authentication said no."""

    code = "forbidden"

    @property
    def is_terminating_namespace(self) -> bool:
        """Whether the namespace is on its way out."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.status.causes)


class Gone(Retryable, _ApiMixin):
    """Watch or list from a version that is compacted: list again."""

    code = "resource-version-gone"


class TooManyRequests(Retryable, _ApiMixin):
    """The server asks to wait `after_ms`."""

    code = "too-many-requests"


class ServerFailure(Retryable, _ApiMixin):
    """A 5xx that may pass."""

    code = "server-failure"


MAX_STATUS_MESSAGE = 4096
_TYPED_PATCH = ("failed to create typed patch object", "failed to convert new object")


def _causes(body: dict[str, Any], hide: Hide) -> tuple[Cause, ...]:
    details = body.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return tuple(
        Cause(str(c.get("reason", "")), hide(str(c.get("message", ""))), str(c.get("field", "")))
        for c in causes or ()
        if isinstance(c, dict)
    )


def api_error(
    code: int,
    body: object,
    *,
    what: str,
    retry_after_seconds: float | None = None,
    hide: Hide = str,
) -> StokerError:
    """Turn an error answer into the tree.

    `body` is the parsed Status or the plain text; `what` names request and object, and
    stands before the server's message. `hide` takes secrets out of the server's texts
    before they are cut, for half a secret is found by nobody later.
    """
    status_body: dict[str, Any] = body if isinstance(body, dict) else {}
    message = str(status_body.get("message") or (body if isinstance(body, str) else ""))
    message = hide(message).strip()[:MAX_STATUS_MESSAGE]
    reason = str(status_body.get("reason") or "")
    status = ApiStatus(code, reason, message, _causes(status_body, hide))
    error = _pick(status, status_body, f"{what}: {message or f'HTTP {code}'}", retry_after_seconds)
    error.status = status  # type: ignore[attr-defined]
    return error


def _pick(
    status: ApiStatus, body: dict[str, Any], text: str, retry_after_seconds: float | None
) -> StokerError:
    after_ms = None if retry_after_seconds is None else int(retry_after_seconds * 1000)
    match status.code:
        case 401 | 403:
            return Forbidden(text)
        case 404:
            if not body or status.message == "the server could not find the requested resource":
                return KindNotFound(text)
            return NotFound(text)
        case 409:
            return AlreadyExists(text) if status.reason == "AlreadyExists" else Conflict(text)
        case 410:
            return Gone(text)
        case 429:
            return TooManyRequests(text, after_ms=after_ms)
        case 500 if status.message.startswith(_TYPED_PATCH):
            return Invalid(text)
        case code if code >= 500:
            return ServerFailure(text, after_ms=after_ms)
        case _:
            return Invalid(text)

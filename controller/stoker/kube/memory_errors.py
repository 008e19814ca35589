"""Error answers of the in-memory API server, in the real one's words.

In: what went wrong. Out: an Answer that the router turns into a Status response. Raised and
caught only inside the memory modules; clients see HTTP.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stoker.kube.memory_kinds import Resource

__all__ = [
    "FieldError",
    "StatusAnswer",
    "bad_request",
    "conflict",
    "forbidden",
    "forbidden_field",
    "internal",
    "invalid",
    "invalid_value",
    "not_found",
    "required",
    "too_long",
    "unsupported",
]


class StatusAnswer(Exception):  # noqa: N818 - an answer, not an error of ours
    """A Status to answer with. An empty `reason` leaves the key out, as the server does."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """The Status document."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return {**status, "code": self.code}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with a field: the cause's reason, path and text."""

    reason: str
    path: str
    text: str


def invalid_value(path: str, value: Any, text: str) -> FieldError:
    """`path: Invalid value: …: text`; strings are quoted, other values printed as they are."""
    shown = f'"{value}"' if isinstance(value, str) else _shown(value)
    return FieldError("FieldValueInvalid", path, f"Invalid value: {shown}: {text}")


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))
    return "null" if value is None else str(value).lower() if value is True else str(value)


def required(path: str, text: str = "") -> FieldError:
    """`path: Required value: text`."""
    return FieldError("FieldValueRequired", path, "Required value" + (f": {text}" if text else ""))


def too_long(path: str, text: str) -> FieldError:
    """`path: Too long: text`."""
    return FieldError("FieldValueTooLong", path, f"Too long: {text}")


def forbidden_field(path: str, text: str) -> FieldError:
    """`path: Forbidden: text`."""
    return FieldError("FieldValueForbidden", path, f"Forbidden: {text}")


def unsupported(path: str, value: Any, allowed: tuple[str, ...]) -> FieldError:
    """`path: Unsupported value: …: supported values: …`."""
    values = ", ".join(f'"{item}"' for item in allowed)
    text = f'Unsupported value: "{value}": supported values: {values}'
    return FieldError("FieldValueNotSupported", path, text)


def invalid(kind: str, group: str, name: str, errors: list[FieldError]) -> StatusAnswer:
    """422 with one cause a field; `kind` without group."""
    texts = [f"{error.path}: {error.text}" for error in errors]
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(dict.fromkeys(texts)) + "]"
    qualified = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = [
        {"reason": error.reason, "message": error.text, "field": error.path} for error in errors
    ]
    return StatusAnswer(422, "Invalid", f'{qualified} "{name}" is invalid: {joined}', details)


def _details(resource: Resource, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    return {**details, "kind": resource.plural}


def not_found(resource: Resource, name: str) -> StatusAnswer:
    """404 of an object."""
    text = f'{resource.qualified} "{name}" not found'
    return StatusAnswer(404, "NotFound", text, _details(resource, name))


def conflict(resource: Resource, name: str, text: str, qualified: str = "") -> StatusAnswer:
    """409 of a write that lost a race; `qualified` replaces the resource's own name."""
    what = qualified or resource.qualified
    message = f'Operation cannot be fulfilled on {what} "{name}": {text}'
    return StatusAnswer(409, "Conflict", message, _details(resource, name))


def forbidden(
    resource: Resource, name: str, text: str, causes: list[dict[str, str]] | None = None
) -> StatusAnswer:
    """403 of an object."""
    details = _details(resource, name)
    if causes:
        details["causes"] = causes
    message = f'{resource.qualified} "{name}" is forbidden: {text}'
    return StatusAnswer(403, "Forbidden", message, details)


def bad_request(text: str) -> StatusAnswer:
    """400."""
    return StatusAnswer(400, "BadRequest", text)


def internal(text: str) -> StatusAnswer:
    """500 without a reason: how the server answers a plain error."""
    return StatusAnswer(500, "", text)

"""One request to the in-memory API server, taken apart.

In: a Request. Out: a Call with its options checked. Used by the other memory modules.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from stoker.kube.memory_errors import (
    FieldError,
    StatusAnswer,
    bad_request,
    forbidden_field,
    invalid,
    required,
    too_long,
    unsupported,
)
from stoker.kube.memory_kinds import Resource
from stoker.kube.transport import Request

__all__ = ["APPLY_PATCH", "Call", "checked_call"]

APPLY_PATCH: Final = "application/apply-patch+yaml"
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    APPLY_PATCH,
)
_BODIES: Final = ("application/json", "application/yaml", "")
MAX_MANAGER_BYTES: Final = 128


@dataclass(frozen=True, slots=True)
class Call:
    """A write or read of one kind. `manager` is the field manager the server records."""

    request: Request
    resource: Resource
    namespace: str
    name: str
    subresource: str
    query: dict[str, str] = field(hash=False)
    content_type: str = ""
    manager: str = ""
    force: bool = False
    dry_run: bool = False
    strict: bool = False

    def json_body(self) -> dict[str, Any]:
        """The body as a JSON object; 400 where it isn't one."""
        body = self.request.body
        try:
            parsed = json.loads(body or b"{}")
        except ValueError as error:
            text = body.decode("utf-8", "replace")
            raise bad_request(
                f"the object provided is unrecognized (must be of type {self.resource.kind}):"
                f" couldn't get version/kind; json parse error: unexpected end of JSON input"
                f" ({text})"
            ) from error
        if not isinstance(parsed, dict):
            raise bad_request(f"{self.resource.kind} cannot be read from the body")
        return parsed


def checked_call(
    request: Request, resource: Resource, namespace: str, name: str, subresource: str
) -> Call:
    """Check content type and options the way the server does before it looks at the body."""
    query = dict(request.query)
    content_type = request.content_type.partition(";")[0].strip()
    if request.method == "PATCH":
        allowed = [p for p in _PATCHES if resource.crd is None or "strategic" not in p]
        if content_type not in allowed:
            raise StatusAnswer(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        _check_patch_options(query, applied=content_type == APPLY_PATCH)
    elif request.method in {"POST", "PUT"} and content_type not in _BODIES:
        raise StatusAnswer(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include:"
            " application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )
    dry_run = query.get("dryRun", "")
    if dry_run not in {"", "All"}:
        error = unsupported("dryRun", dry_run, ("All",))
        raise invalid("PatchOptions", "meta.k8s.io", "", [error])
    return Call(
        request=request,
        resource=resource,
        namespace=namespace,
        name=name,
        subresource=subresource,
        query=query,
        content_type=content_type,
        manager=query.get("fieldManager") or _agent(request.user_agent),
        force=query.get("force") == "true",
        dry_run=dry_run == "All",
        strict=query.get("fieldValidation") == "Strict",
    )


def _agent(user_agent: str) -> str:
    """The manager of a write without one: the User-Agent up to the first slash."""
    name = user_agent.partition("/")[0]
    return "".join(c for c in name if c.isprintable())[:MAX_MANAGER_BYTES] or "unknown"


def _check_patch_options(query: dict[str, str], *, applied: bool) -> None:
    manager = query.get("fieldManager", "")
    errors: list[FieldError] = []
    if applied and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    if not applied and "force" in query:
        errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
    if len(manager.encode()) > MAX_MANAGER_BYTES:
        text = f"may not be more than {MAX_MANAGER_BYTES} bytes"
        errors.append(too_long("fieldManager", text))
    if errors:
        raise invalid("PatchOptions", "meta.k8s.io", "", errors)

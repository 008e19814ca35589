"""Reading and replacing one value deep inside a manifest. Nothing given is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["value_under", "with_value"]


def value_under(body: Any, path: tuple[str, ...]) -> Any:
    """What stands under these map keys; None where nothing does."""
    for key in path:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def with_value(body: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The same map with another value under these keys, which exist."""
    first, *rest = path
    inner = with_value(body[first], tuple(rest), value) if rest else value
    return {**body, first: inner}

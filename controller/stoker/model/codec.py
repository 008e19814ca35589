"""Model data to and from plain JSON data, for records, snapshots and digests.

`to_data` and `from_data` are inverse for every frozen dataclass in this package;
fields that stand at their default are left out, so that records stay small.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import types
import typing
from functools import cache
from typing import Any, TypeVar

__all__ = ["canonical_json", "digest", "from_data", "to_data"]

T = TypeVar("T")


def canonical_json(data: Any) -> str:
    """JSON with sorted keys and no spaces: equal data gives equal text."""
    return _CANONICAL.encode(data)


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(data: Any) -> str:
    """Hash canonical JSON with sha256; 64 hex digits."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def to_data(value: Any) -> Any:
    """Plain data: dataclasses become dicts without default values, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        data = {}
        for name, default in _defaults(type(value)):
            item = getattr(value, name)
            if default is _REQUIRED or item != default:
                data[name] = to_data(item)
        return data
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [to_data(item) for item in value]
    if isinstance(value, dict):
        return {key: to_data(item) for key, item in value.items()}
    return value


def from_data(cls: type[T], data: Any) -> T:
    """Build `cls` from what `to_data` gave; raises TypeError or ValueError on other data."""
    return typing.cast("T", _build(cls, data))


_REQUIRED = object()


@cache
def _defaults(cls: type[Any]) -> tuple[tuple[str, Any], ...]:
    found: list[tuple[str, Any]] = []
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            found.append((field.name, field.default))
        elif field.default_factory is not dataclasses.MISSING:
            found.append((field.name, field.default_factory()))
        else:
            found.append((field.name, _REQUIRED))
    return tuple(found)


@cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _build(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin is typing.Union or origin is types.UnionType:
        return _build_union(typing.get_args(kind), data)
    if origin is tuple:
        return _build_tuple(typing.get_args(kind), data)
    if origin is dict:
        return dict(data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        unknown = set(data) - set(hints)
        if unknown:
            message = f"{kind.__name__} has no fields {sorted(unknown)}"
            raise ValueError(message)
        return kind(**{name: _build(hints[name], item) for name, item in data.items()})
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(data)
    return data


def _build_union(options: tuple[Any, ...], data: Any) -> Any:
    if data is None:
        return None
    for option in options:
        if option is type(None):
            continue
        if dataclasses.is_dataclass(option) and isinstance(data, dict):
            try:
                return _build(option, data)
            except (TypeError, ValueError):
                continue
        if not dataclasses.is_dataclass(option):
            return _build(option, data)
    message = f"no option of {options} takes this data"
    raise ValueError(message)


def _build_tuple(args: tuple[Any, ...], data: Any) -> Any:
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(_build(args[0], item) for item in data)
    return tuple(_build(arg, item) for arg, item in zip(args, data, strict=True))

"""What the schemas of all kinds share: the strict base class and the scalar types.

Values are converted while they are checked: durations to milliseconds, sizes to bytes.
Error types are our own reason codes where pydantic has none that fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from stoker.objects.names import API_VERSION
from stoker.objects.quantity import bytes_of, cpu_millis
from stoker.source.attribute_docs import describe_fields
from stoker.source.durations import DURATION_PATTERN, duration_ms

__all__ = [
    "ApiVersion",
    "Cpu",
    "Duration",
    "LabelName",
    "Line",
    "Percentage",
    "QUANTITY_PATTERN",
    "SizeBytes",
    "SizeText",
    "Strict",
    "UnitMetadata",
]

QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
LABEL_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""A DNS label (RFC 1123): names of units become names of Services and label values."""

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PERCENT = re.compile(r"(?:[0-9]|[1-9][0-9]|100)%")
_NOT_LABEL = re.compile(r"[^a-z0-9-]+")

ApiVersion = Literal["stoker.dev/v1alpha1"]
assert ApiVersion.__args__ == (API_VERSION,)  # type: ignore[attr-defined]


class Strict(BaseModel):
    """A block of a fleet file: unknown keys refused, nothing coerced, docstrings published."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        json_schema_extra=describe_fields,
        hide_input_in_errors=True,
        defer_build=True,  # a command checks files of two or three kinds, not of all
    )


def _text(value: Any, what: str, example: str) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError(
            "invalid-type",
            "is {found}; {what} is wanted, as text, for instance {example}",
            {"found": _shown(value), "what": what, "example": example},
        )
    return value


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    return repr(value)[:40]


def _duration(value: Any) -> int:
    text = _text(value, "a duration", "30s")
    try:
        return duration_ms(text)
    except ValueError:
        raise PydanticCustomError(
            "invalid-duration",
            "{value} is not a duration; write for instance 90s, 10m or 1h30m",
            {"value": repr(text[:40])},
        ) from None


def _quantity(read: Callable[[str | float], int]) -> Callable[[Any], int]:
    def amount(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, str | int):
            value = _text(value, "a quantity", "16Gi")
        try:
            found = read(value)
        except ValueError:
            found = -1
        if found < 0:
            raise PydanticCustomError(
                "invalid-quantity",
                "{value} is not a quantity; write for instance 500m, 4 or 16Gi",
                {"value": repr(str(value)[:40])},
            )
        return found

    return amount


def _quantity_text(read: Callable[[str | float], int]) -> Callable[[Any], str]:
    amount = _quantity(read)

    def text(value: Any) -> str:
        amount(value)
        return str(value)

    return text


def _label(value: Any) -> str:
    text = _text(value, "a name", "qwen-7b")
    if not _LABEL.fullmatch(text):
        better = _NOT_LABEL.sub("-", text.lower()).strip("-")[:63].rstrip("-")
        raise PydanticCustomError(
            "invalid-name",
            "{value} is not a DNS label (a-z, 0-9 and -, at most 63 characters){better}",
            {
                "value": repr(text[:70]),
                "better": f"; {better} would be one" if _LABEL.fullmatch(better) else "",
            },
        )
    return text


def _line(value: Any) -> str:
    text = _text(value, "one line of text", '"0.28"')
    if not text.strip() or text != text.strip() or not text.isprintable():
        raise PydanticCustomError(
            "invalid-value", "is empty, has several lines or blanks at an end", {}
        )
    return text


def _percentage(value: Any) -> tuple[int | None, int | None]:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value, None
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return None, int(value[:-1])
    raise PydanticCustomError(
        "invalid-value",
        "is {value}; a count or a percentage is wanted, for instance 3 or 10%",
        {"value": _shown(value)},
    )


Duration = Annotated[
    int,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["10m"]}),
]
"""Milliseconds, from a GEP-2257 duration."""

_QUANTITY_SCHEMA = {
    "anyOf": [{"type": "string", "pattern": QUANTITY_PATTERN}, {"type": "integer", "minimum": 0}]
}

SizeBytes = Annotated[int, BeforeValidator(_quantity(bytes_of)), WithJsonSchema(_QUANTITY_SCHEMA)]
"""Bytes, from a Kubernetes quantity."""

SizeText = Annotated[
    str, BeforeValidator(_quantity_text(bytes_of)), WithJsonSchema(_QUANTITY_SCHEMA)
]
"""A Kubernetes quantity of bytes, kept as it was written."""

Cpu = Annotated[str, BeforeValidator(_quantity_text(cpu_millis)), WithJsonSchema(_QUANTITY_SCHEMA)]
"""A Kubernetes quantity of cores, kept as it was written."""

LabelName = Annotated[
    str,
    BeforeValidator(_label),
    WithJsonSchema({"type": "string", "pattern": LABEL_PATTERN, "maxLength": 63}),
]
"""A DNS label."""

Line = Annotated[str, BeforeValidator(_line), WithJsonSchema({"type": "string", "minLength": 1})]
"""One line of text, no blanks at its ends."""

Percentage = Annotated[
    tuple[int | None, int | None],
    BeforeValidator(_percentage),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": "^([0-9]|[1-9][0-9]|100)%$"},
            ]
        }
    ),
]
"""(count, None) or (None, percent)."""


class UnitMetadata(Strict):
    """Name and namespace of a unit."""

    name: LabelName
    """Name of the unit and of the objects made for it."""
    namespace: LabelName | None = Field(default=None)
    """Namespace; without it the Fleet's `defaults.namespace`."""

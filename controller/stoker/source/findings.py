"""Turns what pydantic found into findings: file, line, field, our reason code, a hint.

All of them at once, in our own words; suggestions by difflib. Called after each schema check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from stoker.errors import Finding, SourceLocation
from stoker.source.places import Field, dotted
from stoker.source.reasons import REASONS
from stoker.source.refused import refused_names

__all__ = ["did_you_mean", "findings_of", "known_fields"]

_KINDS_OF_VALUES = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "must be at least {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "too_short": ("min_length", "needs at least {} item"),
    "string_too_long": ("max_length", "has more than {} characters"),
    "string_pattern_mismatch": ("pattern", "does not match {}"),
}


def findings_of(
    error: ValidationError,
    model: type[BaseModel],
    locate: Callable[[Field], SourceLocation],
    *,
    kind: str = "",
    unit: str = "",
    quiet: Iterable[Field] = (),
) -> list[Finding]:
    """One finding for each fault, in the order of the schema.

    `quiet` are fields that have a finding already: faults at or below them are left out.
    """
    silent = tuple(quiet)
    found: list[Finding] = []
    for detail in error.errors(include_url=False):
        field: Field = tuple(detail["loc"])
        if any(field[: len(each)] == each for each in silent):
            continue
        code, message, hint = _explain(detail, field, model, kind)
        found.append(Finding(locate(field), code, message, dotted(field), hint, unit=unit))
    return found


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the closest known word, empty when none is close."""
    candidates = sorted(known)
    by_lower = {name.lower(): name for name in candidates}
    close = get_close_matches(word.lower(), sorted(by_lower), n=1, cutoff=0.6)
    return f"did you mean {by_lower[close[0]]}?" if close else ""


def known_fields(model: type[BaseModel], field: Field) -> tuple[str, ...]:
    """Names of the fields that may stand directly below a field; empty for free maps."""
    here: type[BaseModel] | None = model
    for part in field:
        if isinstance(part, int):
            continue
        if here is None:
            return ()
        here = next(
            (
                _model_of(i.annotation)
                for n, i in here.model_fields.items()
                if (i.alias or n) == part
            ),
            None,
        )
    if here is None:
        return ()
    return tuple(info.alias or name for name, info in here.model_fields.items())


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The schema block that an annotation like `list[PoolBlock] | None` holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {list, Union, UnionType}:
        return next((m for a in get_args(annotation) if (m := _model_of(a)) is not None), None)
    return None


def _explain(
    detail: ErrorDetails, field: Field, model: type[BaseModel], kind: str
) -> tuple[str, str, str]:
    """Code, message and hint of one fault."""
    fault, context = detail["type"], detail.get("ctx", {})
    if fault in REASONS:
        return fault, detail["msg"], ""
    if fault == "extra_forbidden":
        known = (*known_fields(model, field[:-1]), *refused_names(kind, field[:-1]))
        return "unknown-field", "unknown field", did_you_mean(str(field[-1]), known)
    if fault == "missing":
        return "field-missing", "is required", ""
    if fault == "literal_error":
        allowed = [
            word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")
        ]
        choice = "must be" if len(allowed) == 1 else "must be one of"
        message = f"is {_shown(detail['input'])}; {choice} {', '.join(allowed)}"
        return "invalid-value", message, did_you_mean(str(detail["input"]), allowed)
    if fault in _KINDS_OF_VALUES:
        wanted = _KINDS_OF_VALUES[fault]
        value = detail["input"]
        scalar = isinstance(value, bool | int | float)
        hint = f'write "{_plain(value)}"' if wanted == "text" and scalar else ""
        return "invalid-type", f"is {_shown(value)}; {wanted} is wanted", hint
    if fault in _BOUNDS:
        key, text = _BOUNDS[fault]
        return "invalid-value", text.format(context.get(key)), ""
    return "invalid-value", detail["msg"][:1].lower() + detail["msg"][1:], ""


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    return repr(value)[:60] if isinstance(value, str) else _plain(value)

"""Custom resources as the server keeps them: pruned, defaulted and checked by their schema.

In: manifests and the CRD version's openAPIV3Schema. Out: manifests, or FieldErrors in the
server's words. Structural schemas only; rules in CEL are not evaluated. Used by memory_write.
"""

from __future__ import annotations

import re
from typing import Any, Final

from stoker.kube.memory_codec import typed_copy
from stoker.kube.memory_errors import FieldError, invalid_value, required, too_long, unsupported
from stoker.objects.schema_table import metadata_type

__all__ = ["custom_copy", "custom_defaults", "custom_errors"]

Json = dict[str, Any]

_ENVELOPE: Final = ("apiVersion", "kind", "metadata")


def custom_copy(manifest: Json, schema: Json, *, drop_nulls: bool) -> Json:
    """The manifest without unknown fields.

    With `drop_nulls` (a decoded body, not the result of an apply) nulls that the schema
    doesn't allow go too.
    """
    out = _pruned(manifest, schema, drop_nulls=drop_nulls, top=True)
    metadata = typed_copy(out.get("metadata") or {}, metadata_type())
    return {**out, "metadata": metadata}


def custom_defaults(manifest: Json, schema: Json) -> Json:
    """The manifest with the schema's defaults filled in; a null gives way to a default."""
    filled: Json = _defaulted(manifest, schema)
    return filled


def _is_free(schema: Json) -> bool:
    return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def _pruned(value: Any, schema: Json, *, drop_nulls: bool, top: bool = False) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_pruned(item, items, drop_nulls=drop_nulls) for item in value]
    if not isinstance(value, dict):
        if isinstance(value, float) and value.is_integer() and schema.get("type") == "integer":
            return int(value)
        return value
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    out: Json = {}
    for key, item in value.items():
        if top and key in _ENVELOPE:
            out[key] = item
            continue
        below = properties.get(key)
        if below is None and isinstance(additional, dict):
            below = additional
        if below is None:
            if additional is True or _is_free(schema) or _embedded(schema, key):
                out[key] = item
            continue
        nothing = item is None and not below.get("nullable") and "default" not in below
        if nothing and drop_nulls and below.get("type"):
            continue
        out[key] = _pruned(item, below, drop_nulls=drop_nulls)
    return out


def _embedded(schema: Json, key: str) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource")) and key in _ENVELOPE


def _defaulted(value: Any, schema: Json) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {}
        changed = [_defaulted(item, items) for item in value]
        same = all(a is b for a, b in zip(value, changed, strict=True))
        return value if same else changed
    if not isinstance(value, dict):
        return value
    out: Json | None = None
    for key, below in (schema.get("properties") or {}).items():
        item = value.get(key)
        absent = key not in value or (item is None and not below.get("nullable"))
        if absent and "default" in below:
            item = _defaulted(below["default"], below)
        elif key not in value:
            continue
        else:
            item = _defaulted(item, below)
        if key not in value or item is not value[key]:
            out = dict(value) if out is None else out
            out[key] = item
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        known = schema.get("properties") or {}
        for key, item in value.items():
            if key not in known:
                filled = _defaulted(item, additional)
                if filled is not item:
                    out = dict(value) if out is None else out
                    out[key] = filled
    return value if out is None else out


def custom_errors(manifest: Json, schema: Json) -> list[FieldError]:
    """Everything in a custom resource that its schema refuses, sorted by field."""
    errors: list[FieldError] = []
    body = {key: value for key, value in manifest.items() if key not in _ENVELOPE}
    _check(body, {**schema, "type": "object"}, "", errors)
    return errors


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "array"


def _check(value: Any, schema: Json, path: str, errors: list[FieldError]) -> None:
    if value is None and (schema.get("nullable") or not schema.get("type")):
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            errors.append(_wrong_type(value, path, "integer,string"))
        return
    kind = schema.get("type")
    if kind is not None:
        fits = isinstance(value, _TYPES.get(kind, (object,)))
        if not fits or (isinstance(value, bool) and kind != "boolean"):
            errors.append(_wrong_type(value, path, kind))
            return
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        errors.append(unsupported(path, value, tuple(str(item) for item in allowed)))
    match value:
        case dict():
            _check_map(value, schema, path, errors)
        case list():
            _check_list(value, schema, path, errors)
        case str():
            _check_text(value, schema, path, errors)
        case int() | float() if not isinstance(value, bool):
            _check_number(value, schema, path, errors)
        case _:
            pass


def _wrong_type(value: Any, path: str, kind: str) -> FieldError:
    shown = _type_name(value)
    text = f'Invalid value: "{shown}": {path} in body must be of type {kind}: "{shown}"'
    return FieldError("FieldValueTypeInvalid", path, text)


def _check_map(value: Json, schema: Json, path: str, errors: list[FieldError]) -> None:
    dot = f"{path}." if path else ""
    for key in sorted(schema.get("required") or ()):
        if key not in value and key not in _ENVELOPE:
            errors.append(required(f"{dot}{key}"))
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for key, item in sorted(value.items()):
        below = properties.get(key)
        if below is None and isinstance(additional, dict):
            below = additional
        if below is not None:
            _check(item, below, f"{dot}{key}", errors)


def _check_list(value: list[Any], schema: Json, path: str, errors: list[FieldError]) -> None:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        text = f"Too many: {len(value)}: must have at most {most} items"
        errors.append(FieldError("FieldValueTooMany", path, text))
    if least is not None and len(value) < least:
        text = f"{path} in body should have at least {least} items"
        errors.append(invalid_value(path, len(value), text))
    for index, item in enumerate(value):
        _check(item, schema.get("items") or {}, f"{path}[{index}]", errors)
        if schema.get("x-kubernetes-list-type") == "set" and item in value[:index]:
            text = f'Duplicate value: "{item}"'
            errors.append(FieldError("FieldValueDuplicate", f"{path}[{index}]", text))


def _check_text(value: str, schema: Json, path: str, errors: list[FieldError]) -> None:
    most, least = schema.get("maxLength"), schema.get("minLength")
    if most is not None and len(value) > most:
        errors.append(too_long(path, f"may not be more than {most} bytes"))
    if least is not None and len(value) < least:
        text = f"{path} in body should be at least {least} chars long"
        errors.append(invalid_value(path, value, text))
    pattern = schema.get("pattern")
    if pattern and not re.search(pattern, value):
        text = f"{path} in body should match '{pattern}'"
        errors.append(invalid_value(path, value, text))


def _check_number(value: float, schema: Json, path: str, errors: list[FieldError]) -> None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and value < least:
        text = f"{path} in body should be greater than or equal to {least}"
        errors.append(invalid_value(path, value, text))
    if most is not None and value > most:
        text = f"{path} in body should be less than or equal to {most}"
        errors.append(invalid_value(path, value, text))

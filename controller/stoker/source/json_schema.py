"""The published JSON Schema of each kind, for editors and `stoker schema KIND`.

Made from the same classes that check the files, so that the two can't differ; rewritten
from pydantic's dialect to draft-07, which editors' YAML plug-ins read.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from stoker.source.durations import DURATION_PATTERN, duration_text
from stoker.source.schema_bundle import BundleFile
from stoker.source.schema_fleet import FleetFile
from stoker.source.schema_health import HealthPolicyFile
from stoker.source.schema_policy import ScalePolicyFile
from stoker.source.schema_service import ModelServiceFile

__all__ = ["schema_of", "schemas"]

DIALECT = "http://json-schema.org/draft-07/schema#"

_KINDS: dict[str, type[BaseModel]] = {
    "Bundle": BundleFile,
    "Fleet": FleetFile,
    "HealthPolicy": HealthPolicyFile,
    "ModelService": ModelServiceFile,
    "ScalePolicy": ScalePolicyFile,
}


def schemas() -> dict[str, dict[str, Any]]:
    """Kind to schema, sorted by kind; every field has a description."""
    return {kind: schema_of(model) for kind, model in _KINDS.items()}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of one kind, from the class that checks its files."""
    plain = _rewritten(_described(model))
    if model is FleetFile:
        plain["definitions"] |= _rewritten(_described(ModelServiceFile))["definitions"]
        _loosen_defaults(plain)
    return {"$schema": DIALECT, "title": model.__name__.removesuffix("File"), **plain}


def _described(model: type[BaseModel]) -> dict[str, Any]:
    """Pydantic's schema, with the descriptions that it leaves to the block referred to."""
    made: dict[str, Any] = model.model_json_schema(by_alias=True, mode="validation")
    blocks: dict[str, Any] = made.pop("$defs", {})
    for block in (made, *blocks.values()):
        for field in block.get("properties", {}).values():
            target = blocks.get(str(field.get("$ref", "")).rpartition("/")[2])
            if target is not None:
                field.setdefault("description", target["description"])
    return {**made, "definitions": blocks}


def _loosen_defaults(schema: dict[str, Any]) -> None:
    """Let editors complete the top-level blocks of defaults.modelService, none required."""
    blocks = schema["definitions"]["ModelServiceSpec"]["properties"]
    target = schema["definitions"]["DefaultsBlock"]["properties"]["modelService"]
    target["properties"] = {
        name: {"type": "object", "description": block["description"]} if "$ref" in block else block
        for name, block in blocks.items()
    }
    target["additionalProperties"] = False
    for name in ("ModelServiceSpec", "ModelServiceFile"):
        schema["definitions"].pop(name, None)


def _rewritten(value: Any) -> Any:
    """The same schema without titles and nulls, with draft-07 references."""
    if isinstance(value, list):
        return [_rewritten(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {
        key: _rewritten(item)
        for key, item in value.items()
        if not (key == "title" and isinstance(item, str))
        and not (key == "default" and item is None)
    }
    if "default" in made:
        made["default"] = _written(made)
    reference = made.get("$ref")
    if isinstance(reference, str):
        made["$ref"] = reference.replace("#/$defs/", "#/definitions/")
    options = made.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        kept = [option for option in options if option != {"type": "null"}]
        del made["anyOf"]
        made = {**kept[0], **made} if len(kept) == 1 else {**made, "anyOf": kept}
    if "$ref" in made and len(made) > 1:
        made["allOf"] = [{"$ref": made.pop("$ref")}]
    return made


def _written(field: dict[str, Any]) -> Any:
    """A default as people write it: durations and percentages are kept as numbers inside."""
    default = field["default"]
    if field.get("pattern") == DURATION_PATTERN and isinstance(default, int):
        return duration_text(default)
    if isinstance(default, list | tuple) and len(default) == 2:
        count, percent = default
        return count if percent is None else f"{percent}%"
    return default

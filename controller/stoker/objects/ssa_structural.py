"""Types of custom resources, from their CRD's structural schema.

In: a CustomResourceDefinition manifest. Out: the ListSchema of one of its versions, with the
list types it declares. Used by diff for live CRDs and by the in-memory API server.
"""

from __future__ import annotations

from typing import Any

from stoker.objects.schema_table import (
    ANY,
    LIST,
    MAP,
    SCALAR,
    FieldType,
    ListSchema,
    object_type,
)

__all__ = ["schema_from_crd"]


def schema_from_crd(crd: dict[str, Any], version: str = "") -> ListSchema | None:
    """The schema of a served version (without version: of the storage version), or None."""
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    for served in spec.get("versions") or ():
        chosen = served.get("name") == version if version else served.get("storage")
        if not chosen:
            continue
        schema = (served.get("schema") or {}).get("openAPIV3Schema") or {}
        root = object_type(_field_type(schema, preserve=False))
        has_status = "status" in (served.get("subresources") or {})
        return ListSchema(
            str(spec.get("group", "")),
            str(names.get("kind", "")),
            root,
            resets_status=has_status,
        )
    return None


def _field_type(schema: dict[str, Any], *, preserve: bool) -> FieldType:
    preserve = preserve or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    nullable = bool(schema.get("nullable"))
    if schema.get("x-kubernetes-int-or-string"):
        return FieldType(SCALAR, "o", nullable=nullable)
    match schema.get("type"):
        case "object":
            return _map_type(schema, preserve=preserve, nullable=nullable)
        case "array":
            return _list_type(schema, preserve=preserve, nullable=nullable)
        case "string":
            return FieldType(SCALAR, "s", nullable=nullable)
        case "integer":
            return FieldType(SCALAR, "i", nullable=nullable)
        case "number":
            return FieldType(SCALAR, "f", nullable=nullable)
        case "boolean":
            return FieldType(SCALAR, "b", nullable=nullable)
        case _:
            return ANY


def _map_type(schema: dict[str, Any], *, preserve: bool, nullable: bool) -> FieldType:
    properties = schema.get("properties") or {}
    fields = {k: _field_type(v, preserve=preserve) for k, v in properties.items()}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        element: FieldType | None = _field_type(additional, preserve=preserve)
    elif additional or preserve or not (properties or additional is False):
        element = ANY
    else:
        element = None
    if schema.get("x-kubernetes-embedded-resource"):
        fields |= {name: ANY for name in ("apiVersion", "kind", "metadata") if name not in fields}
    return FieldType(
        MAP,
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        fields=fields,
        element=element,
        nullable=nullable,
    )


def _list_type(schema: dict[str, Any], *, preserve: bool, nullable: bool) -> FieldType:
    items = schema.get("items") or {}
    kind = schema.get("x-kubernetes-list-type", "atomic")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
    properties = items.get("properties") or {}
    defaults = {
        key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})
    }
    return FieldType(
        LIST,
        atomic=kind == "atomic",
        is_set=kind == "set",
        keys=keys,
        key_defaults=defaults,
        element=_field_type(items, preserve=preserve),
        nullable=nullable,
    )

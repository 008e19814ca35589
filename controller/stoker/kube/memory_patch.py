"""Merge, strategic and JSON patches.

In: a live manifest and the patch's bytes. Out: the patched manifest. Used by memory_write.
"""

from __future__ import annotations

import json
from typing import Any, Final

import jsonpatch
import yaml

from stoker.kube.memory_errors import StatusAnswer, bad_request
from stoker.objects.schema_table import LIST, MAP, FieldType

__all__ = ["apply_body", "merge_patch", "patched"]

Json = dict[str, Any]

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON: Final = "application/json-patch+json"


def patched(live: Json, body: bytes, content_type: str, root: FieldType) -> Json:
    """The live manifest with a patch laid on; raises StatusAnswer where it can't be."""
    try:
        patch = json.loads(body)
    except ValueError as error:
        raise bad_request("invalid JSON patch") from error
    if content_type == JSON:
        return _json_patch(live, patch)
    if not isinstance(patch, dict):
        raise bad_request("invalid JSON patch")
    strategic = content_type == STRATEGIC
    merged: Json = _strategic(live, patch, root) if strategic else merge_patch(live, patch)
    return merged


def merge_patch(live: Any, patch: Any) -> Any:
    """RFC 7396: null deletes, maps merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    out = dict(live) if isinstance(live, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge_patch(out.get(key), value)
    return out


def _json_patch(live: Json, patch: Any) -> Json:
    try:
        changed = jsonpatch.JsonPatch(patch).apply(live)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        text = "the server rejected our request due to an error in our request"
        raise StatusAnswer(422, "Invalid", text, {}) from error
    except (TypeError, ValueError) as error:
        raise bad_request("invalid JSON patch") from error
    out: Json = changed
    return out


_DIRECTIVES: Final = ("$patch", "$retainKeys")
_ORDER: Final = "$setElementOrder/"
_DELETIONS: Final = "$deleteFromPrimitiveList/"


def _strategic(live: Any, patch: Any, kind: FieldType | None) -> Any:
    """Kubernetes' own merge: lists with a merge key merge item by item."""
    if not isinstance(patch, dict):
        return patch
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key not in _DIRECTIVES}
    if directive == "delete":
        return {}
    out = dict(live) if isinstance(live, dict) else {}
    retained = patch.get("$retainKeys")
    if retained is not None:
        out = {key: value for key, value in out.items() if key in retained}
    for key, value in patch.items():
        if key in _DIRECTIVES or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETIONS):
            name = key[len(_DELETIONS) :]
            out[name] = [item for item in out.get(name) or () if item not in value]
        elif value is None:
            out.pop(key, None)
        elif kind is not None and key in kind.replaced:
            out[key] = value
        else:
            member = kind.member(key) if kind is not None and kind.shape == MAP else None
            order = patch.get(_ORDER + key)
            out[key] = _strategic_value(out.get(key), value, member, order)
    return out


def _strategic_value(live: Any, value: Any, kind: FieldType | None, order: Any) -> Any:
    if isinstance(value, dict):
        return _strategic(live, value, kind)
    if not isinstance(value, list) or kind is None or kind.shape != LIST:
        return value
    if kind.merge_key:
        return _strategic_list(live or [], value, kind, order)
    if kind.is_set:
        held = live or []
        both = [*held, *(item for item in value if item not in held)]
        return _ordered({item: item for item in both}, order or value, held)
    return value


def _strategic_list(live: list[Json], patch: list[Json], kind: FieldType, order: Any) -> list[Any]:
    """Patch items by merge key."""
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    key = kind.merge_key
    merged = {item.get(key): item for item in live}
    for item in patch:
        if key not in item:
            text = f"map: {item} does not contain declared merge key: {key}"
            raise StatusAnswer(500, "", text)
        name = item[key]
        if item.get("$patch") == "delete":
            merged.pop(name, None)
        else:
            merged[name] = _strategic(merged.get(name, {}), item, kind.element)
    wished = [item.get(key) for item in (order or patch)]
    return _ordered(merged, wished, [item.get(key) for item in live])


def _ordered(items: dict[Any, Any], wished: list[Any], live: list[Any]) -> list[Any]:
    """Items of the patch in its order, the others in theirs, interleaved by the live order."""
    place = {name: index for index, name in enumerate(live)}
    right = [name for name in dict.fromkeys(wished) if name in items]
    left = [name for name in items if name not in right]
    out: list[Any] = []
    while left and right:
        one, two = place.get(left[0]), place.get(right[0])
        first = one is not None and two is not None and one < two
        out.append(items[(left if first else right).pop(0)])
    return [*out, *(items[name] for name in (*left, *right))]


class _Loader(yaml.SafeLoader):
    """Safe YAML whose dates stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def apply_body(body: bytes, *, strict: bool) -> Json:
    """The manifest of an apply, from JSON or YAML; the last of repeated keys wins.

    With `strict` a repeated key is refused (JSON only).
    """
    try:
        sent = json.loads(body, object_pairs_hook=_refuse_repeats if strict else None)
    except _RepeatedKey as repeated:
        text = f'error strict decoding patch: error converting YAML to JSON: key "{repeated}"'
        raise bad_request(f"{text} already set in map") from repeated
    except ValueError:
        try:
            sent = yaml.load(body, Loader=_Loader)  # noqa: S506 - a safe loader
        except yaml.YAMLError as error:
            text = f"error decoding patch: error converting YAML to JSON: yaml: {error}"
            raise bad_request(text) from error
    if not isinstance(sent, dict):
        text = (
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot"
            " unmarshal array into Go value of type map[string]interface {}"
        )
        raise bad_request(text)
    return sent


class _RepeatedKey(Exception):  # noqa: N818 - a signal inside this module
    """A key that stands twice in one map."""


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> Json:
    found: Json = {}
    for key, value in pairs:
        if key in found:
            raise _RepeatedKey(key)
        found[key] = value
    return found

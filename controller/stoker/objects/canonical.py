"""When a sent value and a live one are the same, although they are spelled differently.

A sent value, the live value and the field's type come in, a `Sameness` goes out. The API
server normalises quantities, drops empty values and fills in defaults; whoever compares
texts sees drift for ever (cases.md row 47). Used by compare, so by diff and apply.
"""

from __future__ import annotations

import base64
import binascii
from enum import IntEnum
from typing import Any

from stoker.objects.quantity import quantities_equal
from stoker.objects.schema_table import LIST, MAP, SCALAR, FieldType
from stoker.objects.ssa_merge import same_value

__all__ = ["Sameness", "is_empty", "sameness", "with_plain_data"]


class Sameness(IntEnum):
    """How sure it is that sending the value again changes nothing; worst last."""

    SAME = 0
    UNSETTLED = 1
    """Equal but for what may be a default of the server: only a dry run can tell."""
    DIFFERENT = 2


_DEFAULTS: dict[tuple[str, str], Any] = {
    ("ObjectFieldSelector", "apiVersion"): "v1",
    ("ResourceFieldSelector", "divisor"): "0",
    ("ServiceAccountTokenProjection", "expirationSeconds"): 3600,
    ("NetworkPolicyPort", "protocol"): "TCP",
    ("RuleWithOperations", "scope"): "*",
    ("RoleRef", "apiGroup"): "rbac.authorization.k8s.io",
    ("PersistentVolumeClaimSpec", "volumeMode"): "Filesystem",
}
"""Defaults inside fields that are owned as a whole, by type and field (Kubernetes 1.37).

Only a short cut: what is not listed is settled by one dry run.
"""

_TEXTS = frozenset("sS")
"""Codes of maps from free keys to texts, into which the server fills nothing (a LimitRange's
maps of quantities it does fill).
"""

_DROPPED_WHEN_EMPTY = frozenset("szyd")
"""Codes of scalars that the server leaves out when they are zero or empty."""


def is_empty(value: Any) -> bool:
    """Whether the value is null, zero, false or has nothing in it."""
    return value is None or value in ("", 0, False) or value in ({}, [])


def sameness(sent: Any, live: Any, kind: FieldType) -> Sameness:
    """Compare one field that is owned as a whole: a scalar, or an atomic map or list.

    `live` is None where the object has no such field. A sent null or an empty value that
    the server does not store counts as the same: whether it is still ours is told by the
    managedFields entry, not by the value.
    """
    if sent is None:
        return Sameness.SAME
    typed = kind.shape in {SCALAR, MAP, LIST}
    kind = kind.resolved(sent)
    if live is None:
        return _against_nothing(sent, kind, typed=typed)
    if kind.shape == SCALAR:
        same = same_value(sent, live) or _same_scalar(sent, live, kind.code)
        return Sameness.SAME if same else Sameness.DIFFERENT
    if kind.shape == MAP:
        return _maps(sent, live, kind) if _both(dict, sent, live) else Sameness.DIFFERENT
    return _lists(sent, live, kind) if _both(list, sent, live) else Sameness.DIFFERENT


def with_plain_data(manifest: dict[str, Any]) -> dict[str, Any]:
    """A Secret with its stringData written into data; every other manifest as it is.

    The server keeps no stringData: a key that left Git would stay in `data` for ever, since
    the entry lists `stringData.key` (ssa-facts 75). Anything but texts is left for the
    server to refuse.
    """
    texts = manifest.get("stringData")
    if manifest.get("kind") != "Secret" or manifest.get("apiVersion") != "v1" or texts is None:
        return manifest
    data = manifest.get("data") or {}
    if not isinstance(texts, dict) or not isinstance(data, dict):
        return manifest
    if not all(isinstance(text, str) for text in texts.values()):
        return manifest
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    rest = {key: value for key, value in manifest.items() if key != "stringData"}
    return {**rest, "data": {**data, **encoded}}


def _both(shape: type, sent: Any, live: Any) -> bool:
    return isinstance(sent, shape) and isinstance(live, shape)


def _against_nothing(sent: Any, kind: FieldType, *, typed: bool) -> Sameness:
    """Compare with an absent live field."""
    if not is_empty(sent):
        return Sameness.DIFFERENT
    if not typed:
        return Sameness.UNSETTLED
    if kind.shape == SCALAR and kind.code not in _DROPPED_WHEN_EMPTY:
        return Sameness.DIFFERENT
    return Sameness.SAME


def _same_scalar(sent: Any, live: Any, code: str) -> bool:
    match code:
        case "q":
            return _same_quantity(sent, live)
        case "d":
            return _same_bytes(sent, live)
        case _:
            return False


def _same_quantity(sent: Any, live: Any) -> bool:
    try:
        return quantities_equal(sent, live)
    except ValueError:
        return False


def _same_bytes(sent: Any, live: Any) -> bool:
    """Base64 may be broken into lines."""
    if not _both(str, sent, live):
        return False
    try:
        return base64.b64decode(sent) == base64.b64decode(live)
    except (binascii.Error, ValueError):
        return False


def _maps(sent: dict[str, Any], live: dict[str, Any], kind: FieldType) -> Sameness:
    worst = Sameness.SAME
    for key, item in sent.items():
        member = kind.member(key)
        if member is None:
            return Sameness.DIFFERENT
        worst = max(worst, sameness(item, live.get(key), member))
    for key, item in live.items():
        if key not in sent and not is_empty(item):
            worst = max(worst, _extra(key, item, kind))
    return worst


def _extra(key: str, item: Any, kind: FieldType) -> Sameness:
    """What a live field that was not sent means: a default, or something to be removed."""
    if (kind.name, key) in _DEFAULTS:
        return Sameness.SAME if _DEFAULTS[kind.name, key] == item else Sameness.UNSETTLED
    if key in kind.fields or kind.element is None:
        return Sameness.UNSETTLED
    return Sameness.DIFFERENT if kind.element.code in _TEXTS else Sameness.UNSETTLED


def _lists(sent: list[Any], live: list[Any], kind: FieldType) -> Sameness:
    if len(sent) != len(live):
        return Sameness.DIFFERENT
    element = kind.element
    assert element is not None
    found = (sameness(one, two, element) for one, two in zip(sent, live, strict=True))
    return max(found, default=Sameness.SAME)

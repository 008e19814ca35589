"""What the server refuses about names, labels and other metadata, on create and on update.

In: manifests with defaults. Out: FieldErrors in the server's words and order, empty when it
would accept. Used by memory_write; the kinds' own rules are in memory_validate_kinds.
"""

from __future__ import annotations

import re
from typing import Any, Final

from stoker.kube.memory_errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from stoker.kube.memory_kinds import Resource

__all__ = ["is_dns_label", "label_errors", "metadata_errors", "metadata_update_errors", "same"]

MAX_ANNOTATION_BYTES: Final = 262_144

_LABEL_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

DNS_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex"
    " used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
DNS_NAME_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    " for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME_PART_TEXT: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_KEY_TEXT: Final = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start"
    " and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex"
    " used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS"
    " subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_LABEL_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    "  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def is_dns_label(name: str) -> bool:
    """Whether a name is a DNS label of at most 63 characters."""
    return len(name) <= 63 and _DNS_LABEL.fullmatch(name) is not None


def metadata_errors(resource: Resource, manifest: dict[str, Any]) -> list[FieldError]:
    """Everything wrong with metadata, whatever the kind."""
    metadata = manifest["metadata"]
    errors: list[FieldError] = []
    prefix = metadata.get("generateName") or ""
    if prefix:
        errors += _name_errors(resource, prefix, "metadata.generateName", is_prefix=True)
    name = metadata.get("name") or ""
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    elif not prefix or not errors:
        errors += _name_errors(resource, name, "metadata.name", is_prefix=False)
    errors += label_errors(metadata.get("labels"), "metadata.labels")
    annotations = metadata.get("annotations") or {}
    for key in sorted(annotations):
        errors += _key_errors(key.lower(), "metadata.annotations", shown=key)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATION_BYTES:
        text = f"may not be more than {MAX_ANNOTATION_BYTES} bytes"
        errors.append(too_long("metadata.annotations", text))
    errors += _owner_errors(metadata.get("ownerReferences") or [])
    for index, finalizer in enumerate(metadata.get("finalizers") or []):
        qualified = resource.crd is None
        errors += _finalizer_errors(finalizer, f"metadata.finalizers[{index}]", qualified=qualified)
    return errors


def _name_errors(resource: Resource, name: str, path: str, *, is_prefix: bool) -> list[FieldError]:
    if resource.group == "rbac.authorization.k8s.io":
        bad = next((c for c in "/%" if c in name), "") or (name if name in {".", ".."} else "")
        return [invalid_value(path, name, f"may not contain '{bad}'")] if bad else []
    checked = name.rstrip("-") + "a" if is_prefix and name.endswith("-") else name
    if resource.kind in {"Namespace", "Service"}:
        if len(name) > 63:
            return [invalid_value(path, name, "must be no more than 63 characters")]
        if "." in name and resource.kind == "Namespace":
            return [invalid_value(path, name, "must not contain dots")]
        fits = _DNS_LABEL.fullmatch(checked)
        return [] if fits else [invalid_value(path, name, DNS_LABEL_TEXT)]
    if len(name) > 253:
        return [invalid_value(path, name, "must be no more than 253 characters")]
    return [] if _DNS_NAME.fullmatch(checked) else [invalid_value(path, name, DNS_NAME_TEXT)]


def label_errors(labels: dict[str, str] | None, path: str) -> list[FieldError]:
    """Bad keys and values of a label map."""
    errors: list[FieldError] = []
    for key, value in sorted((labels or {}).items()):
        errors += _key_errors(key, path, shown=key)
        if len(value.encode()) > 63:
            errors.append(invalid_value(path, value, "must be no more than 63 bytes"))
        if value and not _LABEL_PART.fullmatch(value):
            errors.append(invalid_value(path, value, _LABEL_VALUE_TEXT))
    return errors


def _key_errors(key: str, path: str, *, shown: str) -> list[FieldError]:
    parts = key.split("/")
    if len(parts) > 2:
        return [invalid_value(path, shown, _LABEL_KEY_TEXT)]
    errors: list[FieldError] = []
    if len(parts) == 2:
        if not parts[0]:
            errors.append(invalid_value(path, shown, "prefix part must be non-empty"))
        elif len(parts[0]) > 253 or not _DNS_NAME.fullmatch(parts[0]):
            errors.append(invalid_value(path, shown, f"prefix part {DNS_NAME_TEXT}"))
    name = parts[-1]
    if not name:
        errors.append(invalid_value(path, shown, "name part must be non-empty"))
    elif len(name) > 63:
        errors.append(invalid_value(path, shown, "name part must be no more than 63 bytes"))
    if not _LABEL_PART.fullmatch(name):
        errors.append(invalid_value(path, shown, _NAME_PART_TEXT))
    return errors


def _owner_errors(owners: list[dict[str, Any]]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                errors.append(required(f"{path}.{key}", "must not be empty"))
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        first, second = (f"{owner['kind']}/{owner['name']}" for owner in controllers[:2])
        text = (
            "Only one reference can have Controller set to true."
            f' Found "true" in references for {first} and {second}'
        )
        errors.append(invalid_value("metadata.ownerReferences", owners, text))
    return errors


def _finalizer_errors(name: str, path: str, *, qualified: bool) -> list[FieldError]:
    errors = _key_errors(name, path, shown=name)
    if qualified and not errors and "/" not in name and name not in _STANDARD_FINALIZERS:
        text = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(invalid_value(path, name, text))
    return errors


def metadata_update_errors(manifest: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    """What may not change in metadata once an object exists."""
    new_meta, old_meta = manifest["metadata"], old["metadata"]
    errors: list[FieldError] = []
    if old_meta.get("deletionTimestamp"):
        held = set(old_meta.get("finalizers") or ())
        added = [name for name in new_meta.get("finalizers") or () if name not in held]
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            text = (
                "no new finalizers can be added if the object is being deleted, found new"
                f" finalizers []string{{{listed}}}"
            )
            errors.append(forbidden_field("metadata.finalizers", text))
    if not same(new_meta.get("uid"), old_meta.get("uid")):
        errors.append(invalid_value("metadata.uid", new_meta["uid"], "field is immutable"))
    return errors


def same(one: Any, two: Any) -> bool:
    """Equality in which absent, null and empty are one."""
    return bool(one == two or (not one and not two and one is not False and two is not False))

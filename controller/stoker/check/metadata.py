"""Names, labels and annotations within the limits of the API server.

The limits are those of apimachinery's validation (qualified names, label values, DNS
names, 256 KiB of annotations). Called by check for every unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from stoker.errors import Finding
from stoker.model.manifest import Manifest
from stoker.objects import kinds

__all__ = ["check_metadata"]

MAX_ANNOTATION_BYTES = 256 * 1024
MAX_NAME = 253
MAX_LABEL = 63

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SERVICE_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

_LABEL_NAMED = frozenset({("", "Namespace")})
_SERVICE_NAMED = frozenset({("", "Service")})
_FREELY_NAMED_GROUPS = frozenset({"rbac.authorization.k8s.io", "flowcontrol.apiserver.k8s.io"})
"""Names like `system:node` are allowed here: any path segment is."""


def check_metadata(manifests: tuple[Manifest, ...]) -> list[Finding]:
    """Findings `invalid-name`, `invalid-label` and `invalid-annotation`, with field paths."""
    findings: list[Finding] = []
    for manifest in manifests:
        if problem := _name_problem(manifest):
            findings.append(
                Finding(manifest.source, "invalid-name", problem, field="metadata.name")
            )
        for path, metadata in _metadatas(manifest):
            findings += _labels(manifest, path, metadata.get("labels"))
            findings += _annotations(manifest, path, metadata.get("annotations"))
    return findings


def _metadatas(manifest: Manifest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Metadata of the object, and of the pod templates inside it."""
    yield "metadata", manifest.body["metadata"]
    for keys in kinds.pod_template_paths(manifest.ref.group, manifest.ref.kind):
        value: Any = manifest.body
        for key in (*keys, "metadata"):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            yield ".".join((*keys, "metadata")), value


def _name_problem(manifest: Manifest) -> str:
    ref = manifest.ref
    namespace_problem = _label_problem(ref.namespace) if ref.namespace else ""
    if namespace_problem:
        return f"the namespace {ref.namespace!r} {namespace_problem}"
    kind = (ref.group, ref.kind)
    if len(ref.name) > MAX_NAME:
        return f"the name has {len(ref.name)} characters, at most {MAX_NAME} are allowed"
    if kind in _SERVICE_NAMED and not _SERVICE_LABEL.fullmatch(ref.name):
        return f"{ref.name!r}: a Service name starts with a letter and holds a-z, 0-9 and - only"
    if kind in _SERVICE_NAMED | _LABEL_NAMED:
        problem = _label_problem(ref.name)
        return f"{ref.name!r} {problem}" if problem else ""
    if ref.group in _FREELY_NAMED_GROUPS or not kinds.is_builtin_group(ref.group):
        bad = ref.name in {".", ".."} or "/" in ref.name or "%" in ref.name
        return f"{ref.name!r} may not be . or .. and holds no / or %" if bad else ""
    if not _SUBDOMAIN.fullmatch(ref.name):
        return f"{ref.name!r} holds something other than a-z, 0-9, - and . (lower case only)"
    return ""


def _label_problem(name: str) -> str:
    if len(name) > MAX_LABEL:
        return f"has {len(name)} characters, at most {MAX_LABEL} are allowed"
    if not _LABEL.fullmatch(name):
        return "holds something other than a-z, 0-9 and -"
    return ""


def _labels(manifest: Manifest, path: str, labels: Any) -> Iterator[Finding]:
    if not isinstance(labels, dict):
        return
    for key, value in labels.items():
        field = f"{path}.labels[{key}]"
        if problem := _key_problem(key):
            yield Finding(manifest.source, "invalid-label", problem, field=field)
        if not isinstance(value, str):
            message = f"the value is a {_type_name(value)}, a label is text"
            yield Finding(manifest.source, "invalid-label", message, field, "put it in quotes")
        elif len(value) > MAX_LABEL:
            message = f"the value has {len(value)} characters, at most {MAX_LABEL} are allowed"
            yield Finding(manifest.source, "invalid-label", message, field=field)
        elif value and not _QUALIFIED.fullmatch(value):
            message = "the value holds something other than letters, digits, -, _ and ."
            yield Finding(manifest.source, "invalid-label", message, field=field)


def _annotations(manifest: Manifest, path: str, annotations: Any) -> Iterator[Finding]:
    if not isinstance(annotations, dict):
        return
    size = 0
    for key, value in annotations.items():
        field = f"{path}.annotations[{key}]"
        if problem := _key_problem(key.lower()):
            yield Finding(manifest.source, "invalid-annotation", problem, field=field)
        if not isinstance(value, str):
            message = f"the value is a {_type_name(value)}, an annotation is text"
            yield Finding(manifest.source, "invalid-annotation", message, field, "put it in quotes")
        else:
            size += len(key.encode()) + len(value.encode())
    if size > MAX_ANNOTATION_BYTES:
        message = f"the annotations have {size} bytes, at most {MAX_ANNOTATION_BYTES} are allowed"
        yield Finding(manifest.source, "invalid-annotation", message, field=f"{path}.annotations")


@lru_cache(maxsize=4096)
def _key_problem(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not (_SUBDOMAIN.fullmatch(prefix) and len(prefix) <= MAX_NAME):
        return "the part before the / is not a DNS name"
    if not _QUALIFIED.fullmatch(name) or len(name) > MAX_LABEL:
        return f"the key is not 1 to {MAX_LABEL} letters, digits, -, _ and ."
    return ""


def _type_name(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)

"""Reads the newest release of a Helm chart from its Secrets, as Helm 3 and 4 store them.

A release's name comes in; its manifests as they were sent, without hooks, go out. Nothing
is run: the Secret holds base64 of gzip of JSON, and the rendered text is in it.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from stoker.errors import Stalled
from stoker.model.ports import Cluster

__all__ = ["Release", "newest_release"]

MAX_RELEASE_BYTES = 64 * 2**20
"""Of a release unpacked; the Secret itself holds 1 MiB at most."""
_GZIP = 31
"""zlib's window bits for data with a gzip header."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release. `secrets` counts the Secrets of all its revisions, `hooks` its hooks."""

    revision: int
    chart: str
    manifests: tuple[dict[str, Any], ...] = field(hash=False)
    hooks: int = 0
    secrets: int = 0


def newest_release(name: str, namespace: str, cluster: Cluster) -> Release:
    """The deployed revision of a release, else its newest one.

    Raises Stalled: `source-not-found`, or `release-unreadable`.
    """
    found = cluster.list("", "Secret", namespace, label_selector=f"owner=helm,name={name}").items
    if not found:
        raise Stalled(
            f"no Helm release {name} in namespace {namespace}",
            code="source-not-found",
            hint="-n NAMESPACE; `helm list -A` names all",
        )
    newest = max(
        found, key=lambda secret: (_label(secret, "status") == "deployed", _number(secret))
    )
    return _release(newest, len(found))


def _label(secret: dict[str, Any], key: str) -> str:
    return str(((secret.get("metadata") or {}).get("labels") or {}).get(key, ""))


def _number(secret: dict[str, Any]) -> int:
    text = _label(secret, "version")
    return int(text) if text.isascii() and text.isdecimal() else 0


def _release(secret: dict[str, Any], secrets: int) -> Release:
    name = str(secret["metadata"]["name"])
    try:
        packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
        text = zlib.decompressobj(_GZIP).decompress(packed, MAX_RELEASE_BYTES)
        content = json.loads(text)  # a longer one is cut, and no JSON any more
        manifest, hooks = str(content["manifest"]), content.get("hooks") or []
        chart = (content.get("chart") or {}).get("metadata") or {}
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise Stalled(
            f"Secret {name} does not hold a release: {error}", code="release-unreadable"
        ) from error
    return Release(
        revision=_number(secret),
        chart=f"{chart.get('name', '?')}-{chart.get('version', '?')}",
        manifests=_documents(manifest, name),
        hooks=len(hooks),
        secrets=secrets,
    )


def _documents(text: str, name: str) -> tuple[dict[str, Any], ...]:
    """The manifests of a release, Lists taken apart."""
    from stoker.render.documents import load_documents

    found: list[dict[str, Any]] = []
    for document in load_documents(text, name):
        value = document.value
        if isinstance(value, dict) and isinstance(value.get("items"), list):
            found += [item for item in value["items"] if isinstance(item, dict)]
        elif isinstance(value, dict):
            found.append(value)
    return tuple(found)

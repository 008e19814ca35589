"""Objects and units small enough to be stored and sent."""

from __future__ import annotations

import msgspec

from stoker.errors import Finding
from stoker.model.codec import canonical_json
from stoker.model.manifest import Manifest

__all__ = ["MAX_OBJECT_BYTES", "MAX_UNIT_BYTES", "check_sizes"]

MAX_OBJECT_BYTES = 2**20
"""etcd refuses requests over 1.5 MiB, and the stored object carries managedFields too."""
MAX_UNIT_BYTES = 32 * 2**20


_encode = msgspec.json.Encoder().encode


def are_small(manifests: tuple[Manifest, ...]) -> bool:
    """Whether all objects together are surely below the limit of one: nearly all units are.

    Measured by a faster encoder. It spells floats otherwise (`null` for `-Infinity`), but never
    at a third of the length.
    """
    room = MAX_OBJECT_BYTES // 3
    try:
        for manifest in manifests:
            room -= len(_encode(manifest.body))
    except (msgspec.MsgspecError, TypeError, ValueError):
        return False
    return room >= 0


def check_sizes(manifests: tuple[Manifest, ...]) -> list[Finding]:
    """Findings `object-too-large` and `unit-too-large`, by the length of the JSON."""
    if are_small(manifests):
        return []
    findings: list[Finding] = []
    total = 0
    for manifest in manifests:
        size = len(canonical_json(manifest.body).encode())
        total += size
        if size > MAX_OBJECT_BYTES:
            message = f"{manifest.ref} has {size} bytes, at most {MAX_OBJECT_BYTES} are allowed"
            findings.append(Finding(manifest.source, "object-too-large", message))
    if total > MAX_UNIT_BYTES:
        message = f"the unit has {total} bytes, at most {MAX_UNIT_BYTES} are allowed"
        findings.append(Finding(manifests[0].source, "unit-too-large", message))
    return findings

"""The inventory as text of ConfigMaps: deterministic bytes, no shard over the cap.

apply.store writes the texts that come out and reads them back with the same module. A
shard holds one JSON line per unit; units are spread by their hash, and a unit of more
objects than a line may hold is cut into several lines that are spread by themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator

from stoker.model.codec import canonical_json
from stoker.model.parsing import parsed_json
from stoker.model.refs import ObjectRef, UnitRef, ref_from_manifest

__all__ = [
    "MAX_LINE_OBJECTS",
    "MAX_SHARD_BYTES",
    "adopted_in_shards",
    "entries_from_shards",
    "shards_from_entries",
]

MAX_SHARD_BYTES = 512 * 1024
"""Half of what a ConfigMap holds (ssa-facts row 76), so that a merge never fails on size."""
MAX_LINE_OBJECTS = 2_000
"""Objects of one unit in one line; more are spread over several shards."""
MAX_SHARDS = 4_096
_ADOPTED = "adopted"
"""Sixth word in the row of an object that somebody else made; other rows have five."""


def shards_from_entries(
    entries: Iterable[tuple[UnitRef, ObjectRef, str]],
    *,
    adopted: Collection[ObjectRef] = (),
    cap_bytes: int = MAX_SHARD_BYTES,
    line_objects: int = MAX_LINE_OBJECTS,
) -> tuple[str, ...]:
    """Texts of the shards, by index; equal entries give equal bytes in any order.

    The count of shards is the smallest power of two with which every shard stays within
    `cap_bytes`. Raises ValueError when 4,096 shards do not suffice.
    """
    lines = _lines(entries, line_objects, cap_bytes // 2, adopted)
    count = 1
    while count <= MAX_SHARDS:
        texts = _spread(lines, count)
        if all(len(text.encode()) <= cap_bytes for text in texts):
            return texts
        count *= 2
    message = f"the inventory does not fit into {MAX_SHARDS} shards of {cap_bytes} bytes"
    raise ValueError(message)


def entries_from_shards(texts: Iterable[str]) -> tuple[tuple[UnitRef, ObjectRef, str], ...]:
    """Read what `shards_from_entries` wrote, sorted; raises ValueError on any other text."""
    found: list[tuple[UnitRef, ObjectRef, str]] = []
    for text in texts:
        for line in text.splitlines():
            found.extend(_read_line(line))
    return tuple(sorted(found))


def adopted_in_shards(texts: Iterable[str]) -> frozenset[ObjectRef]:
    """The adopted objects among `entries_from_shards`; raises ValueError as that does."""
    return frozenset(
        _ref(*row[:4])
        for text in texts
        for line in text.splitlines()
        if f'"{_ADOPTED}"' in line
        for row in parsed_json(line)["objects"]
        if row[5:] == [_ADOPTED]
    )


def _lines(
    entries: Iterable[tuple[UnitRef, ObjectRef, str]],
    line_objects: int,
    line_bytes: int,
    adopted: Collection[ObjectRef],
) -> list[tuple[str, str]]:
    """Give (what decides the shard, line) sorted by unit and part."""
    units: dict[UnitRef, list[tuple[ObjectRef, str]]] = {}
    for unit, ref, uid in entries:
        units.setdefault(unit, []).append((ref, uid))
    lines = []
    for unit in sorted(units):
        name = [unit.kind, unit.namespace, unit.name]
        for number, rows in enumerate(
            _parts(sorted(units[unit]), line_objects, line_bytes, adopted)
        ):
            line = canonical_json({"objects": rows, "unit": name})
            lines.append((f"{unit}#{number}", line))
    return lines


def _parts(
    objects: list[tuple[ObjectRef, str]],
    line_objects: int,
    line_bytes: int,
    adopted: Collection[ObjectRef],
) -> Iterator[list[list[str]]]:
    """Cut the objects of a unit (at least one), so that no part passes either limit."""
    rows: list[list[str]] = []
    size = 0
    for ref, uid in objects:
        row = [ref.api_version, ref.kind, ref.namespace, ref.name, uid]
        row += [_ADOPTED] if ref in adopted else []
        size += len(canonical_json(row).encode()) + 1
        if rows and (len(rows) == line_objects or size > line_bytes):
            yield rows
            rows, size = [], len(canonical_json(row).encode()) + 1
        rows.append(row)
    yield rows


def _spread(lines: list[tuple[str, str]], count: int) -> tuple[str, ...]:
    shards: list[list[str]] = [[] for _ in range(count)]
    for key, line in lines:
        number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
        shards[number % count].append(line + "\n")
    return tuple("".join(shard) for shard in shards)


def _read_line(line: str) -> list[tuple[UnitRef, ObjectRef, str]]:
    try:
        data = parsed_json(line)
        unit = UnitRef(*(str(part) for part in data["unit"]))
        return [
            (unit, _ref(api_version, kind, namespace, name), str(uid))
            for api_version, kind, namespace, name, uid, *_ in data["objects"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        message = f"not a line of an inventory: {line[:80]!r}"
        raise ValueError(message) from error


def _ref(api_version: str, kind: str, namespace: str, name: str) -> ObjectRef:
    return ref_from_manifest(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"namespace": namespace, "name": name},
        }
    )

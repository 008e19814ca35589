"""How long this fleet's own starts took: a ring a kind of start, and starts under way.

An input of decide, returned in `Plan.starts`, kept beside the units' history in the cluster.
Bounded in entries and so in bytes; lost or unreadable, every estimate is a prior again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "MAX_KEYS",
    "MAX_OPEN",
    "MAX_SAMPLES",
    "NO_STARTS",
    "OpenStart",
    "StartSample",
    "Starts",
]

MAX_SAMPLES = 12
"""Of one kind of start: the newest. Older ones tell of another image, disk or network."""
MAX_KEYS = 128
"""Kinds of starts; those that were not seen for longest are forgotten."""
MAX_OPEN = 256
"""Starts under way that are followed at a time; of further ones nothing is learned."""


@dataclass(frozen=True, slots=True, order=True)
class StartSample:
    """A start that ended well at `ready_ms` (epoch): milliseconds until it was scheduled, from
    then until the engine ran, and from then until it was Ready.
    """

    ready_ms: int
    schedule_ms: int
    fetch_ms: int
    engine_ms: int

    @property
    def total_ms(self) -> int:
        """From creation to Ready."""
        return self.schedule_ms + self.fetch_ms + self.engine_ms


@dataclass(frozen=True, slots=True, order=True)
class OpenStart:
    """A pod on its way, by UID. `key` is what kind of start it is on `node`, by what that
    node held when it was first seen. Nothing is learned of a `spoiled` one.
    """

    uid: str
    node: str
    key: str
    spoiled: bool = False


@dataclass(frozen=True, slots=True)
class Starts:
    """All of it. Rings are sorted by key, samples by instant; open starts by UID."""

    rings: tuple[tuple[str, tuple[StartSample, ...]], ...] = ()
    open: tuple[OpenStart, ...] = ()

    @classmethod
    def bounded(
        cls, rings: Mapping[str, Iterable[StartSample]], opened: Iterable[OpenStart]
    ) -> Starts:
        """The newest of everything, within the bounds."""
        kept = {key: tuple(sorted(ring)[-MAX_SAMPLES:]) for key, ring in rings.items()}
        newest = sorted((ring[-1].ready_ms, key) for key, ring in kept.items() if ring)
        keys = sorted(key for _, key in newest[-MAX_KEYS:])
        return cls(tuple((key, kept[key]) for key in keys), tuple(sorted(opened)[:MAX_OPEN]))

    def text(self) -> str:
        """Compact JSON, empty where nothing is known."""
        if not self.rings and not self.open:
            return ""
        data = {
            "rings": {
                key: [[s.ready_ms, s.schedule_ms, s.fetch_ms, s.engine_ms] for s in ring]
                for key, ring in self.rings
            },
            "open": [[o.uid, o.node, o.key, o.spoiled] for o in self.open],
        }
        return json.dumps(data, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Starts:
        """Read what `text` gave; what it did not write is left out, as lost."""
        try:
            data = json.loads(text)
        except ValueError:
            return cls()
        if not isinstance(data, dict):
            return cls()
        rings, opened = data.get("rings"), data.get("open")
        return cls.bounded(
            {
                key: [StartSample(*row) for row in _rows(ring) if _are_times(row)]
                for key, ring in (rings.items() if isinstance(rings, dict) else ())
            },
            [OpenStart(*row) for row in _rows(opened) if _is_open(row)],
        )


NO_STARTS = Starts()
"""Where nothing is learned."""


def _rows(value: Any) -> list[list[Any]]:
    found = value if isinstance(value, list) else []
    return [row for row in found if isinstance(row, list) and len(row) == 4]


def _are_times(row: list[Any]) -> bool:
    return all(type(value) is int and value >= 0 for value in row)


def _is_open(row: list[Any]) -> bool:
    return all(isinstance(value, str) for value in row[:3]) and isinstance(row[3], bool)

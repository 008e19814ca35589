"""Decision records for the data ref: what decide was given and what it answered.

In: the decide input and plan of passes whose decision changed. Out: files for
`refs/stoker/<fleet>`. The input is whole whenever a snapshot is written (at most every
5 minutes) and else a difference to the record before, so `replay` starts at the last
whole one and patches on. Used by publish, on its own thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stoker.model.codec import canonical_json, to_data
from stoker.model.fleet import Desired, SnapshotDetail
from stoker.model.history import History
from stoker.model.plan import Plan
from stoker.model.shape import UnitShape
from stoker.model.snapshot import Snapshot
from stoker.model.times import rfc3339, to_milliseconds
from stoker.report.record_diff import difference
from stoker.report.report import decision_digest
from stoker.report.snapshot_files import MAX_BYTES, is_truncated, own_images_only, snapshot_files

__all__ = ["DecisionInputs", "RecordBook", "decide_input", "record_path"]

SNAPSHOT_EVERY_MS = 5 * 60_000
KEPT_MS = 14 * 86_400_000
WHOLE_INPUT, WHOLE_PLAN = "input.json", "plan.json"
"""The last whole input (nodes stand in the snapshot's shards) and the plan made from it."""


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """One call of decide and its answer. `history` is the one before it."""

    desired: Desired
    shapes: tuple[UnitShape, ...]
    snapshot: Snapshot
    history: History
    plan: Plan
    digest: str = ""
    """`decision_digest(plan)` where it is known already."""


def decide_input(call: DecisionInputs) -> dict[str, Any]:
    """The canonical input of a decision: from it alone the plan can be made again."""
    return {
        "desired": to_data(call.desired),
        "shapes": to_data(call.shapes),
        "snapshot": to_data(own_images_only(call.snapshot, call.shapes, call.desired)),
        "history": to_data(call.history),
        "now": call.plan.now_ms,
    }


def record_path(now_ms: int, digest: str) -> str:
    """`records/2026-11-29/030502Z-7f21ac3.json`."""
    day, _, clock = rfc3339(now_ms).partition("T")
    return f"records/{day}/{clock.replace(':', '')}-{digest[:7]}.json"


@dataclass(slots=True)
class RecordBook:
    """Turns decisions into files; remembers the last one written. For one thread.

    `salt` (the fleet id) goes into hashed names. Call `written` once the files are pushed,
    else the next call makes them again from what is still current.
    """

    version: str
    salt: str
    _last: dict[str, Any] | None = field(default=None, init=False)
    _last_plan: Any = field(default=None, init=False)
    _last_path: str = field(default="", init=False)
    _last_digest: str = field(default="", init=False)
    _snapshot_at_ms: int | None = field(default=None, init=False)
    _paths: list[str] = field(default_factory=list, init=False)

    def remember(self, paths: Iterable[str]) -> None:
        """Take over the record files that stand on the ref, so that old ones get deleted."""
        self._paths = sorted(path for path in paths if path.startswith("records/"))

    def files(
        self, call: DecisionInputs, detail: SnapshotDetail, now_ms: int
    ) -> dict[str, bytes | None]:
        """What to commit for a decision; nothing when it is the one recorded last.

        Files of records older than 14 days come as None (delete).
        """
        digest = call.digest or decision_digest(call.plan)
        if digest == self._last_digest:
            return {}
        path = record_path(call.plan.now_ms, digest)
        record: dict[str, Any] = {
            "stokerVersion": self.version,
            "sourceRevision": str(call.desired.revision),
            "now": call.plan.now_ms,
            "digest": f"sha256:{digest}",
        }
        files: dict[str, bytes | None] = {}
        if detail is SnapshotDetail.FULL:
            files |= self._full(call, record, now_ms)
        elif detail is SnapshotDetail.HASHED and self._snapshot_due(now_ms):
            files |= snapshot_files(call.snapshot, call.desired, detail, self.salt)
            self._snapshot_at_ms = now_ms
        files[path] = _json(record)
        self._last_digest, self._last_path = digest, path
        self._paths.append(path)
        return files | self._expired(now_ms)

    def forget(self) -> None:
        """The last files did not get out: the next record must not build on them."""
        self._last, self._last_plan, self._last_digest = None, None, ""
        self._last_path, self._snapshot_at_ms = "", None

    def _full(
        self, call: DecisionInputs, record: dict[str, Any], now_ms: int
    ) -> dict[str, bytes | None]:
        """Fill in input, history and plan; whole ones go to files of their own."""
        data, plan = decide_input(call), to_data(call.plan)
        # What starts took is in the input, whole or as a difference: a record stays small.
        record["history"] = {k: v for k, v in data["history"].items() if k != "starts"}
        change = None if self._last is None else difference(self._last, data)
        plan_change = difference(self._last_plan, plan)
        self_contained = self._snapshot_due(now_ms) or change is None
        before = self._last_path
        self._last, self._last_plan = data, plan
        if not self_contained:
            record["before"] = before
            record["input"] = {"difference": change}
            record["plan"] = {"difference": plan_change}
            return {}
        self._snapshot_at_ms = now_ms
        snapshot = own_images_only(call.snapshot, call.shapes, call.desired)
        files = snapshot_files(snapshot, call.desired, SnapshotDetail.FULL, self.salt)
        without_nodes = {**data, "snapshot": {**data["snapshot"], "nodes": []}}
        whole = {WHOLE_INPUT: _json(without_nodes), WHOLE_PLAN: _json(plan)}
        size = sum(len(content) for content in (*files.values(), *whole.values()))
        if size > MAX_BYTES or is_truncated(files):
            record["truncated"] = "the input is over 5 MiB and cannot be replayed"
            self._last, self._last_plan = None, None
            return dict(files)
        record["input"] = {"files": [WHOLE_INPUT, *sorted(files)]}
        record["plan"] = {"files": [WHOLE_PLAN]}
        return {**files, **whole}

    def _snapshot_due(self, now_ms: int) -> bool:
        return self._snapshot_at_ms is None or now_ms >= self._snapshot_at_ms + SNAPSHOT_EVERY_MS

    def _expired(self, now_ms: int) -> dict[str, bytes | None]:
        old = [path for path in self._paths if _is_before(path, now_ms - KEPT_MS)]
        self._paths = [path for path in self._paths if path not in old]
        return dict.fromkeys(old)


def _is_before(path: str, limit_ms: int) -> bool:
    day = path.split("/")[1] if path.count("/") == 2 else ""
    try:
        return to_milliseconds(f"{day}T23:59:59Z") < limit_ms
    except ValueError:
        return False


def _json(data: Any) -> bytes:
    return (canonical_json(data) + "\n").encode()

"""The copy of what starts took on the data ref, so that it can be read without the cluster.

In: the newest call of decide. Out: `starts.json` beside the snapshot, once an hour where it
changed. Bounded by what is kept at all (model/start_samples.py). Called by publish_records.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from stoker.decide.start_kinds import start_kinds
from stoker.model.codec import canonical_json, to_data
from stoker.model.fleet import SnapshotDetail
from stoker.model.start_samples import Starts
from stoker.model.times import rfc3339
from stoker.report.records import DecisionInputs

__all__ = ["STARTS_FILE", "StartsCopy"]

STARTS_FILE = "starts.json"
EVERY_MS = 3_600_000


@dataclass(slots=True)
class StartsCopy:
    """Remembers what it wrote last; for one thread."""

    _at_ms: int | None = field(default=None, init=False)
    _text: str = field(default="", init=False)

    def files(
        self, call: DecisionInputs | None, detail: SnapshotDetail, now_ms: int
    ) -> dict[str, bytes | None]:
        """The file, or nothing while it is not due. Starts under way are left out: they name
        nodes and pods, and nobody who plans can follow them.
        """
        if call is None or detail is SnapshotDetail.NONE:
            return {}
        if self._at_ms is not None and now_ms < self._at_ms + EVERY_MS:
            return {}
        starts: Starts = replace(call.plan.starts, open=())
        text = starts.text()
        if not text or text == self._text:
            return {}
        kinds = start_kinds(call.desired, call.shapes, call.snapshot, starts)
        data = {
            "takenAt": rfc3339(call.plan.now_ms),
            "sourceRevision": str(call.desired.revision),
            "kinds": {key: to_data(kind) for key, kind in kinds.items()},
            "starts": json.loads(text),
        }
        self._at_ms, self._text = now_ms, text
        return {STARTS_FILE: (canonical_json(data) + "\n").encode()}

    def forget(self) -> None:
        """The last file did not get out: the next one is due at once."""
        self._at_ms, self._text = None, ""

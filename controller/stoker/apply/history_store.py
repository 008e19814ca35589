"""What decide learned, in one ConfigMap beside the inventory.

History comes in after a pass and goes out at the start of a process. Losing it is safe:
every window then starts now and nothing shrinks. Used by reconcile and the command line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from stoker.errors import StokerError
from stoker.kube.errors import NotFound
from stoker.log import get_log
from stoker.model.history import History
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.start_samples import NO_STARTS, Starts
from stoker.objects.names import MANAGED_BY, manager_of

__all__ = ["HISTORY_LABEL", "HistoryStore"]

_log = get_log("history")

ADOPTED = "adopted"
"""Key of the commit that is worked on, beside the units' entries; theirs hold two dots."""
STARTS = "starts"
"""Key of what starts took, as JSON."""
JOBS = "jobs"
"""Key of what is known of Jobs that vanish when they are done, as JSON."""
HISTORY_LABEL = "stoker.dev/history"
MAX_BYTES = 900_000
"""A ConfigMap holds 1 MiB; beyond this the history is kept in memory only."""


class HistoryStore:
    """One fleet's history. Belongs to the reconciler thread; only the leader writes."""

    def __init__(self, cluster: Cluster, fleet_id: str, *, namespace: str) -> None:
        self._cluster = cluster
        self._fleet_id = fleet_id
        self._ref = ObjectRef("", "ConfigMap", namespace, f"stoker-{fleet_id}-history")
        self._saved: dict[str, str] | None = None
        self._starts = (NO_STARTS, "")
        self.adopted = ""
        """The commit that was worked on, as `read` found it; empty when it is not known."""

    def read(self) -> History:
        """What the cluster holds; empty when there is none. Raises what the port raises."""
        try:
            data = self._cluster.get(self._ref).get("data") or {}
        except NotFound:
            data = {}
        self._saved = {str(key): str(text) for key, text in data.items()}
        self.adopted = self._saved.get(ADOPTED, "")
        records = [
            (UnitRef(*key.split(".", 2)), text)
            for key, text in sorted(self._saved.items())
            if key.count(".") >= 2
        ]
        return History.from_records(records, Starts.from_text(self._saved.get(STARTS, "")))

    def read_starts(self) -> History:
        """What starts took and which failed, and how updates go, for who looks on or makes one
        pass; of what cannot be read nothing is known, so that every estimate is a prior.
        """
        try:
            return self.read().of_updates()
        except StokerError as error:
            _log.info("history.unread", code=error.code, message=error.message)
            return History()

    def read_jobs(self) -> Mapping[str, str]:
        """What was saved of Jobs; reads the cluster where nothing was read yet."""
        if self._saved is None:
            self.read()
        try:
            found = json.loads((self._saved or {}).get(JOBS, "{}"))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def save(
        self, history: History, adopted: str = "", jobs: Mapping[str, str] | None = None
    ) -> bool:
        """Make the cluster hold it; nothing is sent when it does. False when it could not.

        `adopted` is the commit that is worked on, where that may be another than the newest;
        `jobs` what last stood of Jobs that vanish (None: as it was saved).
        """
        data = {f"{ref.kind}.{ref.namespace}.{ref.name}": text for ref, text in history.records()}
        if history.starts is not self._starts[0]:
            self._starts = (history.starts, history.starts.text())
        if self._starts[1]:
            data[STARTS] = self._starts[1]
        if adopted:
            data[ADOPTED] = adopted
        if jobs is None:
            jobs = self.read_jobs() if self._saved is not None else {}
        if jobs:
            data[JOBS] = json.dumps(dict(sorted(jobs.items())))
        if data == (self._saved or {}):
            return True
        if sum(len(key) + len(text) for key, text in data.items()) > MAX_BYTES:
            _log.warning("history.unsaved", why="too large")
            return False
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self._ref.name,
                "namespace": self._ref.namespace,
                "labels": {HISTORY_LABEL: self._fleet_id, MANAGED_BY: "stoker"},
            },
            "data": data,
        }
        try:
            self._cluster.apply(body, manager=manager_of(self._fleet_id), force=True)
        except StokerError as error:
            _log.warning("history.unsaved", code=error.code, message=error.message)
            return False
        self._saved = data
        return True

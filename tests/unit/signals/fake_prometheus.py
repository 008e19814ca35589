"""Prometheus' query API on loopback, as its documentation gives it, with answers set by a test."""

from __future__ import annotations

import json
import re
from typing import Any

from stoker.model.times import rfc3339
from stoker.sim.clock import DEFAULT_START_MS
from unit.node.metadata_services import Asked, MetadataService, Reply

QUERY_PATH = "/api/v1/query"
RUNTIME_PATH = "/api/v1/status/runtimeinfo"


def vector(*results: tuple[dict[str, str], Any, Any]) -> dict[str, Any]:
    """Data of an instant vector: labels, time in seconds, value as text."""
    return {
        "resultType": "vector",
        "result": [{"metric": labels, "value": [at, text]} for labels, at, text in results],
    }


class FakePrometheus(MetadataService):
    """`data` is what every query gives, `by_query` what those that contain a text give.

    `body` replaces a whole answer of the query API, `started_ms` None is a server that does not
    tell when it started.
    """

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.data = data
        self.by_query: dict[str, dict[str, Any]] = {}
        self.extra: dict[str, Any] = {}
        self.body: Any = None
        self.status = 200
        self.started_ms: int | None = DEFAULT_START_MS - 3_600_000

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def reply(self, request: Asked) -> Reply:
        if request.path == RUNTIME_PATH:
            return self._runtime()
        if request.path != QUERY_PATH:
            return Reply(404, "404 page not found")
        if self.body is not None:
            return Reply(self.status, self.body)
        query = request.query.get("query", "")
        if not re.fullmatch(r"\d+(ms|[smhdwy])", request.query.get("timeout", "1s")):
            return Reply(400, json.dumps({"status": "error", "error": "cannot parse timeout"}))
        data = next((d for text, d in self.by_query.items() if text in query), self.data)
        return Reply(self.status, json.dumps({"status": "success", "data": data, **self.extra}))

    def _runtime(self) -> Reply:
        if self.started_ms is None:
            return Reply(404, "404 page not found")
        moment = rfc3339(self.started_ms).replace("Z", ".123456789Z")
        return Reply(200, json.dumps({"status": "success", "data": {"startTime": moment}}))

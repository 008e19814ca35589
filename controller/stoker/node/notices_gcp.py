"""Preemption of a Google Compute Engine instance, by waiting for its metadata to change.

Source: Compute Engine, "Query VM metadata" (waiting for changes, ETags, the flavour header)
and "Preemptible VM instances" (30 s, best effort); semantics.md 1.12.
"""

from __future__ import annotations

from stoker.fetch import Answer
from stoker.model.ports import Clock
from stoker.node.metadata import Metadata, refused_by
from stoker.node.notice import NodeNotice, NoticeKind, Poll, Told, Unknown

__all__ = ["GcpNotices"]

SOURCE = "gcp"
LEAD_MS = 30_000
"""From the notice to the end, at best."""
WAIT_SECONDS = 10
"""How long the service may hold a question; a stop of the reporter waits for none."""
PAUSE_SECONDS = 0.2
"""After an answer to a question that waited; the wait is the pause."""
PAUSE_UNKNOWN_SECONDS = 5.0
_PATH = "/computeMetadata/v1/instance/preempted"
_HEADERS = {"Metadata-Flavor": "Google"}


class GcpNotices:
    """The NoticeSource of a Compute Engine instance.

    The first question is answered at once, later ones wait until the answer is another.
    """

    def __init__(
        self, metadata: Metadata, clock: Clock, *, wait_seconds: int = WAIT_SECONDS
    ) -> None:
        self._metadata = metadata
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._etag = ""
        self._pause = PAUSE_SECONDS

    @property
    def pause_seconds(self) -> float:
        """How long to wait before it is asked again."""
        return self._pause

    def poll(self) -> Poll:
        """Whether the machine is being preempted."""
        path, seconds = _PATH, self._metadata.seconds
        if self._etag:
            path += f"?wait_for_change=true&timeout_sec={self._wait_seconds}&last_etag={self._etag}"
            seconds += self._wait_seconds
        answer = self._metadata.ask(path, _HEADERS, seconds=seconds)
        preempted = _preempted(answer) if isinstance(answer, Answer) else None
        self._etag = _etag(answer) if isinstance(answer, Answer) and preempted is not None else ""
        self._pause = PAUSE_SECONDS if self._etag else PAUSE_UNKNOWN_SECONDS
        if preempted is None:
            return Unknown(refused_by(SOURCE, answer))
        if not preempted:
            return Told()
        now_ms = self._clock.now_ms()
        return Told(NodeNotice(NoticeKind.SPOT, SOURCE, "preempted", now_ms, now_ms + LEAD_MS))

    def acknowledge(self, notice: NodeNotice) -> bool:
        """Google waits for nobody."""
        del notice
        return False


def _preempted(answer: Answer) -> bool | None:
    """None when it is not Google's answer to this question."""
    if answer.status != 200 or answer.headers.get("metadata-flavor") != "Google":
        return None
    return {"TRUE": True, "FALSE": False}.get(answer.text.strip())


def _etag(answer: Answer) -> str:
    tag = answer.headers.get("etag", "").strip('"')
    return tag if tag.isascii() and tag.isalnum() and len(tag) <= 64 else ""

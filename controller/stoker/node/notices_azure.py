"""Scheduled events of an Azure machine, and their acknowledgement.

Source: "Azure Metadata Service: Scheduled Events for Linux VMs" (events name machines of the
whole scale set; the first call may take two minutes; an acknowledged event starts at once);
semantics.md 1.12.
"""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from typing import Any

from stoker.fetch import Answer
from stoker.model.ports import Clock
from stoker.node.metadata import Metadata, json_object, refused_by
from stoker.node.notice import NodeNotice, NoticeKind, Poll, Told, Unknown, most_urgent

__all__ = ["AzureNotices"]

SOURCE = "azure"
FIRST_SECONDS = 125.0
"""The service is switched on by the first question, which may take two minutes."""
PAUSE_SECONDS = 1.0
"""How often Azure says to look."""
PAUSE_UNKNOWN_SECONDS = 5.0
_EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
_NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
_HEADERS = {"Metadata": "true"}
_KINDS = {
    "Preempt": NoticeKind.SPOT,
    "Terminate": NoticeKind.TERMINATION,
    "Reboot": NoticeKind.MAINTENANCE,
    "Redeploy": NoticeKind.MAINTENANCE,
}
"""A Freeze pauses the machine for seconds and takes nothing away, so it is no notice."""
_OVER = frozenset({"Completed", "Canceled"})


class AzureNotices:
    """The NoticeSource of an Azure virtual machine; other machines' events are left alone."""

    def __init__(
        self, metadata: Metadata, clock: Clock, *, first_seconds: float = FIRST_SECONDS
    ) -> None:
        self._metadata = metadata
        self._clock = clock
        self._first_seconds = first_seconds
        self._name = ""
        self._answered = False
        self._deadlines: dict[str, int] = {}

    @property
    def pause_seconds(self) -> float:
        """How long to wait before it is asked again."""
        return PAUSE_SECONDS if self._answered else PAUSE_UNKNOWN_SECONDS

    def poll(self) -> Poll:
        """The most urgent event that takes this machine away."""
        if not self._name:
            named = self._metadata.ask(_NAME, _HEADERS)
            if not (isinstance(named, Answer) and named.status == 200 and _is_name(named.text)):
                return Unknown(refused_by(f"{SOURCE}, for the machine's name", named))
            self._name = named.text
        answer = self._metadata.ask(
            _EVENTS, _HEADERS, seconds=None if self._answered else self._first_seconds
        )
        events = _events(answer) if isinstance(answer, Answer) else None
        self._answered = events is not None
        if events is None:
            return Unknown(refused_by(SOURCE, answer))
        notices = [notice for event in events if (notice := self._notice(event)) is not None]
        current = {notice.id for notice in notices}
        self._deadlines = {id_: ms for id_, ms in self._deadlines.items() if id_ in current}
        return Told(most_urgent(notices))

    def acknowledge(self, notice: NodeNotice) -> bool:
        """Let the event start: only once nothing runs here that it would cut off."""
        body = json.dumps({"StartRequests": [{"EventId": notice.id}]}).encode()
        answer = self._metadata.ask(_EVENTS, _HEADERS, method="POST", body=body)
        return isinstance(answer, Answer) and answer.status == 200

    def _notice(self, event: dict[str, Any]) -> NodeNotice | None:
        """The event as a notice; None when it is over, harmless or another machine's."""
        kind = _KINDS.get(str(event.get("EventType")))
        event_id, resources = event.get("EventId"), event.get("Resources")
        if kind is None or not isinstance(event_id, str) or not isinstance(resources, list):
            return None
        ours = self._name.casefold() in {str(each).casefold() for each in resources}
        if not ours or event.get("EventStatus") in _OVER:
            return None
        now_ms = self._clock.now_ms()
        deadline_ms = _instant(event.get("NotBefore"))
        if deadline_ms is not None:
            self._deadlines[event_id] = deadline_ms
        elif event.get("EventStatus") == "Started":
            # It has no NotBefore any more: the end may come at any moment.
            self._deadlines[event_id] = min(self._deadlines.get(event_id, now_ms), now_ms)
        return NodeNotice(kind, SOURCE, event_id, now_ms, self._deadlines.get(event_id))


def _events(answer: Answer) -> list[dict[str, Any]] | None:
    """None when the answer is no list of events; what is no event in it is left out."""
    document = json_object(answer) if answer.status == 200 else None
    events = None if document is None else document.get("Events")
    if not isinstance(events, list) or "DocumentIncarnation" not in (document or {}):
        return None
    return [event for event in events if isinstance(event, dict)]


def _instant(value: object) -> int | None:
    """`Mon, 19 Sep 2016 18:29:47 GMT` in ms; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return None if moment.tzinfo is None else round(moment.timestamp() * 1000)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 255 and all(c.isalnum() or c in "-_." for c in text)

"""Spot interruptions and rebalance recommendations of AWS, by IMDSv2.

Source: EC2 user guide, "Spot Instance interruption notices", "EC2 instance rebalance
recommendations", "Use the Instance Metadata Service" (semantics.md 1.12).
"""

from __future__ import annotations

from typing import Any

from stoker.fetch import Answer, NoAnswer
from stoker.model.ports import Clock
from stoker.model.times import instant_of
from stoker.node.metadata import Metadata, json_object, refused_by
from stoker.node.notice import Hint, NodeNotice, NoticeKind, Poll, Told, Unknown

__all__ = ["AwsNotices"]

SOURCE = "aws"
TTL_SECONDS = 21_600
"""The longest that a token may live."""
LEAD_MS = 120_000
"""What a spot interruption leaves at best, where its time cannot be read."""
PAUSE_SECONDS = 5.0
"""How often AWS says to look."""
_TOKEN_HEADER = "X-aws-ec2-metadata-token"  # noqa: S105 - the name of a header
_ACTIONS = frozenset({"terminate", "stop", "hibernate"})


class AwsNotices:
    """The NoticeSource of an EC2 instance. Holds one token, and gets another when it is refused."""

    def __init__(self, metadata: Metadata, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        self._token = ""
        self._why = ""
        self._hint: Hint | None = None

    @property
    def pause_seconds(self) -> float:
        """How long to wait before it is asked again."""
        return PAUSE_SECONDS

    def poll(self) -> Poll:
        """Both documents; without an answer about interruptions nothing is known."""
        spot = self._ask("/latest/meta-data/spot/instance-action")
        if isinstance(spot, str):
            return Unknown(spot)
        notice = None
        if spot is not None:
            notice = self._notice(spot)
            if notice is None:
                return Unknown(f"{SOURCE}: an interruption that cannot be read")
        early = self._ask("/latest/meta-data/events/recommendations/rebalance")
        if not isinstance(early, str):  # else it is unknown, and the last one stands
            self._hint = None if early is None else self._recommended(early)
        return Told(notice, self._hint)

    def acknowledge(self, notice: NodeNotice) -> bool:
        """AWS waits for nobody."""
        del notice
        return False

    def _notice(self, spot: dict[str, Any]) -> NodeNotice | None:
        action, time = spot.get("action"), spot.get("time")
        if action not in _ACTIONS:
            return None
        now_ms = self._clock.now_ms()
        deadline_ms = instant_of(time)
        if deadline_ms is None:
            return NodeNotice(NoticeKind.SPOT, SOURCE, str(action), now_ms, now_ms + LEAD_MS)
        return NodeNotice(NoticeKind.SPOT, SOURCE, f"{action} {time}", now_ms, deadline_ms)

    def _recommended(self, early: dict[str, Any]) -> Hint:
        at_ms = instant_of(early.get("noticeTime"))
        if at_ms is None:
            at_ms = self._clock.now_ms() if self._hint is None else self._hint.at_ms
        return Hint("rebalance", SOURCE, at_ms)

    def _ask(self, path: str) -> dict[str, Any] | str | None:
        """A document, None where there is none (404), or the reason why that is unknown."""
        answer = self._with_token(path)
        if isinstance(answer, Answer) and answer.status == 404:
            return None
        if isinstance(answer, Answer) and answer.status == 200:
            found = json_object(answer)
            if found is not None:
                return found
        return self._why or refused_by(SOURCE, answer)

    def _with_token(self, path: str) -> Answer | NoAnswer:
        """Ask with the token at hand, once more with a new one where that is refused."""
        self._why = ""
        answer: Answer | NoAnswer = NoAnswer("no token")
        for _ in range(2):
            if not self._token and not self._renew():
                return answer
            answer = self._metadata.ask(path, {_TOKEN_HEADER: self._token})
            if not (isinstance(answer, Answer) and answer.status == 401):
                return answer
            self._token = ""
        return answer

    def _renew(self) -> bool:
        headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(TTL_SECONDS)}
        answer = self._metadata.ask("/latest/api/token", headers, method="PUT")
        if not isinstance(answer, Answer) or answer.status != 200 or not _is_token(answer.text):
            self._why = refused_by(f"{SOURCE}, for a token", answer)
            if isinstance(answer, NoAnswer) and not answer.refused:
                self._why += " (a pod needs hop limit 2, or the host's network)"
            return False
        self._token = answer.text
        return True


def _is_token(text: str) -> bool:
    """What can be sent back in a header: a page of HTML cannot."""
    return 0 < len(text) <= 1024 and text.isascii() and text.isprintable() and " " not in text

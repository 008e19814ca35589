"""Which cloud's metadata service to ask: the one that was named, or the first that answers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from stoker.model.ports import Clock
from stoker.node.metadata import LINK_LOCAL, Metadata
from stoker.node.notice import NodeNotice, NoticeSource, Poll, Told, Unknown
from stoker.node.notices_aws import AwsNotices
from stoker.node.notices_azure import AzureNotices
from stoker.node.notices_gcp import GcpNotices

__all__ = ["Cloud", "FirstThatAnswers", "notice_source"]

PAUSE_UNKNOWN_SECONDS = 60.0
"""Between questions of a machine that may be in no cloud at all."""


class Cloud(StrEnum):
    """Where the node runs, for its notices."""

    AUTO = "auto"
    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"
    NONE = "none"


def notice_source(
    cloud: Cloud, clock: Clock, *, address: str = LINK_LOCAL, seconds: float = 2.0
) -> NoticeSource | None:
    """The source of a cloud's notices; None for no cloud. Raises Stalled for a bad address."""
    metadata = Metadata(address, seconds)
    match cloud:
        case Cloud.AWS:
            return AwsNotices(metadata, clock)
        case Cloud.GCP:
            return GcpNotices(metadata, clock)
        case Cloud.AZURE:
            return AzureNotices(metadata, clock)
        case Cloud.AUTO:
            return FirstThatAnswers(
                (
                    AwsNotices(metadata, clock),
                    GcpNotices(metadata, clock),
                    AzureNotices(metadata, clock),
                )
            )
        case Cloud.NONE:
            return None


class FirstThatAnswers:
    """Asks one source after another until one answers, and that one from then on."""

    def __init__(self, sources: Sequence[NoticeSource]) -> None:
        self._sources = tuple(sources)
        self._found: NoticeSource | None = None

    @property
    def pause_seconds(self) -> float:
        """How long to wait before it is asked again."""
        return PAUSE_UNKNOWN_SECONDS if self._found is None else self._found.pause_seconds

    def poll(self) -> Poll:
        """The answer of the one that was found; else all the reasons why none was."""
        if self._found is not None:
            return self._found.poll()
        reasons = []
        for source in self._sources:
            poll = source.poll()
            if isinstance(poll, Told):
                self._found = source
                return poll
            reasons.append(poll.why)
        return Unknown("; ".join(reasons))

    def acknowledge(self, notice: NodeNotice) -> bool:
        """Through the one that was found."""
        return self._found is not None and self._found.acknowledge(notice)

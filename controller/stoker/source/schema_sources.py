"""What a Fleet file may say about servers that are asked for readings: blocks, checks, conversion.

Used by the schema of Fleet; services name these sources in `scaling`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from stoker.model.scaling import MetricSource, MetricSourceType
from stoker.source.places import Field as FieldPath
from stoker.source.schema import LabelName, Line, Strict

__all__ = ["MetricSourceBlock", "source_problems", "sources_of", "url_fault"]

_SECRET_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"  # noqa: S105 - a pattern


class SecretNameBlock(Strict):
    """A Secret in the controller's own namespace."""

    name: Annotated[str, Field(pattern=_SECRET_NAME, max_length=253)]
    """Its name."""


class HeadersBlock(Strict):
    """Headers that are sent with every request."""

    secret_ref: SecretNameBlock
    """A Secret whose keys are names of headers, its values theirs."""


class ServerBlock(Strict):
    """Where the server answers."""

    url: Annotated[Line, Field(max_length=2000)]
    """Its address: http://prometheus.monitoring:9090, without a password in it."""
    headers_from: list[HeadersBlock] = Field(default_factory=list)
    """Headers from Secrets; never in the file itself."""


class PageBlock(Strict):
    """A metrics page that is no replica's: a router's, gateway's or endpoint picker's own."""

    url: Annotated[Line, Field(max_length=2000)]
    """Its address, path included: http://epp.llm:9090/metrics. No headers are sent."""


class MetricSourceBlock(Strict):
    """What is asked for readings: exactly one of prometheus, decision and scrape."""

    name: LabelName
    """Name that services use in `scaling`."""
    prometheus: ServerBlock | None = None
    """A Prometheus, or what speaks its query API."""
    decision: ServerBlock | None = None
    """A server that decides counts (llmscaling.inference.x-k8s.io/v1alpha1)."""
    scrape: PageBlock | None = None
    """A page in the text format of Prometheus or OpenMetrics."""


def source_problems(
    blocks: Sequence[MetricSourceBlock],
) -> Iterator[tuple[FieldPath, str, str, str]]:
    """Field, code, message and hint of everything wrong with the sources."""
    seen: set[str] = set()
    for index, block in enumerate(blocks):
        at: FieldPath = ("spec", "metricSources", index)
        if block.name in seen:
            message = f"two sources are named {block.name!r}"
            yield (*at, "name"), "duplicate-metric-source", message, "rename one of them"
        seen.add(block.name)
        given = [kind for kind in MetricSourceType if getattr(block, kind.value) is not None]
        if len(given) != 1:
            said = " and ".join(given) if given else "none"
            message = f"needs exactly one of {', '.join(MetricSourceType)}; {said} given"
            yield at, "metric-source-type", message, "what answers at one address is one of them"
            continue
        kind, url, _ = _server(block)
        fault = url_fault(url)
        if fault:
            yield (*at, kind.value, "url"), "invalid-value", *fault


def sources_of(blocks: Sequence[MetricSourceBlock]) -> tuple[MetricSource, ...]:
    """The sources of a Fleet file without problems, in its order."""
    found = []
    for block in blocks:
        kind, url, headers = _server(block)
        secrets = tuple(entry.secret_ref.name for entry in headers)
        found.append(MetricSource(block.name, kind, url, secrets))
    return tuple(found)


def url_fault(url: str) -> tuple[str, str] | None:
    """What is wrong with an address and what to do; None for nothing.

    A password in it would be in Git, and would be logged by everything on the way.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        return "is no address that begins with http:// or https://", "http://prometheus:9090"
    if parts.username is not None or parts.password is not None:
        return "has a user or password in it", "put an Authorization header into a Secret"
    if parts.query or parts.fragment:
        return "has a query or fragment; only the server's address is wanted", ""
    return None


def _server(
    block: MetricSourceBlock,
) -> tuple[MetricSourceType, str, Sequence[HeadersBlock]]:
    """What answers there, its address and the headers it gets."""
    if block.prometheus is not None:
        return MetricSourceType.PROMETHEUS, block.prometheus.url, block.prometheus.headers_from
    if block.decision is not None:
        return MetricSourceType.DECISION, block.decision.url, block.decision.headers_from
    assert block.scrape is not None
    return MetricSourceType.SCRAPE, block.scrape.url, ()

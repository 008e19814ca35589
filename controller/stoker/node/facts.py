"""What a reporter writes to its NodeState's status, and the smallest patch that says it.

Pure. In: what was measured, found and told. Out: status fields by the names of the CRD (those
of seed 000), None where a fact is absent. Used by node.reporter and node.state_writer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.model.times import rfc3339
from stoker.node.cache import Inventory
from stoker.node.engine_scrape import Round, Window, tokens_per_joule
from stoker.node.gpu import GpuReading
from stoker.node.notice import Hint, NodeNotice, NoticeKind, Standing

__all__ = ["Facts", "news", "renewals", "status_of"]

INSTANTS = ("kvCacheHitRateObservedAt", "tokensPerJouleObservedAt")
"""When something was measured; an instant alone is no news."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything of one round. `joules` is of the same window as `window`."""

    now_ms: int
    gpus: GpuReading = field(default_factory=GpuReading)
    engines: Round = field(default_factory=Round)
    window: Window = field(default_factory=Window)
    joules: float | None = None
    inventory: Inventory = field(default_factory=Inventory)
    notices: Standing = field(default_factory=Standing)
    node_uid: str = ""
    holder: str = ""


def status_of(facts: Facts) -> dict[str, Any]:
    """Fields to values; None means absent, a missing key that it is left as it stands.

    What was known of cache and notice stays while it is unknown; a measurement does not, for
    it was of another time. Shares and rates are rounded to 2 and 3 digits: noise is no news.
    """
    hit_rate = _rounded(facts.window.cache_hit_rate, 2)
    efficiency = _rounded(tokens_per_joule(facts.window.generation_tokens, facts.joules), 3)
    now = rfc3339(facts.now_ms)
    status: dict[str, Any] = {
        "nodeUID": facts.node_uid or None,
        "reporter": {"holder": facts.holder} if facts.holder else None,
        "gpuUtilization": _rounded(facts.gpus.utilization, 2),
        "gpuMemoryUsedBytes": facts.gpus.memory_used_bytes,
        "requestsRunning": facts.engines.running(),
        "requestsWaiting": facts.engines.waiting(),
        "kvCacheHitRate": hit_rate,
        "kvCacheHitRateObservedAt": None if hit_rate is None else now,
        "tokensPerJoule": efficiency,
        "tokensPerJouleObservedAt": None if efficiency is None else now,
        "unknown": _unknown(facts) or None,
    }
    copies = facts.inventory.copies
    if copies is not None:
        status["cache"] = [
            {"uri": c.uri, "revision": c.revision, "bytes": c.size_bytes, "complete": c.complete}
            for c in copies
        ]
    if facts.notices.known:
        status["notice"] = _notice(facts.notices.notice)
        status["hint"] = _hint(facts.notices.hint)
        status["spot"] = _spot(facts.notices.notice)
    return status


def news(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch of status that turns `live` into `wanted`, but for instants; else empty.

    A notice that another hand wrote (it names no source) is not taken back.
    """
    changed = {
        key: _merged(live.get(key), value)
        for key, value in wanted.items()
        if key not in INSTANTS and value != live.get(key)
    }
    if "notice" in changed and changed["notice"] is None and _by_hand(live.get("notice")):
        del changed["notice"]
        changed.pop("spot", None)
    return changed


def renewals(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The instants that go along when something is written anyway."""
    return {key: wanted[key] for key in INSTANTS if key in wanted and wanted[key] != live.get(key)}


def _merged(live: Any, value: Any) -> Any:
    """A map in a merge patch, with null for the keys that it no longer has."""
    if isinstance(value, dict) and isinstance(live, dict):
        return {**dict.fromkeys(live.keys() - value.keys()), **value}
    return value


def _by_hand(notice: Any) -> bool:
    return isinstance(notice, dict) and bool(notice) and not notice.get("source")


def _notice(notice: NodeNotice | None) -> dict[str, Any] | None:
    if notice is None:
        return None
    written: dict[str, Any] = {
        "kind": notice.kind.value,
        "at": rfc3339(notice.at_ms),
        "source": notice.source,
        "id": notice.id[:200],
    }
    if notice.deadline_ms is not None:
        written["deadline"] = rfc3339(notice.deadline_ms)
    return written


def _hint(hint: Hint | None) -> dict[str, Any] | None:
    if hint is None:
        return None
    return {"kind": hint.kind, "at": rfc3339(hint.at_ms), "source": hint.source}


def _spot(notice: NodeNotice | None) -> dict[str, Any] | None:
    """As seed 000 spells it; absent without a notice, so that nothing is written for it."""
    if notice is None or notice.kind is not NoticeKind.SPOT:
        return None
    return {"preemptionNoticeDetected": True, "preemptionNoticeTime": rfc3339(notice.at_ms)}


def _unknown(facts: Facts) -> list[dict[str, str]]:
    """What could not be found out and why, in a fixed order, for people."""
    reasons = {
        "gpus": facts.gpus.why,
        "engines": "; ".join(f"{a}: {why}" for a, why in sorted(facts.engines.missing.items())),
        "cache": facts.inventory.why,
        "notice": facts.notices.why_unknown,
    }
    return [{"what": what, "why": why[:300]} for what, why in reasons.items() if why]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, digits)

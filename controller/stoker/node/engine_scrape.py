"""The engines of this node, asked once a round, and what two rounds say together.

In: addresses. Out: a `Round`; `window` of two is pure. A round in which one engine did not
answer measures nothing: the energy of the GPUs cannot be told apart by engine. Source of the
rules: semantics.md 1.1, Reporter. Used by node.reporter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stoker.engine.counters import EngineCounters, engine_counters
from stoker.engine.series import grown
from stoker.fetch import NoAnswer

__all__ = ["Round", "Window", "scrape", "tokens_per_joule", "window"]

SECONDS = 2.0
"""Bound of one engine's answer (semantics.md 1.1)."""


@dataclass(frozen=True, slots=True)
class Round:
    """One look at all engines. `missing` says why an address gave nothing.

    `gone` are addresses at which nobody listens, which is certain.
    """

    engines: Mapping[str, EngineCounters] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()

    @property
    def complete(self) -> bool:
        """Whether there are engines and every one answered."""
        return bool(self.engines) and not self.missing

    def running(self) -> int | None:
        """Requests running on the node; None unless every engine says."""
        return _sum(self, [engine.running for engine in self.engines.values()])

    def waiting(self) -> int | None:
        """Requests waiting on the node; None unless every engine says."""
        return _sum(self, [engine.waiting for engine in self.engines.values()])


@dataclass(frozen=True, slots=True)
class Window:
    """Between two rounds. None is absent, which is not zero. The hit rate is from 0 to 1."""

    generation_tokens: float | None = None
    cache_hit_rate: float | None = None


def scrape(addresses: Sequence[str], timeout_seconds: float = SECONDS) -> Round:
    """Ask every engine, one after another; never raises."""
    engines: dict[str, EngineCounters] = {}
    missing: dict[str, str] = {}
    gone = set()
    for address in addresses:
        answer = engine_counters(address, timeout_seconds)
        if isinstance(answer, NoAnswer):
            missing[address] = answer.why
            if answer.refused:
                gone.add(address)
        else:
            engines[address] = answer
    return Round(engines, missing, frozenset(gone))


def window(before: Round | None, after: Round) -> Window:
    """What was counted between two rounds, both complete and of the same engines.

    A series that went back, came or went makes its metric absent: an engine started anew.
    """
    if before is None or not (before.complete and after.complete):
        return Window()
    if before.engines.keys() != after.engines.keys():
        return Window()
    pairs = [(before.engines[address], after.engines[address]) for address in before.engines]
    tokens = _total([grown(a.generation_tokens, b.generation_tokens) for a, b in pairs])
    queries = _total([grown(a.cache_queries, b.cache_queries) for a, b in pairs])
    hits = _total([grown(a.cache_hits, b.cache_hits) for a, b in pairs])
    rate = None
    if queries is not None and hits is not None and queries > 0 and hits <= queries:
        rate = hits / queries
    return Window(tokens, rate)


def tokens_per_joule(tokens: float | None, joules: float | None) -> float | None:
    """Tokens generated for each joule of the same window; None unless both are known."""
    if tokens is None or joules is None or joules <= 0:
        return None
    share = tokens / joules
    return share if math.isfinite(share) else None


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _sum(asked: Round, values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if asked.complete and len(known) == len(values) else None

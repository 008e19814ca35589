"""Counts that follow load, for all services of one pass: facts in, answers and history out.

Called by decide before its turns, so that no answer depends on whose turn it is. A service
whose cluster state could not be read, or whose count somebody else owns, is not asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stoker.decide.case import Case
from stoker.decide.count import Asked, Count, owned, wanted
from stoker.decide.count_facts import CountFacts, ReadyPod
from stoker.decide.fate import Judged, judge, price_of
from stoker.decide.place import Index
from stoker.decide.scale import ScaleAnswer, scale
from stoker.decide.slots import Standing
from stoker.decide.standstill import is_updating
from stoker.model.fleet import WhenFull
from stoker.model.history import UnitHistory
from stoker.model.readings import ServiceReadings
from stoker.model.refs import UnitRef
from stoker.model.scale_history import NO_SCALE, ScaleHistory

__all__ = ["Followed", "count_facts", "follow"]

_PRODUCT_LABEL = "nvidia.com/gpu.product"


class Followed:
    """What load asks for, by service; those that do not follow load are absent."""

    def __init__(self) -> None:
        self.answers: dict[UnitRef, ScaleAnswer] = {}

    def count(self, case: Case, past: UnitHistory, override: Asked) -> Count:
        """The count of the service now, whoever says so."""
        answer = self.answers.get(case.ref)
        scaled = Count(answer.replicas, answer.reason) if answer is not None else None
        return wanted(case, past.wanted, override, scaled)

    def history(self, case: Case, past: ScaleHistory, count: Count) -> ScaleHistory:
        """What to remember of a service whose count is that.

        What is not obeyed was no step. Where somebody else owns the count every window starts
        when they go: only what was learned of replicas and idle times stays.
        """
        answer = self.answers.get(case.ref)
        if answer is None:
            kept = ScaleHistory(rates=past.rates, gaps_ms=past.gaps_ms, served=past.served)
            return kept if case.spec.scaling is not None else NO_SCALE
        if count.replicas == answer.replicas:
            return answer.history
        return replace(
            answer.history,
            scaled_up_ms=past.scaled_up_ms,
            scaled_down_ms=past.scaled_down_ms,
            woken_ms=past.woken_ms,
        )


def follow(
    cases: tuple[Case, ...],
    index: Index,
    readings: Mapping[UnitRef, ServiceReadings],
    known: Mapping[UnitRef, UnitHistory],
    now_ms: int,
) -> Followed:
    """Ask about all of these services; only those that could be read may be among them."""
    followed = Followed()
    for case in cases:
        past = known.get(case.ref, UnitHistory())
        if case.spec.scaling is None or owned(case, past.wanted) is not None:
            continue
        facts = count_facts(case, index, past.wanted)
        given = readings.get(case.ref)
        followed.answers[case.ref] = scale(case.spec.scaling, facts, given, past.scale, now_ms)
    return followed


def count_facts(case: Case, index: Index, remembered: int | None) -> CountFacts:
    """What a rule may know of the service; `remembered` is the count decided last."""
    judged = judge(case, index)
    ready = sorted(
        (j for j in judged if j.ready), key=lambda j: j.slot.pod.name if j.slot.pod else ""
    )
    standing = [live for live in case.state.placements if not live.terminating]
    return CountFacts(
        wanted=remembered,
        standing=sum(live.replicas for live in standing),
        ready=len(ready),
        warming=sum(1 for j in judged if j.standing is Standing.WARMING),
        stuck=sum(1 for j in judged if j.standing is Standing.STUCK),
        rolling=is_updating(case),
        cold_start_p90_ms=_start_p90_ms(case, index, judged),
        price_per_hour=_price(case, index, judged),
        rev=case.rev,
        pods=tuple(
            ReadyPod(
                j.slot.pod.name,
                j.slot.pod.uid,
                j.slot.placement.rev,
                j.slot.pod.since_ms,
                index.label(j.slot.node, _PRODUCT_LABEL),
            )
            for j in ready
            if j.slot.pod is not None
        ),
    )


def _start_p90_ms(case: Case, index: Index, judged: tuple[Judged, ...]) -> int:
    """P90 of the next start: where it would be placed, else on a new node if one may be asked for,
    else where the slowest of its replicas stands.
    """
    own = sorted({name for j in judged for name in j.slot.nodes})
    choice = index.pick(case, urgent=False, own=own, barred={})
    if choice is not None:
        return choice.readiness.p90_ms
    here = [index.readiness(case, name).p90_ms for name in own if index.node(name) is not None]
    if case.spec.when_full is WhenFull.UNPINNED or not here:
        return index.readiness_of_new(case).p90_ms
    return max(here)


def _price(case: Case, index: Index, judged: tuple[Judged, ...]) -> float | None:
    """Of the dearest replica that stands, which leaves first, else of the first pool, in an hour;
    None where no price is given.
    """
    names = [index.pool(case, j.slot.node) for j in judged]
    standing = [pool for pool in case.ask.pools if pool.name in names]
    prices = [price_of(pool.price_per_gpu_hour) for pool in standing or case.ask.pools[:1]]
    dearest = max(prices, default=None)
    return float(dearest * case.gpus) if dearest else None

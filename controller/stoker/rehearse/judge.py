"""Counts what a recording holds and holds it against the bars. Pure.

A truncated answer is unavoidable where it would have lasted beyond the end of its node, and
its client had no choice: what it knew was older than the announcement of that end, or the
request came so soon after it that nothing else could serve yet, however quickly started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from stoker.rehearse.load import lag_clients, sticky_clients
from stoker.rehearse.record import (
    Ending,
    NodeEnd,
    Outcome,
    PodLife,
    PodState,
    Recording,
    Request,
)
from stoker.rehearse.schema import LoadBlock, ScenarioSpec, ServiceBars

__all__ = ["Count", "Judgement", "ServiceCount", "Verdict", "judge"]


@dataclass(frozen=True, slots=True)
class Count:
    """Requests of some clients by what came of them; `ok` includes those still under way."""

    ok: int = 0
    refused: int = 0
    truncated: int = 0
    unavoidable: int = 0
    late: int = 0


@dataclass(frozen=True, slots=True)
class ServiceCount:
    """One service. `requests` are those of the open loop, `sticky` those of clients that keep
    their connection; `gap_ms` and `ttft_ms` are None where nothing was answered.
    """

    name: str
    requests: Count
    sticky: Count
    clients: tuple[tuple[str, Count], ...]
    ttft_ms: int | None
    gap_ms: int | None
    lowest_ready: int
    floor: int
    wanted: int
    ready_at_end: int
    starts: int
    starts_wasted: int
    reasons: tuple[tuple[str, int], ...] = ()
    """Why requests failed, in the words of their clients, with how many; most first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One bar: what was found, what the bar says, whether it holds. `least`: at least."""

    of: str
    measure: str
    found: int | None
    bar: int
    holds: bool
    least: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """All counts and all bars of one recording."""

    services: tuple[ServiceCount, ...]
    verdicts: tuple[Verdict, ...]
    double_booked: int
    began: bool

    @property
    def holds(self) -> bool:
        """Whether it was played and every bar holds."""
        return self.began and all(verdict.holds for verdict in self.verdicts)


def judge(spec: ScenarioSpec, recording: Recording) -> Judgement:
    """Count and compare; a recording that never began has no counts."""
    if recording.ending is Ending.NEVER_BEGAN:
        return Judgement((), (), recording.double_booked, began=False)
    counts = tuple(
        _service(spec, recording, service.name)
        for service in sorted(spec.services, key=lambda each: each.name)
    )
    named = {bars.name: bars for bars in spec.bars.services}
    verdicts: list[Verdict] = []
    for count in counts:
        verdicts += _verdicts(count, named.get(count.name, spec.bars.unaffected), recording)
    fleet = spec.bars.fleet
    booked = recording.double_booked
    verdicts.append(_at_most("fleet", "doubleBookedGPUs", booked, fleet.double_booked))
    if fleet.starts_wasted is not None:
        wasted = sum(count.starts_wasted for count in counts)
        verdicts.append(_at_most("fleet", "startsWasted", wasted, fleet.starts_wasted))
    return Judgement(counts, tuple(verdicts), booked, began=True)


def _service(spec: ScenarioSpec, recording: Recording, name: str) -> ServiceCount:
    load = spec.load
    mine = [r for r in recording.requests if r.service == name]
    lags, sticky = dict(lag_clients(load)), sticky_clients(load)
    tell = _Teller(spec, recording, name)
    by_client = tuple(
        (client, tell.count([r for r in mine if r.client == client], lags.get(client, 0)))
        for client in (*lags, *sticky)
    )
    answered = [r for r in mine if r.first_ms is not None and not r.failed]
    ttft = [r.first_ms - r.at_ms for r in answered if r.first_ms is not None]
    since_ms = recording.load_ms
    pods = [p for p in recording.pods.values() if p.service == name]
    starts = [p for p in pods if (at := p.bound_ms()) is not None and at >= since_ms]
    wasted = [p for p in starts if not p.ever_ready and _came_to_nothing(p.last)]
    ready = recording.ready.get(name, [])
    reasons = Counter(f"{r.outcome.lower()}, {r.why}" for r in mine if r.failed)
    return ServiceCount(
        name=name,
        requests=_sum(count for client, count in by_client if client in lags),
        sticky=_sum(count for client, count in by_client if client in sticky),
        clients=by_client,
        ttft_ms=round(median(ttft)) if ttft else None,
        gap_ms=_gap(load, recording, mine),
        lowest_ready=_lowest(ready, since_ms),
        floor=recording.floors.get(name, 0),
        wanted=recording.wanted.get(name, 0),
        ready_at_end=ready[-1][1] if ready else 0,
        starts=len(starts),
        starts_wasted=len(wasted),
        reasons=tuple(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def _came_to_nothing(last: PodState) -> bool:
    return last in {PodState.FAILING, PodState.DRAINING, PodState.GONE}


def _sum(counts: Iterable[Count]) -> Count:
    found = tuple(counts)
    return Count(
        ok=sum(c.ok for c in found),
        refused=sum(c.refused for c in found),
        truncated=sum(c.truncated for c in found),
        unavoidable=sum(c.unavoidable for c in found),
        late=sum(c.late for c in found),
    )


class _Teller:
    """Tells for one service what came of requests, and what could not have been helped."""

    def __init__(self, spec: ScenarioSpec, recording: Recording, service: str) -> None:
        scale = recording.time_scale
        self._late_ms = round(spec.load.late / scale)
        starts = spec.starts
        self._quickest_ms = round((starts.around + starts.disk + starts.init) / scale)
        self._scale = scale
        self._ends = recording.ends
        self._pods = [p for p in recording.pods.values() if p.service == service]

    def count(self, requests: Sequence[Request], lag_ms: int) -> Count:
        """By what came of them; `lag_ms` is how far their client is behind."""
        ok = refused = truncated = unavoidable = late = 0
        behind_ms = round(lag_ms / self._scale)
        for request in requests:
            match request.outcome:
                case Outcome.REFUSED:
                    refused += 1
                case Outcome.TRUNCATED if self._is_unavoidable(request, behind_ms):
                    unavoidable += 1
                case Outcome.TRUNCATED:
                    truncated += 1
                case Outcome.OK | Outcome.OPEN:
                    ok += 1
            if request.first_ms is not None and request.first_ms - request.at_ms > self._late_ms:
                late += 1
        return Count(ok, refused, truncated, unavoidable, late)

    def _is_unavoidable(self, request: Request, behind_ms: int) -> bool:
        ends_ms = request.ends_ms
        return ends_ms is not None and any(
            end.node == request.node
            and ends_ms > end.end_ms
            and self._had_no_choice(request, end, behind_ms)
            for end in self._ends
        )

    def _had_no_choice(self, request: Request, end: NodeEnd, behind_ms: int) -> bool:
        known_ms = request.at_ms - behind_ms
        if known_ms <= end.said_ms:
            return True
        return known_ms <= end.said_ms + self._quickest_ms and not any(
            pod.node not in self._announced(request.at_ms) and _serves(pod, known_ms)
            for pod in self._pods
        )

    def _announced(self, at_ms: int) -> set[str]:
        return {end.node for end in self._ends if end.said_ms <= at_ms}


def _serves(pod: PodLife, at_ms: int) -> bool:
    before = [state for since_ms, state in pod.states if since_ms <= at_ms]
    return bool(before) and before[-1] is PodState.READY


def _gap(load: LoadBlock, recording: Recording, requests: list[Request]) -> int | None:
    """Longest time without a first token for the open loop, beyond the spacing of requests."""
    clients = {client for client, _ in lag_clients(load)}
    spacing = 1000 / load.rate_per_second / recording.time_scale
    firsts = sorted(
        r.first_ms
        for r in requests
        if r.first_ms is not None and r.outcome is not Outcome.REFUSED and r.client in clients
    )
    if not firsts:
        return None
    last_ms = max(recording.end_ms, firsts[-1])
    ttft = firsts[0] - recording.load_ms
    instants = [recording.load_ms + ttft, *firsts, last_ms]
    widest = max(after - before for before, after in pairwise(instants))
    return max(0, round(widest - spacing))


def _lowest(ready: list[tuple[int, int]], since_ms: int) -> int:
    before = [count for at_ms, count in ready if at_ms <= since_ms]
    after = [count for at_ms, count in ready if at_ms > since_ms]
    return min([*before[-1:], *after], default=0)


def _verdicts(count: ServiceCount, bars: ServiceBars, recording: Recording) -> Iterator[Verdict]:
    found = count.requests
    at_most = (
        ("refused", found.refused, bars.refused),
        ("truncated", found.truncated, bars.truncated),
        ("unavoidable", found.unavoidable, bars.unavoidable),
        ("late", found.late, bars.late),
        ("sticky", _failed(count.sticky), bars.sticky),
        ("starts", count.starts, bars.starts),
        ("startsWasted", count.starts_wasted, bars.starts_wasted),
    )
    for measure, value, bar in at_most:
        if bar is not None:
            yield _at_most(count.name, measure, value, bar)
    if bars.gap is not None:
        beyond = None
        if count.gap_ms is not None:
            beyond = max(0, count.gap_ms - (count.ttft_ms or 0))
        bar = round(bars.gap / recording.time_scale)
        yield Verdict(count.name, "gap", beyond, bar, beyond is not None and beyond <= bar)
    for measure, value, least in (
        ("lowestReady", count.lowest_ready, bars.lowest_ready),
        ("readyAtEnd", count.ready_at_end, bars.ready_at_end),
    ):
        if least is not None:
            yield Verdict(count.name, measure, value, least, value >= least, least=True)


def _failed(count: Count) -> int:
    return count.refused + count.truncated + count.unavoidable


def _at_most(of: str, measure: str, found: int, bar: int) -> Verdict:
    return Verdict(of, measure, found, bar, found <= bar)

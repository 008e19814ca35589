"""One pass and what follows it: mirrors, status for the publisher, metrics, the verdict.

The loop calls `Work.run` on the reconciler thread; `run --once` and `apply` call it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.decide.retry import next_retry_ms
from stoker.errors import Finding
from stoker.log import get_log
from stoker.loop.loop import PassRequest, PassVerdict
from stoker.loop.step import PassKind
from stoker.model.history import History
from stoker.model.outcome import PassOutcome, Result
from stoker.model.readings import Reading, Unmeasurable
from stoker.model.refs import SourceRevision
from stoker.model.snapshot import Snapshot
from stoker.reconcile import Parts, Pass, Reach, State, reconcile
from stoker.report import DecisionInputs, MirrorWriter, Publisher, Submission

if TYPE_CHECKING:  # see loop
    from stoker.metrics import Metrics

__all__ = ["Work"]

_log = get_log("pass")

RETRY_SECONDS = 15.0
"""When what left Git waits or failed, or mirrors began or ceased to be a trouble that only another
report can tell, look again then; units have their own back-off.
"""
LOOK_AGAIN_SECONDS = 1.0
"""After a pass that wrote something: our own writes are folded into the caches, so that no
watch tells of them, and what they were waited for (traffic off, a freed node) goes on here.
"""
_PENDING = frozenset({Result.WAITING, Result.FAILED, Result.UNKNOWN})
_WRITTEN = frozenset({Result.CREATED, Result.CHANGED, Result.DELETED})


@dataclass(slots=True)
class Work:
    """Everything around a pass. `last` is the newest one, for /readyz and tests.

    Without `metrics` nothing is counted: nobody can ask a process that ends with its pass.
    """

    parts: Parts
    state: State
    metrics: Metrics | None
    publisher: Publisher
    mirrors: MirrorWriter
    last: Pass | None = None
    _mirrors_pending: bool = False
    """Whether one pass could not write all mirrors: then the next one follows at once."""
    _mirrors_news: bool = False
    """Whether something about mirrors came to be wrong or right since the report of the pass."""

    def run(self, request: PassRequest) -> PassVerdict:
        """Run one pass, hand on its report, and say when to run the next.

        A notice is answered with the last good revision, of which everything is rendered: a
        newer commit, however large or slow to read, is for the full pass that follows.
        """
        history = self.state.history
        rendered = self.parts.renderer.jobs
        good, revision = self.state.desired, request.revision
        if request.kind is PassKind.NOTICE and good is not None:
            revision = good.revision
        done = reconcile(self.parts, self.state, revision=revision, source_finding=request.finding)
        self.last = done
        rendered = self.parts.renderer.jobs - rendered
        self._log(done, rendered)
        if self.metrics is not None:
            self.metrics.renders.inc(rendered)
            _count(self.metrics, done)
        self._publish(done, history)
        return self._verdict(done)

    def warm(self, revision: SourceRevision) -> None:
        """Read, render and compare as a pass does, and write nothing: for who may lead soon."""
        started = self.parts.clock.monotonic()
        seen = reconcile(self.parts, self.state, revision=revision, reach=Reach.DIFF)
        _log.info(
            "warm-up.done",
            revision=revision.short,
            units=len(seen.sets),
            code=seen.failure.code if seen.failure else "",
            took_ms=round((self.parts.clock.monotonic() - started) * 1000),
        )

    def _publish(self, done: Pass, history: History) -> None:
        desired, report = done.desired, done.report
        if desired is None or report is None:
            return
        fleet = desired.fleet
        decision = None
        if done.plan is not None and done.snapshot is not None:
            decision = DecisionInputs(
                desired=desired,
                shapes=done.shapes,
                snapshot=done.snapshot,
                history=history,
                plan=done.plan,
            )
        self.publisher.offer(
            Submission(
                report=report,
                fleet_name=fleet.name,
                branch=fleet.status_branch,
                flush_interval_ms=fleet.status.flush_interval_ms,
                heartbeat_ms=fleet.status.heartbeat_ms,
                detail=fleet.status.snapshot,
                decision=decision,
            )
        )
        # After the offer: what the checkpoint ends here has been handed on already.
        self._mirrors_pending = self._mirrors_news = False
        if self.parts.identity.cluster_uid == fleet.cluster_uid:
            told = _codes(self.mirrors.warnings)
            written = self.mirrors.write(report, checkpoint=self.parts.checkpoint)
            self._mirrors_pending = written.pending
            self._mirrors_news = told != _codes(written.findings)

    def _verdict(self, done: Pass) -> PassVerdict:
        if done.failure is not None and done.outcome is None:
            return PassVerdict(failed=True)
        wishes = [self._seconds_until(wish) for wish in self._instants(done)]
        if self._mirrors_pending:
            wishes.append(0.0)
        if self._mirrors_news:
            wishes.append(RETRY_SECONDS)
        if done.outcome is not None:
            if set(_results(done.outcome)) & _WRITTEN:
                wishes.append(LOOK_AGAIN_SECONDS)
            leaving = {item.result for item in done.outcome.pruned}
            if leaving & _PENDING or done.outcome.failure is not None:
                wishes.append(RETRY_SECONDS)
        return PassVerdict(failed=False, wake_in=min(wishes, default=None))

    def _instants(self, done: Pass) -> Iterator[int]:
        """When plan, outcome, retries and what is held ask for another look, in milliseconds
        since the epoch.
        """
        if done.wake_at_ms is not None:
            yield done.wake_at_ms
        retry_ms = next_retry_ms(self.state.holding.retries)
        if done.outcome is not None and retry_ms is not None:
            yield retry_ms
        if done.plan is not None and done.plan.wake_at_ms is not None:
            yield done.plan.wake_at_ms
        if done.outcome is not None and done.outcome.wake_at_ms is not None:
            yield done.outcome.wake_at_ms

    def _seconds_until(self, instant_ms: int) -> float:
        return max(0.0, (instant_ms - self.parts.clock.now_ms()) / 1000)

    def _log(self, done: Pass, rendered: int) -> None:
        if done.failure is not None:
            _log.warning("pass.failed", code=done.failure.code, message=done.failure.message)
        counts: Counter[str] = Counter()
        if done.outcome is not None:
            counts.update(str(o.result) for u in done.outcome.units for o in u.objects)
            counts.update(f"pruned_{o.result}" for o in done.outcome.pruned)
        counts.pop(Result.UNCHANGED, None)
        _log.info(
            "pass.ended",
            revision=done.attempted.short if done.attempted else "none",
            units=len(done.sets),
            rendered=rendered,
            took_ms=self.parts.clock.now_ms() - done.now_ms,
            **dict(sorted(counts.items())),
        )


def _count(metrics: Metrics, done: Pass) -> None:
    if done.outcome is not None:
        for unit in done.outcome.units:
            for item in unit.objects:
                if item.result not in {Result.UNCHANGED, Result.SKIPPED}:
                    metrics.writes.labels(item.result).inc()
    if done.snapshot is not None:
        metrics.set_signals(Counter(map(_usable, _all_readings(done.snapshot))))
    if done.plan is not None:
        metrics.set_replicas(
            {
                (d.ref.namespace, d.ref.name): {
                    "want": d.replicas or 0,
                    "ready": d.ready,
                    "warming": d.warming,
                }
                for d in done.plan.decisions
            }
        )
        metrics.set_quarantined(
            Counter(
                (d.ref.namespace, d.ref.name)
                for d in done.plan.decisions
                for attempt in d.attempts
                if attempt.rule == "quarantined"
            )
        )
    if done.report is not None:
        units = done.report.memory.units.values()
        metrics.set_units(Counter((str(u.sync), str(u.health)) for u in units))


def _all_readings(snapshot: Snapshot) -> Iterator[Reading]:
    for service in snapshot.readings:
        for _, reading in (*service.metrics, *service.wake):
            yield reading
        if service.load is not None:
            yield service.load.arrivals


def _usable(reading: Reading) -> str:
    return reading.code if isinstance(reading, Unmeasurable) else "ok"


def _codes(findings: tuple[Finding, ...]) -> frozenset[str]:
    return frozenset(finding.code for finding in findings)


def _results(outcome: PassOutcome) -> Iterator[Result]:
    """What came of each object, those that left Git included."""
    for unit in outcome.units:
        for item in unit.objects:
            yield item.result
    for item in outcome.pruned:
        yield item.result

"""The long-running controller, put together: threads, loop, HTTP, a clean stop.

`run` and `run --once` use it; the embedded demo builds the same Work on other ports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker._version import __version__
from stoker.cli.ending import PUBLISH_SECONDS, Ending
from stoker.cli.heap import share_heaps
from stoker.cli.measuring import measuring
from stoker.cli.readiness import ReadinessOf
from stoker.cli.session import Session, usage
from stoker.cli.single import END_SECONDS, single_writer, writing_alone
from stoker.cli.state_namespace import ensure_namespace
from stoker.diff import Audit
from stoker.errors import Finding, Retryable, StokerError
from stoker.holding import Holding
from stoker.log import get_log
from stoker.loop.keeper import LeaseKeeper
from stoker.loop.lease import LeaseTiming
from stoker.loop.loop import Loop, PassRequest
from stoker.loop.poller import Poller
from stoker.loop.step import Event, EventKind, PassKind, Timing
from stoker.loop.vouch import Vouch
from stoker.loop.work import Work
from stoker.model.history import History
from stoker.model.outcome import Result
from stoker.model.refs import SourceRevision
from stoker.objects.names import GROUP
from stoker.observe import ObjectEvent, Observer
from stoker.reconcile import Parts, Pass, State
from stoker.render import shape_ahead
from stoker.report import MirrorWriter, PreviousStatus, Publisher
from stoker.settings import Settings

if TYPE_CHECKING:
    from stoker.loop.server import StatusServer
    from stoker.metrics import Metrics

__all__ = ["Controller", "build_work"]

_log = get_log("controller")

STUCK_AFTER_SECONDS = 900.0
"""Without a finished pass for that long while one is due, /healthz says so."""


def build_work(session: Session, revision: SourceRevision, metrics: Metrics | None) -> Work:
    """Everything of a pass for the fleet at this revision; reads the status branch once.

    `metrics` None: nothing is counted.
    """
    desired = session.desired(revision)
    parts = session.parts(desired, revision.ref)
    publisher = Publisher(
        parts.repo,
        parts.clock,
        version=__version__,
        fleet_id=parts.identity.fleet_id,
        count=lambda result: metrics.publish.labels(result).inc() if metrics else None,
    )
    state = State(
        desired=desired,
        history=_history(parts),
        previous=_previous(publisher, desired.fleet.status_branch),
    )
    state.holding.adopted = parts.history.adopted
    mirrors = MirrorWriter(parts.cluster, parts.clock, parts.identity.fleet_id)
    parts.prepare = _once(
        lambda: ensure_namespace(parts.cluster, session.target.namespace, parts.identity.fleet_id)
    )
    parts.written = lambda: publisher.written
    parts.warnings = lambda: (*session.warnings, *mirrors.warnings, *publisher.warnings)
    return Work(parts, state, metrics, publisher, mirrors)


def _once(act: Callable[[], None]) -> Callable[[], None]:
    """The same, but nothing from the second time on; what raised is done again."""
    done = False

    def acted() -> None:
        nonlocal done
        if not done:
            act()
            done = True

    return acted


def _history(parts: Parts) -> History:
    """What earlier processes learned; unreadable counts as lost, which shrinks nothing."""
    try:
        return parts.history.read()
    except StokerError as error:
        _log.warning("history.unread", code=error.code, message=error.message)
        return History()


def _catch_up(work: Work) -> None:
    """Forget what another controller may have changed while it held the lease."""
    work.state.history = _history(work.parts)
    work.state.holding = Holding(adopted=work.parts.history.adopted)
    work.parts.store.forget()
    work.publisher.forget()
    work.mirrors.forget()
    if work.last is None and work.state.desired is not None:
        branch = work.state.desired.fleet.status_branch
        work.state.previous = _previous(work.publisher, branch)


def _previous(publisher: Publisher, branch: str) -> PreviousStatus:
    try:
        return publisher.read_previous(branch)
    except StokerError as error:
        _log.warning("status.unread", code=error.code, message=error.message)
        return PreviousStatus()


def _not_whole(done: Pass) -> Finding | None:
    """That objects were refused or their answer was lost; what waits is no failure."""
    units = done.outcome.units if done.outcome is not None else ()
    bad = [o for u in units for o in u.objects if o.result in {Result.FAILED, Result.UNKNOWN}]
    if not bad or done.desired is None:
        return None
    message = f"{len(bad)} object{'s' if len(bad) > 1 else ''} could not be written, {bad[0].ref}"
    return Finding(
        done.desired.fleet.location,
        "not-applied-whole",
        f"{message}: {bad[0].message} [{bad[0].code}]",
        hint="`stoker status` shows the others" if len(bad) > 1 else "",
    )


class Controller:
    """One fleet on one cluster until a signal; `once` for a single pass."""

    def __init__(self, settings: Settings, session: Session) -> None:
        self._settings = settings
        self._session = session
        self._ending = Ending(session.clock)
        self._lease_timing = _lease_timing(settings)

    def once(self) -> Finding | None:
        """One pass and one publication; gives why it did not reach its end, None if it did.

        Raises Stalled (lease-held) where another controller works.
        """
        session = self._session
        revision = session.repo.fetch()
        desired = session.desired(revision)
        shape_ahead(desired, session.repo, session.renderer())
        if not self._settings.loop.lease:
            return self._one_pass(revision)
        fleet_id = session.fleet_id(desired)

        def tell(text: str) -> None:
            _log.info("lease.waiting", why=text)

        with writing_alone(session, fleet_id, self._lease_timing, tell):
            return self._one_pass(revision)

    def _one_pass(self, revision: SourceRevision) -> Finding | None:
        work = build_work(self._session, revision, None)
        work.run(PassRequest(PassKind.FULL, revision))
        work.publisher.flush(30.0)
        work.publisher.stop()
        assert work.last is not None
        return work.last.failure or _not_whole(work.last)

    def run(self) -> None:
        """Work until SIGTERM or SIGINT, then end within ten seconds."""
        share_heaps()
        revision = self._first_revision()
        self._ending.listen()
        keeper = self._keeper(revision) if self._settings.loop.lease else None
        try:
            self._work(revision, keeper)
        finally:
            if keeper is not None and keeper.stop(END_SECONDS):
                keeper.lease.release()
        _log.info("controller.stopped")

    def _work(self, revision: SourceRevision, keeper: LeaseKeeper | None) -> None:
        from stoker.metrics import Metrics

        settings = self._settings
        term = keeper.lease.term if keeper is not None else 0
        metrics = Metrics()
        work = build_work(self._session, revision, metrics)
        parts = work.parts
        timing = Timing(
            coalesce=settings.loop.coalesce_seconds,
            backoff_first=settings.loop.backoff_first_seconds,
            backoff_max=settings.loop.backoff_max_seconds,
            full_pass=settings.loop.full_pass_seconds,
        )
        loop = Loop(
            work.run,
            parts.clock,
            metrics,
            timing=timing,
            lease=None if keeper is None else keeper.lease,
            term=term,
            on_lead=lambda: _catch_up(work),
            warm=work.warm,
        )

        def wake() -> None:
            loop.put(Event(EventKind.WAKE, parts.clock.monotonic()))

        parts.checkpoint = loop.checkpoint
        parts.audit = Audit(lambda result: metrics.audits.labels(result).inc())
        work.publisher.on_change = wake
        if keeper is not None:
            keeper.on_change = wake
            parts.store.is_alone = Vouch(lambda: keeper.lease.term, parts.clock)
        poller = Poller(
            parts.repo,
            parts.clock,
            loop.put,
            interval_seconds=settings.loop.poll_interval_seconds,
        )
        observer = self._watching(work, loop, poller)
        signals = measuring(self._session, loop, parts)
        ready = ReadinessOf(observer, poller, work.publisher, loop, keeper, signals)
        server = self._serve(ready, loop, parts, metrics)
        self._ending.attach(loop, work.publisher)
        _log.info(
            "controller.started",
            version=__version__,
            fleet=parts.identity.fleet_name,
            fleet_id=parts.identity.fleet_id,
            cluster=parts.identity.cluster_uid,
        )
        observer.start()
        work.publisher.start()
        poller.start()
        try:
            loop.run()
        finally:
            self._ending.loop_ended()
            signals.stop()
            self._stop(poller, work, observer, server)

    def _first_revision(self) -> SourceRevision:
        """The first answer of the repository; what may pass is waited for, with back-off."""
        wait = self._settings.loop.backoff_first_seconds
        while True:
            try:
                return self._session.repo.fetch()
            except Retryable as error:
                _log.warning("source.failed", code=error.code, message=error.message)
                self._session.clock.wait(wait)
                wait = min(self._settings.loop.poll_interval_seconds, wait * 2)

    def _keeper(self, revision: SourceRevision) -> LeaseKeeper:
        """A running keeper of the lease, which is taken already where it is free."""
        fleet_id = self._session.fleet_id(self._session.desired(revision))
        keeper = single_writer(self._session, fleet_id, self._lease_timing)
        keeper.turn()
        keeper.start()
        return keeper

    def _watching(self, work: Work, loop: Loop, poller: Poller) -> Observer:
        """The observer whose events wake the loop; it replaces the silent one of the session.

        Whoever asks for a pass on the Fleet's mirror wants news of Git, too. Kinds that change
        may be those of the mirrors.
        """
        parts, clock = work.parts, work.parts.clock

        def on_event(event: ObjectEvent) -> None:
            kind = EventKind.NOTICE if event.notice else EventKind.OBJECT
            if event.ref.kind == "CustomResourceDefinition":
                work.mirrors.look_for_kinds()
            loop.put(Event(kind, clock.monotonic(), detail=event.detail))
            if (event.ref.group, event.ref.kind, bool(event.ref.name)) == (GROUP, "Fleet", True):
                poller.poll_soon()

        parts.observer.on_event = on_event
        return parts.observer

    def _serve(
        self, ready: ReadinessOf, loop: Loop, parts: Parts, metrics: Metrics
    ) -> StatusServer | None:
        if not self._settings.server.address:
            return None
        from stoker.loop.server import StatusServer

        def healthy() -> bool:
            waited = parts.clock.monotonic() - loop.last_pass_ended
            return loop.last_pass_ended == 0 or waited < STUCK_AFTER_SECONDS or not loop.leads

        return StatusServer(
            self._settings.server.address,
            ready=ready,
            healthy=healthy,
            metrics=metrics.text,
        )

    def _stop(
        self,
        poller: Poller,
        work: Work,
        observer: Observer,
        server: StatusServer | None,
    ) -> None:
        """Publish what is known and end the threads."""
        poller.stop()
        work.publisher.flush(PUBLISH_SECONDS)
        work.publisher.stop()
        observer.stop(0.2)
        if server is not None:
            server.close()


def _lease_timing(settings: Settings) -> LeaseTiming:
    """The lease's durations; raises BadInput where they would let two write at a time."""
    loop = settings.loop
    timing = LeaseTiming(
        duration=loop.lease_duration_seconds,
        renew_deadline=loop.lease_renew_deadline_seconds,
        retry=loop.lease_retry_seconds,
    )
    if timing.problem:
        raise usage(f"--lease-duration: {timing.problem}", "15s, 10s and 2s are the defaults")
    return timing


def with_defaults(settings: Settings) -> Settings:
    """Settings with a state folder that exists and belongs to us alone."""
    folder = settings.state_folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return replace(settings, state_folder=folder)

"""The long-running controller, put together: threads, loop, HTTP, a clean stop.

`run` and `run --once` use it; the embedded demo builds the same Work on other ports.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType

from stoker._version import __version__
from stoker.cli.session import Session
from stoker.diff import Audit
from stoker.errors import Finding, Retryable, Stalled, StokerError
from stoker.holding import Holding
from stoker.kube.errors import NotFound
from stoker.log import get_log
from stoker.loop.lease import Lease
from stoker.loop.loop import Loop, PassRequest
from stoker.loop.poller import Poller
from stoker.loop.server import Readiness, StatusServer
from stoker.loop.step import Event, EventKind, PassKind, Timing
from stoker.loop.work import Work
from stoker.metrics import Metrics
from stoker.model.history import History
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, SourceRevision
from stoker.objects.names import GROUP, manager_of
from stoker.observe import ObjectEvent, Observer
from stoker.reconcile import Parts, State
from stoker.report import MirrorWriter, PreviousStatus, Publisher
from stoker.settings import Settings

__all__ = ["Controller", "build_work"]

_log = get_log("controller")

STUCK_AFTER_SECONDS = 900.0
"""Without a finished pass for that long while one is due, /healthz says so."""
WRITES_SECONDS = 5.0
"""How long a stop waits for writes in flight (design section 2)."""
PUBLISH_SECONDS = 4.0
"""How long it then waits for the last status commit."""
CUT_OFF_SECONDS = 9.5
"""When a stop ends whatever hangs: ten seconds are promised."""


def build_work(session: Session, revision: SourceRevision, metrics: Metrics) -> Work:
    """Everything of a pass for the fleet at this revision; reads the status branch once."""
    desired = session.desired(revision)
    parts = session.parts(desired, revision.ref)
    publisher = Publisher(
        parts.repo,
        parts.clock,
        version=__version__,
        fleet_id=parts.identity.fleet_id,
        count=lambda result: metrics.publish.labels(result).inc(),
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
    parts.warnings = lambda: (*mirrors.warnings, *publisher.warnings)
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


def ensure_namespace(cluster: Cluster, name: str, fleet_id: str) -> None:
    """Make the namespace of inventory and lease where it is missing and we may."""
    ref = ObjectRef("", "Namespace", "", name)
    try:
        cluster.get(ref)
    except NotFound:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            cluster.apply(body, manager=manager_of(fleet_id))
        except StokerError as error:
            raise Stalled(
                f"namespace {name} is missing and cannot be made: {error.message}",
                code="state-namespace-missing",
                hint="run `stoker install … | kubectl apply -f -` first",
            ) from error


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


@dataclass(slots=True)
class _Readiness:
    """What /readyz answers, from immutable answers of the other threads."""

    observer: Observer
    poller: Poller
    publisher: Publisher
    loop: Loop

    def __call__(self) -> Readiness:
        parts = {"git": self.poller.last_answer or "not asked yet"}
        parts["status"] = self.publisher.written.code or "ok"
        good = self.poller.alive and self.publisher.alive
        for watch in self.observer.status():
            if watch.why_unknown and watch.why_unknown != "no such kind":
                parts[watch.label] = watch.why_unknown
        good = good and self.loop.last_pass_ended > 0 and "nodes" not in parts
        parts["pass"] = "ended" if self.loop.last_pass_ended else "not yet"
        return good, parts


class Controller:
    """One fleet on one cluster until a signal; `once` for a single pass."""

    def __init__(self, settings: Settings, session: Session) -> None:
        self._settings = settings
        self._session = session
        self._metrics = Metrics()
        self._loop_ended = threading.Event()

    def once(self) -> Finding | None:
        """One pass and one publication; gives why it did not reach its end, None if it did."""
        revision = self._session.repo.fetch()
        work = build_work(self._session, revision, self._metrics)
        work.run(PassRequest(PassKind.FULL, revision))
        work.publisher.flush(30.0)
        work.publisher.stop()
        assert work.last is not None
        return work.last.failure

    def run(self) -> None:
        """Work until SIGTERM or SIGINT, then end within ten seconds."""
        settings = self._settings
        revision = self._first_revision()
        work = build_work(self._session, revision, self._metrics)
        parts = work.parts
        if settings.loop.lease:
            # The lease stands in this namespace, also for a fleet in mode Observe.
            ensure_namespace(parts.cluster, settings.cluster.namespace, parts.identity.fleet_id)
        timing = Timing(
            coalesce=settings.loop.coalesce_seconds,
            backoff_first=settings.loop.backoff_first_seconds,
            backoff_max=settings.loop.backoff_max_seconds,
            full_pass=settings.loop.full_pass_seconds,
        )
        loop = Loop(
            work.run,
            parts.clock,
            self._metrics,
            timing=timing,
            lease=self._lease(parts),
            on_lead=lambda: _catch_up(work),
        )
        parts.checkpoint = loop.checkpoint
        parts.audit = Audit(lambda result: self._metrics.audits.labels(result).inc())
        work.publisher.on_change = lambda: loop.put(Event(EventKind.WAKE, parts.clock.monotonic()))
        poller = Poller(
            parts.repo,
            parts.clock,
            loop.put,
            interval_seconds=settings.loop.poll_interval_seconds,
        )
        observer = self._watching(parts, loop, poller)
        server = self._serve(_Readiness(observer, poller, work.publisher, loop), loop, parts)
        self._on_signals(loop, work.publisher)
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
            self._loop_ended.set()
            self._stop(poller, work, observer, loop, server)

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

    def _lease(self, parts: Parts) -> Lease | None:
        if not self._settings.loop.lease:
            return None
        return Lease(
            parts.cluster,
            parts.clock,
            namespace=self._settings.cluster.namespace,
            name=f"stoker-{parts.identity.fleet_id}",
            holder=f"{socket.gethostname()}-{os.getpid()}",
        )

    def _watching(self, parts: Parts, loop: Loop, poller: Poller) -> Observer:
        """The observer whose events wake the loop; it replaces the silent one of the session.

        Whoever asks for a pass on the Fleet's mirror wants news of Git, too.
        """
        clock = parts.clock

        def on_event(event: ObjectEvent) -> None:
            kind = EventKind.NOTICE if event.notice else EventKind.OBJECT
            loop.put(Event(kind, clock.monotonic(), detail=event.detail))
            if (event.ref.group, event.ref.kind, bool(event.ref.name)) == (GROUP, "Fleet", True):
                poller.poll_soon()

        parts.observer.on_event = on_event
        return parts.observer

    def _serve(self, ready: _Readiness, loop: Loop, parts: Parts) -> StatusServer | None:
        if not self._settings.server.address:
            return None

        def healthy() -> bool:
            waited = parts.clock.monotonic() - loop.last_pass_ended
            return loop.last_pass_ended == 0 or waited < STUCK_AFTER_SECONDS or not loop.leads

        return StatusServer(
            self._settings.server.address,
            ready=ready,
            healthy=healthy,
            metrics=self._metrics.text,
        )

    def _on_signals(self, loop: Loop, publisher: Publisher) -> None:
        def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
            _log.info("controller.stopping", signal=signal.Signals(number).name)
            loop.stop()
            threading.Thread(target=self._cut_off, args=(publisher,), daemon=True).start()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    def _cut_off(self, publisher: Publisher) -> None:
        """End the process where a clean end takes too long: that equals a crash, which is safe.

        A daemon thread; a clean end comes before it.
        """
        clock = self._session.clock
        ends_at = clock.monotonic() + CUT_OFF_SECONDS
        if not self._loop_ended.wait(WRITES_SECONDS):
            publisher.flush(PUBLISH_SECONDS)
        clock.wait(max(0.0, ends_at - clock.monotonic()))
        _log.warning("controller.cut_off", why="a server hangs; the lease runs out by itself")
        os._exit(1)

    def _stop(
        self,
        poller: Poller,
        work: Work,
        observer: Observer,
        loop: Loop,
        server: StatusServer | None,
    ) -> None:
        """Publish what is known, end the threads, hand the lease over last."""
        poller.stop()
        work.publisher.flush(PUBLISH_SECONDS)
        work.publisher.stop()
        observer.stop(0.2)
        if server is not None:
            server.close()
        loop.release_lease()
        _log.info("controller.stopped")


def with_defaults(settings: Settings) -> Settings:
    """Settings with a state folder that exists and belongs to us alone."""
    folder = settings.state_folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return replace(settings, state_folder=folder)

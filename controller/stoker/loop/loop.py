"""The controller's main thread: takes events, runs passes, stops cleanly.

Everything that decides or writes to the cluster happens here; all other threads only put
events on the queue (design section 2).
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import Finding
from stoker.log import get_log
from stoker.loop.lease import Lease
from stoker.loop.step import (
    Event,
    EventKind,
    LoopState,
    PassKind,
    Timing,
    after_pass,
    step,
)
from stoker.model.ports import Clock
from stoker.model.refs import SourceRevision

if TYPE_CHECKING:  # its library is a tenth of a start, and one pass counts for nobody
    from stoker.metrics import Metrics

__all__ = ["Loop", "PassAborted", "PassRequest", "PassVerdict"]

_log = get_log("loop")

LONGEST_WAIT = 5.0
"""Seconds after which the loop looks at its lease and its threads, whatever happens."""


@dataclass(frozen=True, slots=True)
class PassRequest:
    """What a pass is asked to do. `finding` says why the source has no news."""

    kind: PassKind
    revision: SourceRevision | None
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class PassVerdict:
    """What the loop needs to know of a pass. `wake_in` is seconds, None = no wish."""

    failed: bool
    wake_in: float | None = None


class PassAborted(BaseException):
    """Raised by a checkpoint: stop, a notice, or a lost lease ends the pass here.

    Not an Exception, so that no stage's boundary takes it for a bug; what was sent is
    folded, and the next pass starts from the cluster as it stands, as after a crash.
    """


class Loop:
    """Runs passes until stopped. `run_pass` must not raise anything but bugs.

    `on_lead` is called before the first pass after another controller may have worked:
    what this process remembers of cluster and Git is then old; it was read in the lease's
    `term`, 0 if it was not held. `warm` is called with each new
    revision while another leads, so that a takeover finds everything read and rendered; it
    writes nothing. `events` is waited on with a time-out in seconds; virtual time brings its
    own. The lease is renewed by its keeper, whose changes come as events.
    """

    def __init__(
        self,
        run_pass: Callable[[PassRequest], PassVerdict],
        clock: Clock,
        metrics: Metrics,
        *,
        timing: Timing,
        lease: Lease | None = None,
        term: int = 0,
        on_lead: Callable[[], None] = lambda: None,
        warm: Callable[[SourceRevision], None] = lambda _revision: None,
        events: queue.SimpleQueue[Event] | None = None,
    ) -> None:
        self._run_pass = run_pass
        self._clock = clock
        self._metrics = metrics
        self._timing = timing
        self._lease = lease
        self._on_lead = on_lead
        self._warm = warm
        self._warmed: SourceRevision | None = None
        self._warming = False
        self._followed = False
        self._term = term
        self._queue: queue.SimpleQueue[Event] = queue.SimpleQueue() if events is None else events
        self.state = LoopState()
        self.last_pass_ended = 0.0
        self._stop_wanted = False
        self._notice_wanted = False
        self._running = PassKind.NONE

    def put(self, event: Event) -> None:
        """Give the loop an event; callable from any thread and from signal handlers."""
        if event.kind is EventKind.NOTICE:
            self._notice_wanted = True
        self._queue.put(event)

    def checkpoint(self) -> None:
        """What a pass calls between units and requests: raises PassAborted to end it.

        Only a stop, a notice (which runs a pass of its own at once) and a lost lease do;
        warming up ends when there is real work.
        """
        if self._stop_wanted:
            raise PassAborted("stopping")
        if self._warming:
            if self.leads:
                raise PassAborted("leads now")
            return
        if self._notice_wanted and self._running is PassKind.FULL:
            raise PassAborted("a node gave notice")
        if self._lease is not None and not self._lease.admits:
            raise PassAborted("the lease is lost")

    def stop(self) -> None:
        """Ask for a clean end; a pass that runs ends at its next checkpoint."""
        self._stop_wanted = True
        self.put(Event(EventKind.STOP, self._clock.monotonic()))

    def run(self) -> None:
        """Work until a STOP event came."""
        look_at: float | None = self._clock.monotonic()
        while True:
            events = self._take(look_at)
            leads = self.leads
            following = step(self.state, events, self._clock.monotonic(), self._timing)
            self.state = following.state
            if self.state.stopping:
                return
            look_at = following.look_at
            if not leads:
                self._followed = True
                look_at = None  # what is due stays due; only the lease can change that
                self._warm_up()
            elif following.kind is not PassKind.NONE:
                self._lead()
                self._one_pass(following.kind)
                look_at = self._clock.monotonic()

    @property
    def leads(self) -> bool:
        """Whether passes may run here: the lease is held, or there is none."""
        return self._lease is None or self._lease.held

    @property
    def is_warm(self) -> bool:
        """Whether another leads, and this process has read and rendered all it would need."""
        return self._warmed is not None and not self._warming and not self.leads

    def _lead(self) -> None:
        """Catch up where another may have worked, and admit writes of this term."""
        term = 0 if self._lease is None else self._lease.term
        if self._followed or term != self._term:
            self._followed = False
            _log.info("lease.taken")
            self._on_lead()
        self._term = term
        if self._lease is not None:
            self._lease.begin(term)

    def _warm_up(self) -> None:
        """Once for each revision: everything of a pass that only reads."""
        revision = self.state.revision
        if revision is None or revision == self._warmed:
            return
        self._warmed = revision
        self._warming = True
        try:
            self._warm(revision)
        except PassAborted as why:
            _log.info("warm-up.ended", why=str(why))
        except Exception:  # noqa: BLE001 - a pass like any other
            _log.exception("warm-up.crashed")
            self._metrics.bugs.inc()
        finally:
            self._warming = False

    def _take(self, look_at: float | None) -> tuple[Event, ...]:
        """Wait for the first event or the instant, then take all that are there."""
        now = self._clock.monotonic()
        wait = LONGEST_WAIT if look_at is None else min(LONGEST_WAIT, max(0.0, look_at - now))
        events = []
        try:
            events.append(self._queue.get(timeout=wait) if wait > 0 else self._queue.get_nowait())
            while True:
                events.append(self._queue.get_nowait())
        except queue.Empty:
            return tuple(events)

    def _one_pass(self, kind: PassKind) -> None:
        request = PassRequest(kind, self.state.revision, self.state.source_finding)
        started = self._clock.monotonic()
        self._running = kind
        if kind is PassKind.NOTICE:
            self._notice_wanted = False
        try:
            verdict = self._run_pass(request)
        except PassAborted as why:
            _log.info("pass.aborted", kind=kind, why=str(why))
            verdict = PassVerdict(failed=False, wake_in=0.0)
        except Exception:  # noqa: BLE001 - the pass is one of the three boundaries
            _log.exception("pass.crashed", kind=kind)
            self._metrics.bugs.inc()
            verdict = PassVerdict(failed=True)
        finally:
            self._running = PassKind.NONE
        now = self._clock.monotonic()
        self.last_pass_ended = now
        result = "failed" if verdict.failed else "done"
        self._metrics.passes.labels(kind, result).inc()
        self._metrics.pass_seconds.labels(kind).observe(now - started)
        self.state = after_pass(
            self.state,
            kind=kind,
            now=now,
            failed=verdict.failed,
            wake_in=verdict.wake_in,
            timing=self._timing,
        )

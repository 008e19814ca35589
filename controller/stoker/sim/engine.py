"""An inference engine stand-in: a real HTTP server on loopback that behaves like vLLM.

In: a profile (model, load time, batch size, speed). Out: `Engine`, with /health, /v1/…,
/metrics, the sleep endpoints and vLLM's two ways to stop. Used by the simulated kubelet, by
`stoker dev engine` and by tests; `sim.engine_http` speaks the protocol, `sim.engine_batch`
does the batching.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Self

from stoker.clock import SystemClock
from stoker.model.ports import Clock
from stoker.sim.engine_batch import Batch, Sequence, Step
from stoker.sim.engine_http import EngineServer
from stoker.sim.engine_metrics import EngineMetrics
from stoker.sim.engine_profile import (
    EngineFaults,
    EngineProfile,
    MetricsFault,
    SleepLevel,
    Ticket,
)

__all__ = ["Engine", "EngineFaults", "EngineProfile", "MetricsFault", "SleepLevel"]

_WRITE_SECONDS = 1.0


class Engine:
    """One engine. `start` it, ask it over HTTP, `shutdown` or `crash` it; single use.

    Every public method may be called from any thread.
    """

    def __init__(
        self,
        profile: EngineProfile | None = None,
        *,
        faults: EngineFaults | None = None,
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self.profile = profile or EngineProfile()
        self.faults = faults or EngineFaults()
        batch = self.profile.batch
        self.metrics = EngineMetrics(
            self.profile.models[0], block_tokens=batch.block_tokens, kv_blocks=batch.kv_blocks
        )
        self._clock = clock or SystemClock()
        self._batch = Batch(batch)
        self._tickets: dict[int, Ticket] = {}
        self._changed = threading.Condition()
        self._started_at = 0.0
        self._sleep = SleepLevel.AWAKE
        self._draining = False
        self._stopped = threading.Event()
        self._server = EngineServer(self, port)

    def start(self) -> Self:
        """Listen and begin to load; gives itself back."""
        self._started_at = self._clock.monotonic()
        self._server.start()
        threading.Thread(target=self._serve_steps, name="engine-steps", daemon=True).start()
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.crash()

    @property
    def address(self) -> str:
        """`127.0.0.1:port`."""
        return f"127.0.0.1:{self._server.port}"

    @property
    def stopped(self) -> bool:
        """Whether it no longer listens."""
        return self._stopped.is_set()

    @property
    def draining(self) -> bool:
        """Whether new requests are refused."""
        return self._draining

    @property
    def loaded(self) -> bool:
        """Whether the load is over, which is all that /health says."""
        age = self._clock.monotonic() - self._started_at
        return not self.faults.stuck_start and age >= self._scaled(self.profile.load_seconds)

    @property
    def completions_fail(self) -> bool:
        """Whether it is loaded and yet can't serve a token."""
        until = self._scaled(self.profile.load_seconds + self.faults.completions_fail_seconds)
        return self._clock.monotonic() - self._started_at < until

    @property
    def sleeping(self) -> SleepLevel:
        """Which sleep level holds."""
        return self._sleep

    @property
    def in_flight(self) -> int:
        """Requests running and waiting; one whose last step is under way still runs."""
        with self._changed:
            return len(self._tickets)

    def submit(self, prompt_tokens: int, max_tokens: int) -> Ticket | None:
        """Queue a request; None when it could never fit."""
        with self._changed:
            if not self._batch.fits_at_all(prompt_tokens, max_tokens):
                return None
            sequence = self._batch.add(prompt_tokens, max_tokens)
            now = self._clock.monotonic()
            ticket = Ticket(sequence, arrived=now, last_token=now)
            self._tickets[sequence.number] = ticket
            if self._draining or self.stopped:
                self._abort(ticket)
            self._show_load()
            self._changed.notify_all()
            return ticket

    def abort(self, ticket: Ticket) -> None:
        """Give up a request, as when its client went away."""
        with self._changed:
            self._abort(ticket)
            self._show_load()

    def sleep(self, level: int) -> None:
        """Level 0 only pauses; 1 and 2 also free memory. Requests wait until it wakes."""
        with self._changed:
            if level >= 2:
                self._sleep = SleepLevel.DISCARD_ALL
            else:
                self._sleep = SleepLevel.WEIGHTS_OFFLOADED
            self.metrics.sleep_state(self._sleep.value)

    def wake_up(self) -> None:
        """Serve again after the time that the sleep level costs."""
        with self._changed:
            if self._sleep is SleepLevel.AWAKE:
                return
            deep = self._sleep is SleepLevel.DISCARD_ALL
            seconds = self.profile.reload_seconds if deep else self.profile.wake_seconds
        self._clock.wait(self._scaled(seconds))
        with self._changed:
            self._sleep = SleepLevel.AWAKE
            self.metrics.sleep_state(self._sleep.value)
            self._changed.notify_all()

    def shutdown(self, timeout_seconds: float = 0.0) -> None:
        """Stop as on SIGTERM with vLLM's --shutdown-timeout; returns when it is down.

        0 aborts what is in flight. More refuses new requests with 503 and finishes old ones;
        what is left after that time is aborted.
        """
        with self._changed:
            self._draining = True
        if timeout_seconds > 0:
            self._wait_answered(timeout_seconds)
        with self._changed:
            for ticket in tuple(self._tickets.values()):
                self._abort(ticket)
        # What is finished but not yet written still goes out.
        self._wait_answered(_WRITE_SECONDS)
        self._stop()

    def begin_shutdown(self, timeout_seconds: float = 0.0) -> None:
        """Start `shutdown` on a thread of its own; watch `stopped`."""
        with self._changed:
            self._draining = True
        threading.Thread(
            target=self.shutdown, args=(timeout_seconds,), name="engine-drain", daemon=True
        ).start()

    def crash(self) -> None:
        """Die at once: every connection breaks, nothing is answered."""
        with self._changed:
            self._draining = True
        self._stop()

    def fail(self, **changes: object) -> None:
        """Change some of the faults: `engine.fail(metrics=MetricsFault.HANG)`."""
        self.faults = replace(self.faults, **changes)  # type: ignore[arg-type]

    def wait_stopped(self, timeout_seconds: float) -> bool:
        """Wait until it is down; False when it isn't after that time."""
        return self._stopped.wait(timeout_seconds)

    def _wait_answered(self, seconds: float) -> None:
        """Return when no request is in flight and every answer is written, or time is up."""
        deadline = self._clock.monotonic() + seconds
        with self._changed:
            while (self._tickets or self._server.answering) and not self.stopped:
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, 0.02))

    def _stop(self) -> None:
        with self._changed:
            for ticket in tuple(self._tickets.values()):
                self._abort(ticket)
            self._stopped.set()
            self._changed.notify_all()
        self._server.stop()

    def _serve_steps(self) -> None:
        while True:
            with self._changed:
                while not self.stopped and not self._can_step():
                    self._changed.wait()
                if self.stopped:
                    return
                step = self._batch.step()
                self._show_load()
            self._clock.wait(self._scaled(step.seconds))
            with self._changed:
                self._deliver(step)
                self._show_load()
                self._changed.notify_all()

    def _can_step(self) -> bool:
        return self._batch.busy and self._sleep is SleepLevel.AWAKE

    def _deliver(self, step: Step) -> None:
        now = self._clock.monotonic()
        self.metrics.preemptions.inc(step.preemptions)
        self.metrics.prompt_tokens.inc(step.prefill_tokens)
        self.metrics.cache_queries.inc(step.prefill_tokens)
        for sequence in step.admitted:
            ticket = self._tickets.get(sequence.number)
            if ticket is not None and not sequence.preempted:
                self.metrics.queued.observe(
                    max(0.0, now - self._scaled(step.seconds) - ticket.arrived)
                )
        for sequence in step.emitted:
            ticket = self._tickets.get(sequence.number)
            if ticket is None:  # aborted while the step ran
                continue
            self.metrics.generation_tokens.inc()
            gap = now - ticket.last_token
            if sequence.generated == 1:
                self.metrics.first_token.observe(now - ticket.arrived)
            else:
                self.metrics.inter_token.observe(gap)
            ticket.last_token = now
            ticket.events.put(sequence.generated)
        for sequence in step.finished:
            self._leave(sequence, sequence.finish_reason, now)

    def _leave(self, sequence: Sequence, reason: str, now: float) -> None:
        ticket = self._tickets.pop(sequence.number, None)
        if ticket is None:
            return
        self.metrics.finished(reason)
        self.metrics.end_to_end.observe(now - ticket.arrived)
        self.metrics.prompt_sizes.observe(sequence.prompt_tokens)
        self.metrics.answer_sizes.observe(sequence.generated)
        ticket.events.put(reason)

    def _abort(self, ticket: Ticket) -> None:
        self._batch.abort(ticket.sequence)
        self._leave(ticket.sequence, "abort", self._clock.monotonic())

    def _show_load(self) -> None:
        self.metrics.running.set(len(self._tickets) - len(self._batch.waiting))
        self.metrics.waiting.set(len(self._batch.waiting))
        self.metrics.kv_share.set(self._batch.kv_share)

    def _scaled(self, seconds: float) -> float:
        return seconds / self.profile.speed

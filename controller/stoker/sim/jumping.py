"""An engine in virtual time: the steps of `sim.engine_batch`, taken many at once.

In: requests with the second at which they arrive. Out: when the first token and the end of
each come. While sequences only decode, all steps up to the next end (or the next arrival
that could be admitted) are one jump in closed form. Driven by `sim.fleet_run`; pure.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate

from stoker.engine.series import bucket_percentile
from stoker.sim.engine_batch import Batch, BatchProfile, Sequence, Step
from stoker.sim.traffic import Request

__all__ = ["Answer", "Counters", "JumpingEngine", "LATENCY_BUCKETS", "percentile_ms"]

LATENCY_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
"""Upper bounds in seconds, as vLLM's histogram of times to the first token has them."""


@dataclass(slots=True, eq=False)
class Answer:
    """What became of a request. Seconds from the begin of the run; None has not happened."""

    request: Request
    first_s: float | None = None
    ended_s: float | None = None


@dataclass(slots=True)
class Counters:
    """What an engine's metrics page counts from its start on."""

    prefill_tokens: int = 0
    """Computed ones: what a cache held is not among them."""
    admitted_tokens: int = 0
    """Of prompts that were admitted, whether a cache held them or not."""
    decode_tokens: int = 0
    finished: int = 0
    finished_prompt_tokens: int = 0
    finished_output_tokens: int = 0
    preemptions: int = 0
    first_token: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BUCKETS) + 1))
    inter_token: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BUCKETS) + 1))

    def copy(self) -> Counters:
        """The counts of this moment."""
        return Counters(
            self.prefill_tokens,
            self.admitted_tokens,
            self.decode_tokens,
            self.finished,
            self.finished_prompt_tokens,
            self.finished_output_tokens,
            self.preemptions,
            self.first_token[:],
            self.inter_token[:],
        )


def percentile_ms(before: list[int], after: list[int], share: float) -> float | None:
    """The percentile between two readings of a histogram, in milliseconds.

    None when nothing was observed between the two.
    """
    counts = (late - early for early, late in zip(before, after, strict=True))
    heights = list(accumulate(counts))
    if heights[-1] <= 0:
        return None
    seconds = bucket_percentile((*LATENCY_BUCKETS, math.inf), heights, share)
    return None if seconds is None else seconds * 1000


class JumpingEngine:
    """One engine. `until` is when what is under way ends: call `complete` then.

    Between two calls nothing that others can see changes but the tokens of running sequences.
    """

    __slots__ = ("_alone", "_at", "_open", "_step", "batch", "counters", "until")

    def __init__(self, profile: BatchProfile) -> None:
        self.batch = Batch(profile)
        self.counters = Counters()
        self.until = math.inf
        """Seconds; infinite while it is idle."""
        self._at = 0.0
        self._alone = 0
        self._step: Step | None = None
        self._open: dict[Sequence, Answer] = {}

    @property
    def load(self) -> int:
        """Requests running and waiting; one whose last step is under way still runs."""
        return len(self._open)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way, not even the last step of what has ended."""
        return not self._open

    def add(self, now_s: float, answer: Answer) -> bool:
        """Take a request; False when it could never fit."""
        request, batch = answer.request, self.batch
        if not batch.fits_at_all(request.prompt_tokens, request.output_tokens):
            return False
        sequence = batch.add(request.prompt_tokens, request.output_tokens, request.prefix)
        self._open[sequence] = answer
        if self.until == math.inf:
            self._begin(now_s)
        elif self._step is None and len(batch.waiting) == 1 and batch.admits:
            self._cut(now_s)
        return True

    def complete(self) -> list[Answer]:
        """End what is under way at `until`, begin what follows; gives the answers that ended."""
        now, ended = self.until, []
        step = self._step
        if step is None:
            finished = self._decode(self._alone)
        else:
            finished = list(step.finished)
            self._count(step, now)
        for sequence in finished:
            answer = self._open.pop(sequence)
            answer.ended_s = now
            ended.append(answer)
            self.counters.finished_prompt_tokens += answer.request.prompt_tokens
            self.counters.finished_output_tokens += answer.request.output_tokens
        self.counters.finished += len(finished)
        self._begin(now)
        return ended

    def settle(self, now_s: float) -> None:
        """Count the whole steps until now, so that the counters are those of this moment."""
        if self._step is not None or self.until == math.inf:
            return
        since = now_s - self._at
        steps = self.batch.steps_for(since)
        if self.batch.seconds_of(steps) > since:
            steps -= 1
        if 0 < steps < self._alone:
            passed = self.batch.seconds_of(steps)
            self._decode(steps)
            self._at += passed
            self._alone -= steps

    def lost(self) -> list[Answer]:
        """Die at once; gives what was under way, in order of arrival."""
        broken = list(self._open.values())
        self._open.clear()
        self.until = math.inf
        return broken

    def _begin(self, now_s: float) -> None:
        batch = self.batch
        self._at = now_s
        self._alone = alone = batch.steps_alone()
        if alone:
            self._step = None
            self.until = now_s + batch.seconds_of(alone)
        elif batch.busy:
            self._step = step = batch.step()
            self.until = now_s + step.seconds
        else:
            self._step = None
            self.until = math.inf

    def _cut(self, now_s: float) -> None:
        """End the jump with the first step that ends no earlier than now."""
        steps = self.batch.steps_for(now_s - self._at)
        if steps < self._alone:
            self._alone = steps
            self.until = self._at + self.batch.seconds_of(steps)

    def _decode(self, steps: int) -> list[Sequence]:
        tokens = self.batch.decoding * steps
        each = self.batch.seconds_of(steps) / steps
        self.counters.decode_tokens += tokens
        self.counters.inter_token[bisect_left(LATENCY_BUCKETS, each)] += tokens
        return self.batch.decode(steps)

    def _count(self, step: Step, now_s: float) -> None:
        counters = self.counters
        counters.prefill_tokens += step.prefill_tokens
        for sequence in step.admitted:
            counters.admitted_tokens += sequence.prompt_tokens
        counters.decode_tokens += len(step.emitted)
        counters.preemptions += step.preemptions
        later = len(step.emitted)
        for sequence in step.first:
            answer = self._open[sequence]
            if answer.first_s is None:
                answer.first_s = now_s
                waited = now_s - answer.request.at_s
                counters.first_token[bisect_left(LATENCY_BUCKETS, waited)] += 1
                later -= 1
        counters.inter_token[bisect_left(LATENCY_BUCKETS, step.seconds)] += later

"""Step-wise batching as an engine does it, without time: sequences, KV blocks, a queue.

In: requests as token counts. Out: one `Step` a call, with how long it would take and which
sequences got a token. Driven by `sim.engine` in real time; pure, so tests need no waiting.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

__all__ = ["Batch", "BatchProfile", "Sequence", "Step"]


@dataclass(frozen=True, slots=True)
class BatchProfile:
    """How fast and how large the engine is.

    A step takes `step_seconds` + `sequence_seconds` for each decoding sequence + prefill
    tokens / `prefill_tokens_per_second`; the shape is the linear iteration model of
    semantics.md 1.5, the figures are those of a small model on one mid-size GPU.
    """

    max_sequences: int = 16
    max_batched_tokens: int = 2048
    kv_blocks: int = 2048
    block_tokens: int = 16
    step_seconds: float = 0.015
    sequence_seconds: float = 0.0005
    prefill_tokens_per_second: float = 8000.0


@dataclass(slots=True, eq=False)
class Sequence:
    """One request on its way: `prefilled` of its prompt and `generated` tokens so far.

    `finish_reason` is empty until it leaves: `stop`, `length` or `abort`.
    """

    number: int
    prompt_tokens: int
    max_tokens: int
    prefilled: int = 0
    generated: int = 0
    finish_reason: str = ""
    preempted: int = 0

    @property
    def context_tokens(self) -> int:
        """Prompt and generated tokens, all of which need KV blocks."""
        return self.prompt_tokens + self.generated


@dataclass(frozen=True, slots=True)
class Step:
    """What one iteration did. `emitted` got one token each, `finished` are among them."""

    seconds: float
    admitted: tuple[Sequence, ...] = ()
    emitted: tuple[Sequence, ...] = ()
    finished: tuple[Sequence, ...] = ()
    prefill_tokens: int = 0
    preemptions: int = 0


@dataclass(slots=True)
class Batch:
    """The engine's scheduler: first come, first served, with preemption by recompute."""

    profile: BatchProfile
    running: list[Sequence] = field(default_factory=list)
    waiting: deque[Sequence] = field(default_factory=deque)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def busy(self) -> bool:
        """Whether a step would do anything."""
        return bool(self.running or self.waiting)

    @property
    def kv_share(self) -> float:
        """Share of KV blocks in use, 0 to 1."""
        return self._blocks_used() / self.profile.kv_blocks

    def fits_at_all(self, prompt_tokens: int, max_tokens: int) -> bool:
        """Whether an empty engine could serve it to its end."""
        return self._blocks(prompt_tokens + max_tokens) <= self.profile.kv_blocks

    def add(self, prompt_tokens: int, max_tokens: int) -> Sequence:
        """Queue a request; both counts are at least 1."""
        sequence = Sequence(next(self._numbers), max(1, prompt_tokens), max(1, max_tokens))
        self.waiting.append(sequence)
        return sequence

    def abort(self, sequence: Sequence) -> None:
        """Take it out wherever it is; one that has finished stays as it is."""
        if sequence.finish_reason:
            return
        sequence.finish_reason = "abort"
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)

    def step(self) -> Step:
        """One iteration: admit, decode, prefill."""
        admitted = self._admit()
        preemptions = self._make_room()
        decoding = [s for s in self.running if s.prefilled >= s.prompt_tokens]
        budget = max(0, self.profile.max_batched_tokens - len(decoding))
        emitted = list(decoding)
        prefilled = 0
        for sequence in self.running:
            chunk = min(budget - prefilled, sequence.prompt_tokens - sequence.prefilled)
            if chunk <= 0:
                continue
            sequence.prefilled += chunk
            prefilled += chunk
            if sequence.prefilled == sequence.prompt_tokens:
                emitted.append(sequence)
        for sequence in emitted:
            sequence.generated += 1
            if sequence.generated >= sequence.max_tokens:
                sequence.finish_reason = "length"
        finished = tuple(s for s in emitted if s.finish_reason)
        self.running = [s for s in self.running if not s.finish_reason]
        profile = self.profile
        seconds = (
            profile.step_seconds
            + profile.sequence_seconds * len(decoding)
            + prefilled / profile.prefill_tokens_per_second
        )
        return Step(seconds, admitted, tuple(emitted), finished, prefilled, preemptions)

    def _admit(self) -> tuple[Sequence, ...]:
        admitted = []
        while self.waiting and len(self.running) < self.profile.max_sequences:
            needed = self._blocks(self.waiting[0].context_tokens + 1)
            if self._blocks_used() + needed > self.profile.kv_blocks:
                break
            admitted.append(self.waiting.popleft())
            self.running.append(admitted[-1])
        return tuple(admitted)

    def _make_room(self) -> int:
        """Preempt the youngest until every running sequence can take one more token."""
        preemptions = 0
        while len(self.running) > 1 and self._blocks_used() > self.profile.kv_blocks:
            victim = self.running.pop()
            victim.prefilled = 0
            victim.preempted += 1
            self.waiting.appendleft(victim)
            preemptions += 1
        return preemptions

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.profile.block_tokens)

    def _blocks_used(self) -> int:
        """Blocks of the running sequences with their next token."""
        return sum(self._blocks(s.context_tokens + 1) for s in self.running)

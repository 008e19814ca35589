"""A second engine, step by step and without any of the sums that `sim.engine_batch` carries.

Written for the tests: every iteration looks at every sequence. The contract of the simulator is
that jumps change nothing that a client could tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.sim.engine_batch import BatchProfile
from stoker.sim.traffic import Request


@dataclass(eq=False)
class Plain:
    """A request in it."""

    request: Request
    generated: int = 0
    prefilled: int = 0
    decoding: bool = False
    hits: list[int] = field(default_factory=list)
    first_s: float | None = None
    ended_s: float | None = None

    @property
    def context(self) -> int:
        return self.request.prompt_tokens + self.generated


class PlainEngine:
    """`play` a list of requests; gives them with the times of their first token and end."""

    def __init__(self, profile: BatchProfile) -> None:
        self.profile = profile
        self.running: list[Plain] = []
        self.waiting: list[Plain] = []
        self.kept: list[int] = []
        """Prefix blocks in the cache, the one used longest ago first."""
        self.preemptions = 0

    def play(self, requests: list[Request]) -> list[Plain]:
        all_of = [Plain(request) for request in requests]
        coming = list(all_of)
        now = 0.0
        while coming or self.waiting or self.running:
            if not self.waiting and not self.running:
                now = max(now, coming[0].request.at_s)
            while coming and coming[0].request.at_s <= now:
                self.waiting.append(coming.pop(0))
            now = self._iterate(now)
        return all_of

    def _iterate(self, now: float) -> float:
        profile = self.profile
        while self.waiting and len(self.running) < profile.max_sequences:
            head = self.waiting[0]
            head.hits = self._hits(head)
            if self._used([*self.running, head]) > profile.kv_blocks:
                head.hits = []
                break
            self.waiting.pop(0)
            head.prefilled = len(head.hits) * profile.prefix_tokens
            self.running.append(head)
            self._touch(head.hits)
            self._trim()
        while len(self.running) > 1 and self._used(self.running) > profile.kv_blocks:
            victim = self.running.pop()
            self._leave(victim)
            victim.prefilled, victim.decoding = 0, False
            self.waiting.insert(0, victim)
            self.preemptions += 1
        decoding = [s for s in self.running if s.decoding]
        context = sum(s.context for s in decoding)
        left = max(0, profile.max_batched_tokens - len(decoding))
        computed, done = 0, []
        for sequence in self.running:
            if sequence.decoding:
                continue
            chunk = min(left - computed, sequence.context - sequence.prefilled)
            if chunk <= 0:
                continue
            sequence.prefilled += chunk
            computed += chunk
            if sequence.prefilled == sequence.context:
                done.append(sequence)
        now += (
            profile.step_seconds
            + profile.sequence_seconds * len(decoding)
            + profile.context_seconds * context
            + computed / profile.prefill_tokens_per_second
        )
        for sequence in decoding:
            sequence.generated += 1
        for sequence in decoding:
            self._end(sequence, now)
        for sequence in done:
            self._publish(sequence)
            sequence.decoding = True
            sequence.generated += 1
            if sequence.first_s is None:
                sequence.first_s = now
            self._end(sequence, now)
        self._trim()
        return now

    def _end(self, sequence: Plain, now: float) -> None:
        if sequence.generated >= sequence.request.output_tokens:
            sequence.ended_s = now
            self.running.remove(sequence)
            self._leave(sequence)

    def _named(self, sequence: Plain) -> tuple[int, ...]:
        whole = (sequence.request.prompt_tokens - 1) // self.profile.prefix_tokens
        return sequence.request.prefix[:whole]

    def _hits(self, sequence: Plain) -> list[int]:
        found = []
        for block in self._named(sequence):
            if block not in self.kept:
                break
            found.append(block)
        return found

    def _publish(self, sequence: Plain) -> None:
        in_use = {block for other in self.running for block in other.hits}
        for block in self._named(sequence)[len(sequence.hits) :]:
            if block in in_use:
                break
            sequence.hits.append(block)
            self._touch([block])

    def _touch(self, blocks: list[int]) -> None:
        for block in blocks:
            if block in self.kept:
                self.kept.remove(block)
            self.kept.append(block)

    def _leave(self, sequence: Plain) -> None:
        held, sequence.hits = sequence.hits, []
        in_use = {block for other in self.running for block in other.hits}
        self._touch([block for block in reversed(held) if block not in in_use])

    def _used(self, sequences: list[Plain]) -> int:
        profile = self.profile
        each = profile.prefix_tokens // profile.block_tokens
        own = sum(
            -(-(s.context + 1) // profile.block_tokens) - len(s.hits) * each for s in sequences
        )
        return own + each * len({block for s in sequences for block in s.hits})

    def _trim(self) -> None:
        profile = self.profile
        each = profile.prefix_tokens // profile.block_tokens
        in_use = {block for s in self.running for block in s.hits}
        own = self._used(self.running) - each * len(in_use)
        room = max(0, (profile.kv_blocks - own) // each - len(in_use))
        spare = [block for block in self.kept if block not in in_use]
        for block in spare[: max(0, len(spare) - room)]:
            self.kept.remove(block)

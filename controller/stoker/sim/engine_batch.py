"""Step-wise batching as an engine does it, without time: sequences, KV blocks, a queue.

In: requests as token counts. Out: one `Step` a call, with how long it would take and which
sequences got a token; or many steps in one where nothing but decoding happens. Driven by
`sim.engine` in real time and by `sim.jumping` in virtual time; pure, so tests need no waiting.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass, field

from stoker.sim.batch_parts import BatchProfile, Sequence, Step
from stoker.sim.prefix_cache import PrefixCache

__all__ = ["Batch", "BatchProfile", "Sequence", "Step"]


@dataclass(slots=True)
class Batch:
    """The engine's scheduler: first come, first served, with preemption by recompute.

    Sums over the running sequences are carried along instead of made anew: how many decode,
    their contexts, the blocks in use, and when each will end (a heap). `_phases[r]` counts the
    decoding sequences whose next block begins at steps that are -r modulo the block's size.
    """

    profile: BatchProfile
    running: list[Sequence] = field(default_factory=list)
    """In order of admission."""
    waiting: deque[Sequence] = field(default_factory=deque)
    steps: int = 0
    """Iterations so far."""
    decoding: int = 0
    """Sequences that get a token in the next iteration, before any prefill ends."""
    cache: PrefixCache = field(init=False)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _context: int = 0
    _used: int = 0
    """Blocks of the running sequences with their next token, without those in the cache."""
    _phases: list[int] = field(init=False)
    _ends: list[tuple[int, int, Sequence]] = field(default_factory=list)
    _prefilling: list[Sequence] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._phases = [0] * self.profile.block_tokens
        self.cache = PrefixCache(self.profile.prefix_tokens // self.profile.block_tokens)

    @property
    def busy(self) -> bool:
        """Whether a step would do anything."""
        return bool(self.running or self.waiting)

    @property
    def kv_share(self) -> float:
        """Share of KV blocks in use, 0 to 1 (more for the moment before a preemption)."""
        return self._blocks_used() / self.profile.kv_blocks

    def fits_at_all(self, prompt_tokens: int, max_tokens: int) -> bool:
        """Whether an empty engine could serve it to its end."""
        return self._blocks(prompt_tokens + max_tokens) <= self.profile.kv_blocks

    def add(self, prompt_tokens: int, max_tokens: int, prefix: tuple[int, ...] = ()) -> Sequence:
        """Queue a request; both counts are at least 1."""
        prompt = max(1, prompt_tokens)
        # At least one token is always computed: without it there is no first answer.
        named = prefix[: (prompt - 1) // self.profile.prefix_tokens] if prefix else ()
        sequence = Sequence(next(self._numbers), prompt, max(1, max_tokens), prefix=named)
        sequence._batch = self  # noqa: SLF001 - its batch
        self.waiting.append(sequence)
        return sequence

    def abort(self, sequence: Sequence) -> None:
        """Take it out wherever it is; one that has finished stays as it is."""
        if sequence.finish_reason:
            return
        sequence.finish_reason = "abort"
        if sequence in self.running:
            self.running.remove(sequence)
            self._release(sequence)
        else:
            self.waiting.remove(sequence)

    def step(self) -> Step:
        """One iteration: admit, decode, prefill."""
        admitted = self._admit() if self.waiting else ()
        preemptions = self._make_room()
        decoding, context = self.decoding, self._context
        emitted = [s for s in self.running if s.decoding] if decoding else []
        prefilled, first = self._prefill(max(0, self.profile.max_batched_tokens - decoding))
        finished = self._decoded(1)
        for sequence in first:
            self._begin_decoding(sequence)
            if sequence.generated >= sequence.max_tokens:
                finished.append(sequence)
                self._finish(sequence)
        if first:
            emitted += first
        profile = self.profile
        seconds = (
            profile.step_seconds
            + profile.sequence_seconds * decoding
            + profile.context_seconds * context
            + prefilled / profile.prefill_tokens_per_second
        )
        return Step(
            seconds,
            admitted,
            tuple(emitted),
            tuple(finished),
            prefilled,
            preemptions,
            tuple(first),
        )

    # ------------------------------------------------------------ many steps in one

    def steps_alone(self) -> int:
        """How many iterations follow in which sequences decode and nothing else happens.

        The last of them may end sequences. 0: the next one admits, prefills or preempts.
        """
        if not self.decoding or self._prefilling or (self.waiting and self.admits):
            return 0
        ends = self._ends
        while True:
            end, _, sequence = ends[0]
            if sequence.decoding and sequence.max_tokens - sequence._tokens == end:  # noqa: SLF001
                break
            heapq.heappop(ends)  # preempted or aborted since
        return min(end - self.steps, self._steps_with_room(end - self.steps))

    def seconds_of(self, steps: int) -> float:
        """How long so many iterations take that only decode."""
        profile = self.profile
        each = (
            profile.step_seconds
            + profile.sequence_seconds * self.decoding
            + profile.context_seconds * self._context
        )
        grown = profile.context_seconds * self.decoding
        return steps * each + grown * (steps * (steps - 1) / 2)

    def steps_for(self, seconds: float) -> int:
        """The fewest such iterations, at least 1, that take no less than that."""
        profile = self.profile
        each = (
            profile.step_seconds
            + profile.sequence_seconds * self.decoding
            + profile.context_seconds * self._context
        )
        half = profile.context_seconds * self.decoding / 2
        if half:
            line = each - half
            steps = math.ceil((math.sqrt(line * line + 4 * half * seconds) - line) / (2 * half))
        else:
            steps = math.ceil(seconds / each)
        steps = max(1, steps)
        while steps > 1 and self.seconds_of(steps - 1) >= seconds:
            steps -= 1
        while self.seconds_of(steps) < seconds:
            steps += 1
        return steps

    def decode(self, steps: int) -> list[Sequence]:
        """Make so many iterations, at most `steps_alone`; gives the sequences that ended."""
        return self._decoded(steps)

    # -------------------------------------------------------------------- the parts

    def _decoded(self, steps: int) -> list[Sequence]:
        """Count on, with the blocks that are begun on the way, and end what has its tokens."""
        if self.decoding:
            self._used += self._begun(steps)
            self._context += self.decoding * steps
        self.steps += steps
        finished: list[Sequence] = []
        ends = self._ends
        while ends and ends[0][0] <= self.steps:
            end, _, sequence = heapq.heappop(ends)
            if sequence.decoding and sequence.max_tokens - sequence._tokens == end:  # noqa: SLF001
                finished.append(sequence)
                self._finish(sequence)
        if self.cache.spare:
            self.cache.keep_within(self.profile.kv_blocks - self._used)
        return finished

    def _begun(self, steps: int) -> int:
        """Blocks that the decoding sequences begin in so many iterations."""
        size = self.profile.block_tokens
        rounds, rest = divmod(steps, size)
        begun = rounds * self.decoding
        now = self.steps
        for step in range(rest):
            begun += self._phases[-(now + step) % size]
        return begun

    def _steps_with_room(self, steps: int) -> int:
        """How many of so many iterations begin with enough blocks; 0 when even this one lacks."""
        size = self.profile.block_tokens
        free = self.profile.kv_blocks - self._blocks_used()
        if free < 0:
            return 0
        if self.decoding * (steps // size + 1) <= free:
            return steps
        rounds = free // self.decoding
        free -= rounds * self.decoding
        fit = rounds * size
        now = self.steps
        step = 0
        while free >= 0:
            free -= self._phases[-(now + step) % size]
            step += 1
        return min(steps, fit + step)

    @property
    def admits(self) -> bool:
        """Whether the first that waits (there is one) would be admitted now."""
        if len(self.running) >= self.profile.max_sequences:
            return False
        head = self.waiting[0]
        needed = self._blocks(head.context_tokens + 1)
        if head.prefix:
            needed -= self.cache.saved_blocks(head.prefix)
        return self._blocks_used() + needed <= self.profile.kv_blocks

    def _admit(self) -> tuple[Sequence, ...]:
        admitted = []
        while self.waiting and self.admits:
            sequence = self.waiting.popleft()
            admitted.append(sequence)
            self.running.append(sequence)
            self._prefilling.append(sequence)
            self._used += self._blocks(sequence.context_tokens + 1)
            if sequence.prefix:
                sequence.shared = self.cache.take(sequence.prefix)
                self._used -= self.cache.blocks_each * len(sequence.shared)
                sequence.prefilled = len(sequence.shared) * self.profile.prefix_tokens
                self.cache.keep_within(self.profile.kv_blocks - self._used)
        return tuple(admitted)

    def _make_room(self) -> int:
        """Preempt the youngest until every running sequence can take one more token."""
        preemptions = 0
        while len(self.running) > 1 and self._blocks_used() > self.profile.kv_blocks:
            victim = self.running.pop()
            self._release(victim)
            victim.prefilled = 0
            victim.preempted += 1
            self.waiting.appendleft(victim)
            preemptions += 1
        return preemptions

    def _prefill(self, budget: int) -> tuple[int, list[Sequence]]:
        """Spend up to that many tokens in order of admission; gives those, and who is done."""
        left = budget
        done = []
        for sequence in self._prefilling:
            if left <= 0:
                break
            # After a preemption the answer so far is computed again, too.
            chunk = min(left, sequence.context_tokens - sequence.prefilled)
            sequence.prefilled += chunk
            left -= chunk
            if sequence.prefilled == sequence.context_tokens:
                done.append(sequence)
        if done:
            self._prefilling = [s for s in self._prefilling if s.prefilled < s.context_tokens]
        return budget - left, done

    def _begin_decoding(self, sequence: Sequence) -> None:
        """Its prefill is done and its next token out; called after the step was counted."""
        if sequence.prefix:
            self._used -= self.cache.blocks_each * self.cache.publish(
                sequence.prefix, sequence.shared
            )
        before = self._blocks(sequence.context_tokens + 1)
        sequence._tokens += 1 - self.steps  # noqa: SLF001
        sequence.decoding = True
        next_tokens = sequence.context_tokens + 1
        self._used += self._blocks(next_tokens) - before
        self.decoding += 1
        self._context += sequence.context_tokens
        self._phases[(next_tokens - self.steps) % self.profile.block_tokens] += 1
        end = sequence.max_tokens - sequence._tokens  # noqa: SLF001
        heapq.heappush(self._ends, (end, sequence.number, sequence))

    def _finish(self, sequence: Sequence) -> None:
        sequence.finish_reason = "length"
        self.running.remove(sequence)
        self._release(sequence)

    def _release(self, sequence: Sequence) -> None:
        """Take it out of every sum; it keeps its generated tokens."""
        self._used -= self._blocks(sequence.context_tokens + 1)
        if sequence.shared:
            self._used += self.cache.blocks_each * len(sequence.shared)
            self.cache.give_back(sequence.shared)
            sequence.shared = []
        if not sequence.decoding:
            if sequence in self._prefilling:
                self._prefilling.remove(sequence)
            return
        self.decoding -= 1
        self._context -= sequence.context_tokens
        next_tokens = sequence.context_tokens + 1
        self._phases[(next_tokens - self.steps) % self.profile.block_tokens] -= 1
        sequence._tokens += self.steps  # noqa: SLF001
        sequence.decoding = False

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.profile.block_tokens)

    def _blocks_used(self) -> int:
        """Blocks of the running sequences with their next token; shared ones count once."""
        return self._used + self.cache.held_blocks

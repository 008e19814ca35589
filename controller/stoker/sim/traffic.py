"""Requests of a trace, and what can be made of them: more or fewer, reversed, resampled.

In: requests in order of time (from `sim.trace_files`). Out: requests in order of time. Random
choices are drawn from a seed, so the same call gives the same requests. Pure.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stoker.sim.engine_batch import BatchProfile

__all__ = [
    "Request",
    "busy_seconds",
    "peak_need",
    "resampled",
    "reversed_in_time",
    "scaled",
]

SPREAD_SECONDS = 10.0
"""Copies of a request come up to that much later, so that no burst is made that was not there."""
MOST_COPIES = 1_000_003
"""More copies than any request gets: names of their prefixes never meet."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request: seconds from the begin of the trace, tokens, and how its prompt begins.

    `prefix` names blocks of `BatchProfile.prefix_tokens` tokens; empty when not known.
    """

    at_s: float
    prompt_tokens: int
    output_tokens: int
    prefix: tuple[int, ...] = ()


def scaled(requests: Iterable[Request], factor: float, seed: int) -> Iterator[Request]:
    """`factor` times as many: each as often as the whole part says, once more by chance.

    Streams. Copies have prefixes of their own, as other people's requests would.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    whole, part = divmod(factor, 1.0)
    later: list[tuple[float, int, Request]] = []
    number = 0
    for request in requests:
        while later and later[0][0] <= request.at_s:
            yield heapq.heappop(later)[2]
        times = int(whole) + (chance.random() < part)
        if times:
            yield request
        for copy in range(1, times):
            at_s = request.at_s + chance.random() * SPREAD_SECONDS
            prefix = tuple(-(block * MOST_COPIES + copy) for block in request.prefix)
            number += 1
            made = Request(at_s, request.prompt_tokens, request.output_tokens, prefix)
            heapq.heappush(later, (at_s, number, made))
    while later:
        yield heapq.heappop(later)[2]


def reversed_in_time(requests: Iterable[Request]) -> list[Request]:
    """The last first. Holds the whole trace."""
    known = list(requests)
    end_s = known[-1].at_s if known else 0.0
    return [
        Request(end_s - r.at_s, r.prompt_tokens, r.output_tokens, r.prefix) for r in reversed(known)
    ]


def resampled(
    requests: Iterable[Request], seed: int, block_seconds: float = 300.0
) -> list[Request]:
    """As long a trace of blocks drawn with replacement: bursts stay, their order does not.

    Holds the whole trace.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    known = list(requests)
    if not known:
        return []
    count = int(known[-1].at_s // block_seconds) + 1
    blocks: list[list[Request]] = [[] for _ in range(count)]
    for request in known:
        blocks[int(request.at_s // block_seconds)].append(request)
    # The last block is cut off by the end; drawing it as a whole one would thin the load.
    whole = blocks[:-1] or blocks
    drawn = []
    for number in range(count):
        block = chance.randrange(len(whole))
        shift = (number - block) * block_seconds
        drawn += [
            Request(r.at_s + shift, r.prompt_tokens, r.output_tokens, r.prefix)
            for r in whole[block]
        ]
    return [r for r in drawn if r.at_s <= known[-1].at_s]


def busy_seconds(request: Request, profile: BatchProfile) -> float:
    """How long a full engine is busy with a request: its prefill, and its share of the steps.

    A full engine runs as many sequences as seats and KV blocks allow of this size. Prefixes
    are taken as unknown to the cache.
    """
    context = request.prompt_tokens + request.output_tokens / 2
    blocks = -(-(request.prompt_tokens + request.output_tokens) // profile.block_tokens)
    seats = max(1, min(profile.max_sequences, profile.kv_blocks // max(1, blocks)))
    step = (
        profile.step_seconds
        + seats * profile.sequence_seconds
        + seats * context * profile.context_seconds
    )
    return (
        request.prompt_tokens / profile.prefill_tokens_per_second
        + request.output_tokens * step / seats
    )


def peak_need(
    requests: Sequence[Request], profile: BatchProfile, window_seconds: float = 60.0
) -> float:
    """Replicas that the busiest window keeps busy, all of the time; 0 without requests."""
    work: dict[int, float] = {}
    for request in requests:
        window = int(request.at_s // window_seconds)
        work[window] = work.get(window, 0.0) + busy_seconds(request, profile)
    return max(work.values(), default=0.0) / window_seconds

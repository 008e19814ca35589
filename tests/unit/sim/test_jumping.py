"""Jumps against the step-by-step oracle: the simulator's contract."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.sim.engine_batch import BatchProfile
from stoker.sim.jumping import LATENCY_BUCKETS, Answer, JumpingEngine, percentile_ms
from stoker.sim.run_result import percentile
from stoker.sim.traffic import Request
from unit.sim.plain_engine import PlainEngine

ROOMY = BatchProfile(max_sequences=8, max_batched_tokens=256, kv_blocks=4_000)
TIGHT = BatchProfile(
    max_sequences=8, max_batched_tokens=96, kv_blocks=60, block_tokens=4, context_seconds=2e-5
)
CACHING = BatchProfile(
    max_sequences=6,
    max_batched_tokens=64,
    kv_blocks=120,
    block_tokens=4,
    context_seconds=1e-5,
    prefix_tokens=16,
)


def workload(seed: int, count: int, *, per_second: float, prompt: int, output: int, names: int):
    chance = random.Random(seed)
    at_s, requests = 0.0, []
    for _ in range(count):
        at_s += chance.expovariate(per_second)
        size = 1 + int(chance.expovariate(1 / prompt))
        first = chance.randrange(names) if names else 0
        prefix = tuple(first * 1_000 + block for block in range(size // 16)) if names else ()
        answer = 1 + int(chance.expovariate(1 / output))
        requests.append(Request(at_s, min(size, 4 * prompt), min(answer, 4 * output), prefix))
    return requests


def jumped(profile: BatchProfile, requests: list[Request]) -> list[Answer]:
    engine, answers = JumpingEngine(profile), []
    for request in requests:
        while engine.until <= request.at_s:
            engine.complete()
        answers.append(Answer(request))
        assert engine.add(request.at_s, answers[-1])
    while engine.until < math.inf:
        engine.complete()
    return answers


def ttfts(answers) -> list[float]:
    return sorted(a.first_s - a.request.at_s for a in answers)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("profile", "load"),
    [
        (ROOMY, {"per_second": 6.0, "prompt": 120, "output": 40, "names": 0}),
        (ROOMY, {"per_second": 30.0, "prompt": 120, "output": 40, "names": 0}),
        (TIGHT, {"per_second": 10.0, "prompt": 30, "output": 20, "names": 0}),
        (CACHING, {"per_second": 12.0, "prompt": 60, "output": 20, "names": 4}),
    ],
    ids=["calm", "queueing", "preempting", "prefixes"],
)
def test_times_to_the_first_token_are_those_of_an_oracle_that_steps(profile, load, seed):
    """Within 10 % at P50 and P95 is the contract; that clients wait as long is the aim."""
    requests = workload(seed, 150, **load)
    exact, found = ttfts(PlainEngine(profile).play(requests)), ttfts(jumped(profile, requests))

    for share in (0.50, 0.95):
        assert percentile(exact, share) == pytest.approx(percentile(found, share), rel=0.10)


def test_preemptions_happen_where_the_contract_is_tested_with_them():
    engine = PlainEngine(TIGHT)
    engine.play(workload(0, 150, per_second=10.0, prompt=30, output=20, names=0))

    assert engine.preemptions > 10


def test_prefixes_save_time_where_the_contract_is_tested_with_them():
    with_names = workload(1, 150, per_second=12.0, prompt=60, output=20, names=4)
    without = [Request(r.at_s, r.prompt_tokens, r.output_tokens) for r in with_names]

    assert sum(ttfts(jumped(CACHING, with_names))) < 0.8 * sum(ttfts(jumped(CACHING, without)))


@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.integers(1, 80), st.integers(1, 40), st.integers(0, 2)),
        min_size=1,
        max_size=25,
    )
)
def test_no_request_is_told_from_one_of_the_oracle(rows):
    """Every single first token and end, whatever comes when (but never two at one instant)."""
    rows.sort()
    requests = [
        Request(
            at / 100 + number * 0.000137,
            prompt,
            output,
            tuple(name * 9 + block for block in range(prompt // 16)),
        )
        for number, (at, prompt, output, name) in enumerate(rows)
    ]
    exact, found = PlainEngine(CACHING).play(requests), jumped(CACHING, requests)

    times = [time for answer in exact for time in (answer.first_s, answer.ended_s)]
    assert times == pytest.approx([time for a in found for time in (a.first_s, a.ended_s)])


@given(st.integers(0, 5_000), st.integers(1, 300))
def test_counters_grow_evenly_while_one_jump_is_under_way(at_ms, tokens):
    """A scrape in the middle of a jump sees the tokens that a step-by-step engine has given."""
    profile = BatchProfile(context_seconds=1e-6)
    engine, request = JumpingEngine(profile), Request(0.0, 10, tokens)
    engine.add(0.0, Answer(request))
    until = engine.until
    while engine.until <= at_ms / 1000:
        until = engine.until
        engine.complete()
    engine.settle(at_ms / 1000)
    seen = engine.counters.decode_tokens
    while engine.until < math.inf:
        until = engine.until
        engine.complete()

    assert tokens == engine.counters.decode_tokens
    # Steps grow by 1 us a token, so they are even but for a little.
    assert min(tokens, at_ms / 1000 / until * tokens) == pytest.approx(seen, abs=2.0)


def test_a_request_larger_than_the_engine_is_not_taken():
    engine = JumpingEngine(TIGHT)

    assert not engine.add(0.0, Answer(Request(0.0, 1_000, 1)))
    assert engine.idle


def test_a_percentile_of_a_histogram_is_inside_its_bucket():
    before, after = [0] * (len(LATENCY_BUCKETS) + 1), [0] * (len(LATENCY_BUCKETS) + 1)
    after[LATENCY_BUCKETS.index(0.5)] = 10

    assert (0.25 + 0.25 * 0.95) * 1000 == percentile_ms(before, after, 0.95)
    assert percentile_ms(after, after, 0.95) is None

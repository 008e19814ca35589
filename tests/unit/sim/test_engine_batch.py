"""Step-wise batching: counts of tokens, blocks and steps, without time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.sim.engine_batch import Batch, BatchProfile

SMALL = BatchProfile(max_sequences=2, max_batched_tokens=32, kv_blocks=8, block_tokens=16)


def test_the_first_token_comes_with_the_last_chunk_of_the_prompt():
    batch = Batch(SMALL)
    sequence = batch.add(prompt_tokens=40, max_tokens=2)

    first, second, third = batch.step(), batch.step(), batch.step()

    assert ((), (sequence,), (sequence,)) == (first.emitted, second.emitted, third.emitted)
    assert (32, 8, 0) == (first.prefill_tokens, second.prefill_tokens, third.prefill_tokens)
    assert (sequence,) == third.finished
    assert sequence.finish_reason == "length"
    assert not batch.busy


def test_no_more_sequences_run_than_the_limit():
    batch = Batch(SMALL)
    for _ in range(3):
        batch.add(1, 10)
    batch.step()

    assert (2, 1) == (len(batch.running), len(batch.waiting))


def test_a_request_waits_for_blocks():
    batch = Batch(SMALL)
    batch.add(100, 10)  # 7 of 8 blocks
    batch.add(30, 1)  # 2 blocks
    batch.step()

    assert (1, 1) == (len(batch.running), len(batch.waiting))


def test_the_youngest_is_preempted_when_blocks_run_out_and_starts_over():
    batch = Batch(BatchProfile(max_sequences=4, kv_blocks=4, block_tokens=4))
    old = batch.add(6, 8)
    young = batch.add(6, 8)
    preemptions = 0
    while batch.busy:
        preemptions += batch.step().preemptions

    assert preemptions > 0
    assert old.preempted == 0
    assert young.preempted > 0
    assert (8, 8) == (old.generated, young.generated)


def test_a_step_takes_longer_with_more_sequences_and_more_prompt():
    def first_step(sequences: int, prompt: int) -> float:
        batch = Batch(BatchProfile())
        for _ in range(sequences):
            batch.add(prompt, 8)
        return batch.step().seconds

    assert first_step(1, 1) < first_step(1, 1000) < first_step(2, 1000)


def test_an_aborted_request_frees_its_place():
    batch = Batch(SMALL)
    running, waiting = batch.add(1, 9), batch.add(1, 9)
    batch.add(1, 9)
    batch.step()
    batch.abort(running)
    batch.abort(waiting)
    batch.abort(waiting)
    batch.step()

    assert [2] == [s.number for s in batch.running]
    assert running.finish_reason == waiting.finish_reason == "abort"


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30)), min_size=1, max_size=12))
def test_every_request_that_fits_gets_exactly_its_tokens(requests):
    """Whatever is preempted on the way, nothing is lost, doubled or starved."""
    batch = Batch(SMALL)
    sequences = [batch.add(*r) for r in requests if batch.fits_at_all(*r)]
    emitted = 0
    for _ in range(20_000):
        if not batch.busy:
            break
        emitted += len(batch.step().emitted)
        assert len(batch.running) <= SMALL.max_sequences

    assert not batch.busy
    assert emitted == sum(s.max_tokens for s in sequences)
    assert [s.max_tokens for s in sequences] == [s.generated for s in sequences]

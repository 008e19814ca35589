"""The engine stand-in says all that signals read of an engine, and says it truly."""

from __future__ import annotations

from dataclasses import fields

import httpx
import pytest

from stoker.model.readings import EngineReading, Sample
from stoker.signals.engine_reading import engine_reading
from stoker.signals.offered import offered
from stoker.signals.reader import SignalReader
from stoker.sim.clock import VirtualClock
from stoker.sim.engine import Engine, EngineProfile
from stoker.sim.engine_metrics import EngineMetrics
from unit.signals.signal_builders import VALID_MS, a_look, a_pod, a_scaling, an_ask, scrape


def test_every_reading_of_an_engine_is_on_its_page():
    """A reading that the stand-in lacks would be tested nowhere."""
    engine = EngineMetrics("qwen", block_tokens=16, kv_blocks=100)
    engine.waiting.set(2)
    before = engine.page().decode()
    engine.running.set(3)
    engine.waiting.set(4)
    engine.kv_share.set(0.25)
    engine.prompt_tokens.inc(3_000)
    engine.cache_queries.inc(3_000)
    engine.cache_hits.inc(1_000)
    engine.generation_tokens.inc(500)
    for _ in range(10):
        engine.finished("stop")
        engine.first_token.observe(0.3)
        engine.inter_token.observe(0.03)
        engine.prompt_sizes.observe(300)
        engine.answer_sizes.observe(50)
    look = a_look(before, engine.page().decode())
    found = engine_reading(look)
    load = offered(None, [look], 0, VALID_MS)

    assert found is not None
    assert [] == [f.name for f in fields(EngineReading) if getattr(found, f.name) is None]
    assert (3.0, 4.0, 0.25, True, 200.0, 50.0, 1.0) == (
        found.running,
        found.waiting,
        found.kv_usage,
        found.queued,
        found.prefill_tokens_per_second,
        found.decode_tokens_per_second,
        found.finished_per_second,
    )
    assert found.ttft_p95_ms == pytest.approx(487.5)
    assert found.itl_p95_ms == pytest.approx(48.5)
    assert isinstance(load.arrivals, Sample)
    assert (1.5, 50.0) == (load.arrivals.value, load.output_tokens)
    assert load.prefill_tokens == pytest.approx(200.0)


def test_a_running_stand_in_is_read_over_http():
    clock = VirtualClock()
    reader = SignalReader(clock, lambda _source: {})
    metric = scrape("vllm:generation_tokens_total", "sum")
    with Engine(EngineProfile(models=("qwen",), speed=1_000)) as engine:
        ask = an_ask(a_scaling({"tokens": metric}), a_pod(address=engine.address))
        reader.read((ask,), 5.0)
        body = {"model": "qwen", "prompt": "ping pong", "max_tokens": 20}
        url = f"http://{engine.address}/v1/completions"
        answer = httpx.post(url, json=body, timeout=10, trust_env=False)
        clock.advance(10_000)
        (found,) = reader.read((ask,), 5.0)
    reader.close()

    assert answer.status_code == 200
    assert isinstance(found.metrics[0][1], Sample)
    assert (2.0, 0.1) == (found.metrics[0][1].value, found.engines[0].finished_per_second)

"""The engine's metrics page, with vLLM's names, labels and text format 0.0.4.

In: what happened. Out: the page. One registry an engine, as several run in one program.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["CONTENT_TYPE", "EngineMetrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
_LABELS = ("model_name", "engine")
_SLEEP_STATES = ("awake", "weights_offloaded", "discard_all")


class EngineMetrics:
    """All series of one engine; every one exists from the start, at zero."""

    def __init__(self, model: str, *, block_tokens: int, kv_blocks: int) -> None:
        self._registry = CollectorRegistry()
        self._model = model
        self.running = self._gauge("num_requests_running", "Requests in execution batches.")
        self.waiting = self._gauge("num_requests_waiting", "Requests waiting to be processed.")
        self.kv_share = self._gauge("kv_cache_usage_perc", "KV-cache usage; 1 means 100 percent.")
        self.preemptions = self._counter("num_preemptions", "Preemptions by the engine.")
        self.prompt_tokens = self._counter("prompt_tokens", "Prefill tokens processed.")
        self.generation_tokens = self._counter("generation_tokens", "Generation tokens processed.")
        self.cache_queries = self._counter("prefix_cache_queries", "Prefix cache queries, tokens.")
        self.cache_hits = self._counter("prefix_cache_hits", "Prefix cache hits, tokens.")
        self.first_token = self._seconds("time_to_first_token_seconds", "Time to first token.")
        self.inter_token = self._seconds("inter_token_latency_seconds", "Time between tokens.")
        self.end_to_end = self._seconds("e2e_request_latency_seconds", "Time of whole requests.")
        self.queued = self._seconds("request_queue_time_seconds", "Time in the queue.")
        self.prompt_sizes = self._sizes("request_prompt_tokens", "Prefill tokens a request.")
        self.answer_sizes = self._sizes("request_generation_tokens", "Generated tokens a request.")
        self._success = Counter(
            "vllm:request_success",
            "Requests that finished, by reason.",
            (*_LABELS, "finished_reason"),
            registry=self._registry,
        )
        self._sleep = Gauge(
            "vllm:engine_sleep_state",
            "Which sleep state holds (1) and which don't (0).",
            (*_LABELS, "sleep_state"),
            registry=self._registry,
        )
        info = Gauge(
            "vllm:cache_config_info",
            "Information of the cache configuration.",
            ("engine", "block_size", "num_gpu_blocks"),
            registry=self._registry,
        )
        info.labels("0", str(block_tokens), str(kv_blocks)).set(1)
        for reason in ("stop", "length", "abort", "error"):
            self._success.labels(model, "0", reason)
        self.sleep_state("awake")

    def finished(self, reason: str) -> None:
        """Count one request that left with that reason."""
        self._success.labels(self._model, "0", reason).inc()

    def sleep_state(self, state: str) -> None:
        """Say which of awake, weights_offloaded and discard_all holds."""
        for name in _SLEEP_STATES:
            self._sleep.labels(self._model, "0", name).set(int(name == state))

    def page(self) -> bytes:
        """The text of /metrics."""
        return generate_latest(self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        made = Gauge(f"vllm:{name}", text, _LABELS, registry=self._registry)
        return made.labels(self._model, "0")

    def _counter(self, name: str, text: str) -> Counter:
        made = Counter(f"vllm:{name}", text, _LABELS, registry=self._registry)
        return made.labels(self._model, "0")

    def _seconds(self, name: str, text: str) -> Histogram:
        made = Histogram(f"vllm:{name}", text, _LABELS, registry=self._registry, buckets=_SECONDS)
        return made.labels(self._model, "0")

    def _sizes(self, name: str, text: str) -> Histogram:
        made = Histogram(f"vllm:{name}", text, _LABELS, registry=self._registry, buckets=_TOKENS)
        return made.labels(self._model, "0")

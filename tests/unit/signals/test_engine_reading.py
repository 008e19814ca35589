"""What two looks at a pod say of its engines."""

from __future__ import annotations

import pytest

from builders import NOW_MS
from stoker.fetch import NoAnswer
from stoker.model.readings import EngineReading
from stoker.signals.engine_reading import engine_reading
from stoker.signals.scrape import Scraper
from stoker.sim.clock import VirtualClock
from unit.signals.signal_builders import LABELS, a_look, a_page, a_pod, scraped

BEFORE = a_page(running=2, waiting=1, prompts=1_000, cached=100, generated=500, finished=10)
AFTER = a_page(running=3, waiting=4, kv=0.5, prompts=3_000, cached=600, generated=900, finished=14)


def histogram(name, *counts):
    bounds = ("0.1", "1.0", "+Inf")
    return "\n".join(
        f'vllm:{name}_bucket{{{LABELS},le="{bound}"}} {count}'
        for bound, count in zip(bounds, counts, strict=True)
    )


def test_rates_are_over_the_time_between_two_looks():
    assert engine_reading(a_look(BEFORE, AFTER)) == EngineReading(
        pod="qwen-0",
        pod_uid="uid-qwen-0",
        at_ms=NOW_MS + 10_000,
        window_ms=10_000,
        running=3.0,
        waiting=4.0,
        kv_usage=0.5,
        queued=True,
        prefill_tokens_per_second=150.0,
        decode_tokens_per_second=40.0,
        finished_per_second=0.4,
    )


def test_the_first_look_gives_no_rate():
    found = engine_reading(a_look(None, AFTER))

    assert found is not None
    assert (3.0, None, 0, False) == (
        found.running,
        found.decode_tokens_per_second,
        found.window_ms,
        found.queued,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(a_page(generated=900), a_page(generated=5, prompts=9_000), id="one is enough"),
        pytest.param(
            a_page(more="process_start_time_seconds 1000"),
            a_page(generated=5, more="process_start_time_seconds 2000"),
            id="another start, with counters that overtook",
        ),
    ],
)
def test_an_engine_that_began_anew_gives_no_rate(before, after):
    """Its other counters may have overtaken what they were."""
    found = engine_reading(a_look(before, after))

    assert found is not None
    assert (None, None, None, 0) == (
        found.prefill_tokens_per_second,
        found.decode_tokens_per_second,
        found.finished_per_second,
        found.window_ms,
    )


@pytest.mark.parametrize(("before", "after"), [(0, 5), (5, 0), (0, 0)])
def test_requests_must_wait_at_both_ends(before, after):
    """Between, the engine may have had nothing to do: what it did is no measure of what it can."""
    found = engine_reading(a_look(a_page(waiting=before), a_page(waiting=after)))

    assert found is not None
    assert not found.queued


def test_what_a_cache_held_is_no_prefill_and_never_makes_it_negative():
    """Hits are counted at admission, prompts at the end of prefill."""
    found = engine_reading(a_look(a_page(), a_page(prompts=100, cached=300)))

    assert found is not None
    assert found.prefill_tokens_per_second == 0.0


def test_tokens_cached_anywhere_count_before_hits_of_the_prefix_cache():
    cached = "vllm:prompt_tokens_cached_total{" + LABELS + "} "
    look = a_look(a_page(more=f"{cached}0"), a_page(prompts=1_000, cached=100, more=f"{cached}800"))
    found = engine_reading(look)

    assert found is not None
    assert found.prefill_tokens_per_second == 20.0


def test_without_any_word_of_a_cache_prefill_is_not_known():
    found = engine_reading(a_look(a_page(cached=None), a_page(cached=None, prompts=100)))

    assert found is not None
    assert found.prefill_tokens_per_second is None


@pytest.mark.parametrize("name", ["inter_token_latency_seconds", "time_per_output_token_seconds"])
def test_latencies_are_the_95th_percentile_of_the_window_by_old_and_new_names(name):
    ttft = "time_to_first_token_seconds"
    before = a_page(more=histogram(ttft, 50, 50, 50) + "\n" + histogram(name, 0, 0, 0))
    after = a_page(more=histogram(ttft, 50, 150, 150) + "\n" + histogram(name, 100, 100, 100))
    found = engine_reading(a_look(before, after))

    assert found is not None
    assert found.ttft_p95_ms == pytest.approx(955.0)
    assert found.itl_p95_ms == pytest.approx(95.0)


def test_engines_of_a_pod_are_summed_and_their_shares_averaged():
    two = a_page(running=2, kv=0.5) + a_page(running=3, kv=1.0).replace('"0"', '"1"')
    found = engine_reading(a_look(None, two))

    assert found is not None
    assert (5.0, 0.75) == (found.running, found.kv_usage)


def test_another_pod_of_the_same_name_and_address_starts_anew():
    scraper = Scraper(VirtualClock())
    scraper.look(a_pod(uid="old"), scraped(BEFORE, at_seconds=0), 60)
    found = engine_reading(scraper.look(a_pod(uid="new"), scraped(AFTER), 60))

    assert found is not None
    assert ("new", None) == (found.pod_uid, found.decode_tokens_per_second)


def test_a_pod_that_gave_nothing_has_no_reading_and_its_next_window_spans_both():
    scraper = Scraper(VirtualClock())
    scraper.look(a_pod(), scraped(BEFORE, at_seconds=0), 60)
    missed = scraper.look(a_pod(), NoAnswer("no answer in time"), 60)
    later = scraper.look(a_pod(), scraped(AFTER, at_seconds=20), 60)
    found = engine_reading(later)

    assert engine_reading(missed) is None
    assert found is not None
    assert (20_000, 20.0) == (found.window_ms, found.decode_tokens_per_second)


@pytest.mark.parametrize("seconds", [61.0, 0.0, -5.0])
def test_pages_too_far_apart_or_of_one_instant_are_not_compared(seconds):
    scraper = Scraper(VirtualClock())
    scraper.look(a_pod(), scraped(BEFORE, at_seconds=0), 60)
    found = scraper.look(a_pod(), scraped(AFTER, at_seconds=seconds), 60)

    assert found.before is None


def test_pods_that_are_asked_for_no_more_are_forgotten():
    scraper = Scraper(VirtualClock())
    scraper.look(a_pod(), scraped(BEFORE, at_seconds=0), 60)
    scraper.keep(set())

    assert scraper.look(a_pod(), scraped(AFTER), 60).before is None


def test_a_page_of_which_the_names_were_turned_reads_the_same():
    straight = engine_reading(a_look(BEFORE, AFTER))
    turned = engine_reading(
        a_look(BEFORE.replace("vllm:", "vllm_"), AFTER.replace("vllm:", "vllm_"))
    )

    assert straight == turned

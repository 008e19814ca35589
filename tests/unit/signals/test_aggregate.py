"""One value of a service from the pages of its pods."""

from __future__ import annotations

import pytest

from builders import NOW_MS
from stoker.model.readings import Sample, Unmeasurable
from stoker.signals.aggregate import aggregated
from stoker.signals.scrape import Look
from unit.signals.signal_builders import LABELS, VALID_MS, a_look, a_page, a_pod, scrape

WAITING = "vllm:num_requests_waiting"
TOKENS = "vllm:generation_tokens_total"


def value_of(query, *looks):
    return aggregated(query, looks, NOW_MS, VALID_MS)


def waiting(number, name="qwen-0", *, ready=True):
    return a_look(None, a_page(waiting=number), WAITING, pod=a_pod(name, ready=ready))


def missed(name="qwen-1", *, ready=True):
    return Look(a_pod(name, ready=ready), why="no answer in time")


@pytest.mark.parametrize(
    ("aggregate", "expected"), [("avg", 4.0), ("sum", 8.0), ("max", 6.0), ("min", 2.0)]
)
def test_the_pods_values_become_one(aggregate, expected):
    found = value_of(scrape(WAITING, aggregate), waiting(2), waiting(6, "qwen-1"))

    assert found == Sample(expected, NOW_MS + 10_000, VALID_MS)


@pytest.mark.parametrize("aggregate", ["avg", "sum", "max", "min"])
def test_one_ready_pod_that_gave_nothing_makes_it_unmeasurable(aggregate):
    """cases.md row 115: a scrape that misses one replica must never lower a count."""
    found = value_of(scrape(WAITING, aggregate), waiting(2), missed())

    assert found == Unmeasurable("unreachable", "pod qwen-1: no answer in time", NOW_MS)


def test_a_pod_that_is_not_ready_is_left_out():
    """It has no work yet, and may not answer yet."""
    found = value_of(
        scrape(WAITING), waiting(4), waiting(0, "qwen-2", ready=False), missed(ready=False)
    )

    assert found == Sample(4.0, NOW_MS + 10_000, VALID_MS)


@pytest.mark.parametrize("looks", [(), (waiting(3, ready=False),)])
def test_without_a_ready_pod_nothing_is_known(looks):
    """cases.md row 105: no division by the number of pods that answer."""
    found = value_of(scrape(WAITING), *looks)

    assert found == Unmeasurable("missing", "no pod is Ready", NOW_MS)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NaN", "not-a-number"),
        ("+Inf", "not-a-number"),
        ("what", "not-a-number"),
        ("-1", "negative"),
    ],
)
def test_a_value_that_is_not_sane_is_unmeasurable(text, code):
    page = a_page().replace(f"{WAITING}{{{LABELS}}} 0", f"{WAITING}{{{LABELS}}} {text}")
    found = value_of(scrape(WAITING), a_look(None, page, WAITING))

    assert isinstance(found, Unmeasurable)
    assert found.code == code


def test_a_metric_that_no_page_has_is_missing():
    found = value_of(scrape("vllm:nothing"), a_look(None, a_page(), "vllm:nothing"))

    assert found == Unmeasurable("missing", "pod qwen-0: its page has no vllm:nothing", NOW_MS)


@pytest.mark.parametrize("name", [TOKENS, "vllm:generation_tokens", "vllm_generation_tokens"])
def test_a_counter_is_what_it_grows_by_a_second(name):
    found = value_of(scrape(name), a_look(a_page(generated=100), a_page(generated=400), name))

    assert found == Sample(30.0, NOW_MS + 10_000, VALID_MS)


@pytest.mark.parametrize(
    ("look", "why"),
    [
        pytest.param(a_look(None, a_page(), TOKENS), "was seen once so far", id="first look"),
        pytest.param(
            a_look(a_page(generated=9), a_page(generated=1), TOKENS), "seen once", id="anew"
        ),
    ],
)
def test_a_counter_without_two_looks_is_missing(look, why):
    found = value_of(scrape(TOKENS), look)

    assert isinstance(found, Unmeasurable)
    assert found.code == "missing"
    assert why in found.why


def test_a_counter_of_another_exporter_that_went_back_is_missing():
    """Only the engine's own counters tell that it began anew."""
    name = "side_total"
    look = a_look(a_page(more=f"{name} 5"), a_page(more=f"{name} 3"), name)
    found = value_of(scrape(name), look)

    assert found == Unmeasurable(
        "missing", "pod qwen-0: side_total went back, or is of other engines", NOW_MS
    )


def test_a_histogram_is_its_95th_percentile_since_the_last_look():
    name = "vllm:request_queue_time_seconds"

    def page(low, all_of_them):
        return a_page(
            more=f'{name}_bucket{{le="1.0"}} {low}\n{name}_bucket{{le="+Inf"}} {all_of_them}'
        )

    found = value_of(scrape(name), a_look(page(5, 5), page(105, 105), name))
    idle = value_of(scrape(name), a_look(page(5, 5), page(5, 5), name))
    first = value_of(scrape(name), a_look(None, page(5, 5), name))

    assert isinstance(found, Sample)
    assert found.value == pytest.approx(0.95)
    assert isinstance(idle, Unmeasurable)
    assert "nothing was observed" in idle.why
    assert isinstance(first, Unmeasurable)


def test_values_without_a_finite_sum_are_unmeasurable():
    looks = [waiting(1.7e308), waiting(1.7e308, "qwen-1")]

    assert isinstance(value_of(scrape(WAITING, "sum"), *looks), Unmeasurable)
    assert isinstance(value_of(scrape(WAITING, "max"), *looks), Sample)


def test_shares_of_the_engines_in_a_pod_are_averaged():
    """Note 41: two engines that are half full are a pod that is half full."""
    name = "vllm:kv_cache_usage_perc"
    page = a_page(kv=0.4) + a_page(kv=0.6).replace('"0"', '"1"')

    assert value_of(scrape(name), a_look(None, page, name)) == Sample(
        0.5, NOW_MS + 10_000, VALID_MS
    )

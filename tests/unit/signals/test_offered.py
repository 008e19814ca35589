"""What is offered: a configured query first, else an estimate from the engines."""

from __future__ import annotations

import pytest

from builders import NOW_MS
from stoker.model.readings import LoadReading, Sample, Unmeasurable
from stoker.signals.offered import offered
from stoker.signals.scrape import Look
from unit.signals.signal_builders import LABELS, VALID_MS, a_look, a_page, a_pod

EMPTY = a_page()


def load_of(*looks, asked=None):
    return offered(asked, looks, NOW_MS, VALID_MS)


def sizes(prompt_sum, prompt_count, answer_sum, answer_count):
    return "\n".join(
        f"vllm:request_{name}{{{LABELS}}} {value}"
        for name, value in {
            "prompt_tokens_sum": prompt_sum,
            "prompt_tokens_count": prompt_count,
            "generation_tokens_sum": answer_sum,
            "generation_tokens_count": answer_count,
        }.items()
    )


def answered(status, number, handler="/v1/completions"):
    return f'http_requests_total{{handler="{handler}",method="POST",status="{status}"}} {number}'


def test_what_finished_and_what_the_backlog_grew_by_came():
    look = a_look(
        a_page(finished=10, running=2, waiting=1), a_page(finished=30, running=4, waiting=9)
    )

    assert load_of(look) == LoadReading(
        Sample(3.0, NOW_MS + 10_000, VALID_MS, "requests/s"), estimated=True
    )


def test_a_backlog_that_shrank_is_no_negative_arrival():
    """A page is not written in one instant."""
    look = a_look(a_page(running=9), a_page(finished=5, running=0))

    assert load_of(look).arrivals == Sample(0.0, NOW_MS + 10_000, VALID_MS, "requests/s")


def test_the_pods_arrivals_are_summed():
    looks = [a_look(EMPTY, a_page(finished=20), pod=a_pod(name)) for name in ("qwen-0", "qwen-1")]

    assert load_of(*looks).arrivals == Sample(4.0, NOW_MS + 10_000, VALID_MS, "requests/s")


@pytest.mark.parametrize(
    ("status", "handler", "expected"),
    [
        ("503", "/v1/completions", 2.0),
        ("5xx", "/v1/chat/completions", 2.0),
        ("429", "/v1/completions", 2.0),
        ("4xx", "/v1/completions", 0.0),
        ("200", "/v1/completions", 0.0),
        ("503", "/health", 0.0),
    ],
)
def test_rejected_requests_are_offered_too(status, handler, expected):
    """Issue D: whoever counts only what was taken takes a full fleet for a fitting one."""
    look = a_look(EMPTY, a_page(more=answered(status, 20, handler)))

    assert load_of(look).arrivals == Sample(expected, NOW_MS + 10_000, VALID_MS, "requests/s")


def test_only_new_rejections_count():
    look = a_look(a_page(more=answered("503", 15)), a_page(more=answered("503", 20)))

    assert load_of(look).arrivals == Sample(0.5, NOW_MS + 10_000, VALID_MS, "requests/s")


@pytest.mark.parametrize(
    ("look", "code"),
    [
        pytest.param(Look(a_pod("qwen-1"), why="HTTP 500"), "unreachable", id="not scraped"),
        pytest.param(a_look(None, EMPTY, pod=a_pod("qwen-1")), "missing", id="first look"),
        pytest.param(a_look("", EMPTY, pod=a_pod("qwen-1")), "missing", id="nothing before"),
    ],
)
def test_a_pod_of_which_nothing_is_known_makes_arrivals_unmeasurable(look, code):
    found = load_of(a_look(EMPTY, a_page(finished=20)), look).arrivals

    assert isinstance(found, Unmeasurable)
    assert found.code == code


def test_without_a_ready_pod_arrivals_are_not_known():
    assert load_of().arrivals == Unmeasurable("missing", "no pod is Ready", NOW_MS)


@pytest.mark.parametrize(
    "asked", [Sample(7.0, NOW_MS, VALID_MS), Unmeasurable("unreachable", "down", NOW_MS)]
)
def test_a_configured_query_is_never_replaced_by_an_estimate(asked):
    """Both differ by what is rejected: a count would fall with the gateway's Prometheus."""
    found = load_of(a_look(EMPTY, a_page(finished=20)), asked=asked)

    assert (asked, False) == (found.arrivals, found.estimated)


def test_tokens_of_a_request_are_means_of_what_finished_less_what_a_cache_held():
    look = a_look(
        a_page(more=sizes(0, 0, 0, 0)),
        a_page(prompts=4_000, cached=1_000, more=sizes(2_000, 2, 100, 2)),
    )
    found = load_of(look)

    assert (750.0, 50.0) == (found.prefill_tokens, found.output_tokens)


def test_tokens_are_not_known_while_nothing_finishes():
    found = load_of(a_look(a_page(more=sizes(9, 1, 9, 1)), a_page(more=sizes(9, 1, 9, 1))))

    assert (None, None) == (found.prefill_tokens, found.output_tokens)


def test_arrivals_without_a_finite_sum_are_unmeasurable():
    look = a_look(EMPTY, a_page(running=1.7e308, waiting=1.7e308))

    assert isinstance(load_of(look).arrivals, Unmeasurable)

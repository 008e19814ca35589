"""The restated rules of others, by numbers worked out by hand from semantics.md."""

from __future__ import annotations

import pytest

from stoker.model.readings import EngineReading, LoadReading, Sample, ServiceReadings
from stoker.sim.baseline_kpa import AibrixKpa
from stoker.sim.baseline_metric import Fixed, HpaAverageValue, HpaValue, Keda, LlmScaler
from stoker.sim.baseline_past import NO_PAST, Signal
from stoker.sim.baseline_wva import WvaSaturation, WvaTokens
from stoker.sim.clairvoyant import clairvoyant
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.fleet_readings import GATEWAY, REF
from stoker.sim.instrument import Instrument
from stoker.sim.policy import EngineSize, Seen
from stoker.sim.traffic import Request, busy_seconds

T0 = 1_795_910_400_000
SIZE = EngineSize(kv_tokens=10_000, max_sequences=64, max_batched_tokens=2_048)


def a_round(
    *engines: tuple[float, float],
    at_ms: int = T0,
    outside: float = 0.0,
    arrivals: float = 1.0,
    tokens: tuple[float, float] | None = (100.0, 50.0),
    running: float = 10.0,
) -> ServiceReadings:
    """Readings of engines, each (waiting, KV use)."""
    prompt, output = tokens or (None, None)
    return ServiceReadings(
        REF,
        engines=tuple(
            EngineReading(f"r-{n}", f"r-{n}", at_ms, running=running, waiting=waiting, kv_usage=kv)
            for n, (waiting, kv) in enumerate(engines)
        ),
        load=LoadReading(Sample(arrivals, at_ms, 45_000), False, prompt, output),
        wake=((GATEWAY, Sample(outside, at_ms, 45_000)),),
    )


def seen(
    *rounds: ServiceReadings,
    wanted: int,
    ready: int | None = None,
    warming: int = 0,
    now_ms: int = T0,
    least: int = 1,
) -> Seen:
    serving = wanted - warming if ready is None else ready
    return Seen(now_ms, wanted, serving, warming, 0, least, 100, 60_000, rounds, SIZE)


def said(policy, *looks: Seen) -> list[int]:
    """The counts of looks that follow each other."""
    past, counts = policy.begin(), []
    for look in looks:
        count, past = policy.decide(look, past)
        counts.append(count)
    return counts


def look(milliseconds: int, *engines, wanted: int, warming: int = 0, least: int = 1, **of) -> Seen:
    at_ms = T0 + milliseconds
    readings = a_round(*engines, at_ms=at_ms, **of)
    ready = len(engines)
    return seen(readings, wanted=wanted, ready=ready, warming=warming, now_ms=at_ms, least=least)


def test_fixed_stays():
    assert [7] == said(Fixed(7), look(0, (99, 1.0), wanted=1))


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [(5.0, 2), (5.4, 2), (5.6, 3), (20.0, 6), (4.6, 2), (2.0, 1)],
    ids=["on target", "within 10 %", "beyond", "4 pods at most", "within below", "down"],
)
def test_hpa_value_takes_the_ratio_times_ready_outside_its_tolerance(waiting, expected):
    """2 Ready; ratio = mean / 5. 20 / 5 x 2 is 8, but at most max(2 x 2, 2 + 4) = 6."""
    engines = [(waiting, 0.5)] * 2
    policy = HpaValue(5.0)
    # A window that holds nothing yet but this look.
    assert [expected] == said(policy, look(0, *engines, wanted=2))


def test_hpa_value_is_stuck_with_nothing_ready():
    """Kubernetes 130130: nothing times a ratio is nothing."""
    assert [3] == said(HpaValue(5.0), look(0, wanted=3, warming=3, outside=50.0))


def test_hpa_average_value_divides_the_total_whatever_is_ready():
    """17 in two engines and 8 at the gateway: ceil(25 / 5)."""
    assert [5] == said(
        HpaAverageValue(5.0), look(0, (9, 0.1), (8, 0.1), wanted=3, warming=1, outside=8.0)
    )


def test_hpa_falls_to_the_highest_of_five_minutes():
    policy = HpaAverageValue(5.0)
    counts = said(
        policy,
        look(0, (20, 0.1), wanted=4),
        look(15_000, (12, 0.1), wanted=4),
        look(299_000, (1, 0.1), wanted=4),
        look(301_000, (1, 0.1), wanted=4),
        look(316_000, (1, 0.1), wanted=3),
    )

    assert [4, 4, 4, 3, 1] == counts


def test_hpa_holds_what_it_cannot_measure():
    blind = seen(ServiceReadings(REF), wanted=4)

    assert [4] == said(HpaAverageValue(5.0), blind)
    assert [4] == said(HpaValue(5.0), blind)
    assert [4] == said(LlmScaler(5.0), blind)
    assert [4] == said(Keda(5.0), blind)
    assert [4] == said(AibrixKpa(5.0), blind)
    assert [4] == said(WvaSaturation(), blind)
    assert [4] == said(WvaTokens(), blind)


def test_keda_goes_to_zero_after_its_cooldown_and_comes_back_at_a_poll():
    poll = 30_000 - T0 % 30_000
    policy = Keda(5.0)
    counts = said(
        policy,
        look(poll, (3, 0.1), wanted=1, least=0),
        look(poll + 285_000, (0, 0.0), wanted=1, least=0),
        look(poll + 300_000, (0, 0.0), wanted=1, least=0),
        look(poll + 315_000, wanted=0, least=0, outside=1.0),
        look(poll + 330_000, wanted=0, least=0, outside=1.0),
    )

    assert [1, 1, 0, 0, 1] == counts


def test_keda_between_one_and_the_maximum_is_hpa():
    looks = [look(0, (9, 0.1), (8, 0.1), wanted=3, warming=1, outside=8.0)]

    assert said(HpaAverageValue(5.0), *looks) == said(Keda(5.0), *looks)


def test_llmscaler_has_no_tolerance_and_steps_down_one_at_a_time():
    """Mean 5.25 of 2 Ready: ceil(2 x 5.25 / 5) = 3; then 0 for longer than the window."""
    policy = LlmScaler(5.0)
    counts = said(
        policy,
        look(0, (5.25, 0.1), (5.25, 0.1), wanted=2),
        look(15_000, *[(0.0, 0.1)] * 3, wanted=3),
        look(301_000, *[(0.0, 0.1)] * 3, wanted=3),
        look(316_000, *[(0.0, 0.1)] * 2, wanted=2),
    )

    assert [3, 3, 2, 1] == counts


@pytest.mark.parametrize(
    ("engines", "wanted", "warming", "expected"),
    [
        ([(0, 0.75), (0, 0.72)], 2, 0, 3),
        ([(2.5, 0.1), (2.5, 0.1)], 2, 0, 3),
        ([(9, 0.2), (0, 0.9)], 2, 0, 3),
        ([(0, 0.75)], 2, 1, 2),
        ([(0, 0.40), (0, 0.40), (0, 0.40)], 3, 0, 2),
        ([(0, 0.50), (0, 0.50), (0, 0.50)], 3, 0, 3),
        ([(1.5, 0.1), (1.5, 0.1), (1.5, 0.1)], 3, 0, 3),
        ([(0, 0.0)], 1, 0, 1),
    ],
    ids=[
        "spare KV below 0.10",
        "spare queue below 3",
        "all saturated",
        "one is on its way",
        "safe: 0.40 x 3/2 leaves 0.20",
        "unsafe: 0.50 x 3/2 leaves 0.05",
        "unsafe: 1.5 x 3/2 leaves 2.75",
        "never below 1",
    ],
)
def test_wva_saturation_moves_by_one(engines, wanted, warming, expected):
    assert [expected] == said(WvaSaturation(), look(0, *engines, wanted=wanted, warming=warming))


def test_wva_saturation_takes_the_highest_of_a_minute():
    calm, busy = (
        a_round((0, kv), (0, kv), at_ms=T0 + at) for kv, at in ((0.1, 0), (0.78, -30_000))
    )

    assert [3] == said(WvaSaturation(), seen(busy, calm, wanted=2))
    assert [1] == said(WvaSaturation(), seen(calm, wanted=2))


def test_wva_tokens_compares_demand_with_what_is_anticipated():
    """I=100, O=50: N = min(2048 x 50/150, 64) = 64, k2 = 64 x 125 = 8,000 = k1.

    Demand 2 x (0.9 x 10,000 + 20 x 100) = 22,000, but engines with 5 waiting are saturated: what
    they hold, 9,000, is bounded by k1. required = 22,000/0.85 - 2 x 8,000 = 9,882: 2 more.
    """
    looks = [look(0, (20, 0.9), (20, 0.9), wanted=2)]

    assert [4] == said(WvaTokens(), *looks)


def test_wva_tokens_counts_what_is_pending():
    assert [4] == said(WvaTokens(), look(0, (20, 0.9), (20, 0.9), wanted=4, warming=2))


def test_wva_tokens_lets_go_of_what_is_spare():
    """Demand 4 x 1,000; supply 32,000; spare 32,000 - 4,000/0.70 = 26,285: 3 of 4, never all."""
    assert [1] == said(WvaTokens(), look(0, *[(0, 0.1)] * 4, wanted=4))


def test_wva_tokens_without_sizes_of_requests_falls_back_to_the_kv_cache():
    """k1 = 8,000: demand 9,000 / 0.85 - 8,000 = 2,588: one more."""
    assert [2] == said(WvaTokens(), look(0, (0, 0.9), wanted=1, tokens=None))


def test_kpa_takes_the_mean_of_its_stable_window_and_at_most_doubles():
    """In flight 10 + waiting 35 each: 90 / 20 = 4.5, so 5, but at most 2 x 2."""
    assert [4] == said(AibrixKpa(20.0), look(0, (35, 0.1), (35, 0.1), wanted=2))


def test_kpa_holds_within_ten_percent_and_while_replicas_are_pending():
    assert [2] == said(AibrixKpa(20.0), look(0, (11, 0.1), (11, 0.1), wanted=2))
    assert [4] == said(AibrixKpa(20.0), look(0, (90, 0.1), (90, 0.1), wanted=4, warming=2))


def test_kpa_panics_when_the_last_minute_is_twice_the_three_and_never_shrinks_then():
    old = [a_round((0, 0.1), at_ms=T0 - at, running=1.0) for at in (170_000, 120_000, 90_000)]
    now = a_round((29, 0.1), at_ms=T0, running=1.0)

    # Panic: 30 / 20 is 2. Calm it would be (1 + 1 + 1 + 30) / 4 / 20, which is 1.
    assert [2] == said(AibrixKpa(20.0), seen(*old, now, wanted=1))
    assert [5] == said(AibrixKpa(20.0), seen(*old, now, wanted=5, ready=1, warming=4))


def test_the_clairvoyant_buys_a_start_before_the_load_comes():
    profile = BatchProfile()
    request = Request(300.0, 2_000, 100)
    each = busy_seconds(request, profile)
    requests = [request] * round(30 / each * 3)
    policy = clairvoyant(requests, profile, cold_start_s=60.0, busy_share=1.0, smooth_seconds=30)

    def count(at_s: float) -> int:
        return policy.decide(seen(a_round((0, 0)), wanted=1, now_ms=T0 + round(at_s * 1000)), None)[
            0
        ]

    assert (1, 3, 3, 1) == (count(180), count(215), count(300), count(400))


def test_the_instrument_adds_what_is_lacking():
    looks = [look(0, (0, 0), wanted=3, warming=2, arrivals=8.0)]

    assert [6] == said(Instrument(2.0, counts_warming=False), *looks)
    assert [4] == said(Instrument(2.0, counts_warming=True), *looks)


def test_a_name_says_the_rule_and_its_knob():
    names = [
        policy.name
        for policy in (
            Fixed(3),
            HpaValue(5.0),
            HpaAverageValue(0.5, Signal.KV),
            Keda(5),
            LlmScaler(5),
            AibrixKpa(2.5),
            WvaSaturation(),
            WvaTokens(),
        )
    ]

    assert [
        "fixed 3",
        "hpa-value waiting 5",
        "hpa-average kv 0.5",
        "keda waiting 5",
        "llmscaler waiting 5",
        "kpa in-flight 2.5",
        "wva-v1 0.1",
        "wva-v2 0.85",
    ] == names
    assert NO_PAST == Fixed(1).begin()

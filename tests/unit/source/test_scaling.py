"""`spec.scaling`: what each field becomes, and what is refused with its line and what to do."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import Severity, SourceLocation
from stoker.model.scaling import (
    Aggregate,
    Algorithm,
    CapacityPrior,
    DecisionQuery,
    Metric,
    MetricValue,
    PrometheusQuery,
    ScaleDown,
    ScaleDownBehavior,
    ScaleToZero,
    Scaling,
    ScheduledBounds,
    ScrapeQuery,
    Slo,
    WakeSource,
    ZeroPolicy,
)
from stoker.source import schema_scaling
from stoker.source.compile import UnitSettings, compile_draft
from stoker.source.layers import Layer, overlay
from stoker.source.scaling_model import scaling_of
from stoker.source.schema import Strict
from stoker.source.schema_scaling import ScalingBlock
from stoker.source.unit_file import Draft
from unit.source.scaling_builders import (
    QUEUE,
    ROUTER,
    SCALING_AT,
    SOURCES,
    ZERO,
    compiled,
    faults,
    scaling,
)
from unit.source.source_builders import SERVICE, desired_of, with_spec

FIELDS = st.sampled_from(
    sorted(
        {
            info.alias or name
            for part in vars(schema_scaling).values()
            if isinstance(part, type) and issubclass(part, Strict)
            for name, info in part.model_fields.items()
        }
    )
)
"""Names that stand anywhere in a scaling block."""


def test_bounds_alone_are_a_whole_block():
    """Load is estimated and capacity learned: a person need not know more than what to pay for."""
    assert Scaling(min_replicas=1, max_replicas=4) == scaling("maxReplicas: 4")


def test_the_defaults_of_the_file_are_those_of_the_model():
    """Whoever builds a Scaling by hand (the simulator) must get what a file gives."""
    assert Scaling(2, 4) == scaling("minReplicas: 2\nmaxReplicas: 4")


def test_a_budget_is_taken():
    assert Scaling(2, 4, max_gpus=2) == scaling("minReplicas: 2\nmaxReplicas: 4\nmaxGPUs: 2")


def test_everything_said_of_capacity_is_taken():
    found = scaling("""\
        minReplicas: 2
        maxReplicas: 8
        interval: 5s
        algorithm: Capacity
        load: {source: main, query: "sum(rate(requests_total[1m]))"}
        slo: {ttftP95: 2s, itlP95: 60ms}
        metrics: [{name: queue, scrape: {metric: "vllm:num_requests_waiting", aggregate: max}, targetPerReplica: "4.5"}]
        capacity: {prefillTokensPerSecond: 8000, decodeTokensPerSecond: 2400}
        headroomPercent: 10
        drainWindow: 1m
        blindFor: 2m
        scaleDown: {stabilizationWindow: 10m, maxStep: 1, behavior: None}
        scheduled: [{name: office, schedule: "0 8 * * 1-5", duration: 10h, timeZone: Europe/Berlin, minReplicas: 4, maxReplicas: 9}]
        """)

    assert found == Scaling(
        min_replicas=2,
        max_replicas=8,
        algorithm=Algorithm.CAPACITY,
        interval_ms=5_000,
        load=PrometheusQuery("main", "sum(rate(requests_total[1m]))"),
        slo=Slo(2_000, 60),
        metrics=(Metric("queue", ScrapeQuery("vllm:num_requests_waiting", Aggregate.MAX), 4.5),),
        capacity=CapacityPrior(8_000.0, 2_400.0),
        headroom_percent=10,
        drain_window_ms=60_000,
        blind_for_ms=120_000,
        scale_down=ScaleDown(600_000, 1, ScaleDownBehavior.NONE),
        scheduled=(ScheduledBounds("office", "0 8 * * 1-5", 36_000_000, "Europe/Berlin", 4, 9),),
    )


def test_everything_said_of_ratio_is_taken():
    found = scaling("""\
        maxReplicas: 5
        algorithm: Ratio
        metrics:
        - {name: kv, prometheus: {source: main, query: 'avg(kv{$pods})'}, targetPerReplica: "0.8"}
        - {name: all, prometheus: {source: main, query: waiting}, targetPerReplica: "5", value: Total}
        - {name: told, decision: {source: judge, serviceId: m-1, namespace: forge, path: /v1/ask}}
        scaleDown: {stabilizationWindow: 0s, deletionCost: {source: main, query: "kv * 100"}}
        """)

    assert found.algorithm is Algorithm.RATIO
    assert found.metrics == (
        Metric("kv", PrometheusQuery("main", "avg(kv{$pods})"), 0.8),
        Metric("all", PrometheusQuery("main", "waiting"), 5.0, MetricValue.TOTAL),
        Metric("told", DecisionQuery("judge", "m-1", "forge", "/v1/ask")),
    )
    assert found.scale_down == ScaleDown(0, deletion_cost=PrometheusQuery("main", "kv * 100"))


def test_everything_said_of_zero_is_taken():
    found = scaling("""\
        minReplicas: 0
        maxReplicas: 4
        scaleToZero:
          policy: BreakEven
          idle: 15m
          breachCost: "2.5"
          wake:
          - {name: epp, scrape: {source: epp, metric: queue_size, aggregate: sum}, hold: 3m}
          - {name: gateway, prometheus: {source: main, query: waiting}, hold: 1m}
          - {name: judge, decision: {source: judge, serviceId: m-1}, hold: 2m}
          - {name: office, scheduled: office}
        scheduled: [{name: office, schedule: "0 8 * * *", duration: 1h, minReplicas: 1}]
        """)

    assert found.scale_to_zero == ScaleToZero(
        ZeroPolicy.BREAK_EVEN,
        900_000,
        2.5,
        (
            WakeSource("epp", ScrapeQuery("queue_size", Aggregate.SUM, "epp"), 180_000),
            WakeSource("gateway", PrometheusQuery("main", "waiting"), 60_000),
            WakeSource("judge", DecisionQuery("judge", "m-1"), 120_000),
            WakeSource("office", None),
        ),
    )


def test_an_external_count_has_no_scaling_of_ours():
    block = ScalingBlock.model_validate({"mode": "External"})

    assert faults("mode: External") == []
    assert scaling_of(block) is None
    assert scaling_of(None) is None


METRIC = "maxReplicas: 4\nmetrics: [{name: q, scrape: {metric: m}, targetPerReplica: %s}]"
ONE = "maxReplicas: 4\nmetrics: [{name: q, %s}]"
AT = "maxReplicas: 4\nscheduled: [{name: a, schedule: %s}]"
WAKE = "minReplicas: 0\nmaxReplicas: 4\nscaleToZero: {policy: AfterIdle, wake: [{name: w, %s}]}"
IDLE = "minReplicas: 0\nmaxReplicas: 4\nscaleToZero: {%s}"


@pytest.mark.parametrize(
    ("lines", "code", "field", "line"),
    [
        (METRIC % '"0"', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % '"0.000"', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % '"-1"', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % '"80%"', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % '"NaN"', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % '"inf"', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % '"1e3"', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % '""', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % f'"{"9" * 400}"', "invalid-target", "metrics[0].targetPerReplica", 2),
        (METRIC % "4", "invalid-type", "metrics[0].targetPerReplica", 2),
        (METRIC % "0.8", "invalid-type", "metrics[0].targetPerReplica", 2),
        (METRIC % "true", "invalid-type", "metrics[0].targetPerReplica", 2),
        (ONE % "scrape: {metric: m}", "metric-without-target", "metrics[0].targetPerReplica", 2),
        (ONE % 'targetPerReplica: "4"', "metric-query", "metrics[0]", 2),
        (ONE % "scrape: {metric: m}, decision: {source: judge, serviceId: a}", "metric-query", "metrics[0]", 2),
        (ONE % 'decision: {source: judge, serviceId: a}, targetPerReplica: "4"', "target-of-decision", "metrics[0].targetPerReplica", 2),
        (ONE % "decision: {source: judge, serviceId: a}, value: Total", "target-of-decision", "metrics[0].value", 2),
        (ONE % 'scrape: {metric: "a b"}, targetPerReplica: "4"', "invalid-value", "metrics[0].scrape.metric", 2),
        (ONE % 'scrape: {metric: m, aggregate: p95}, targetPerReplica: "4"', "invalid-value", "metrics[0].scrape.aggregate", 2),
        (ONE % 'prometheus: {source: mian, query: up}, targetPerReplica: "4"', "unknown-metric-source", "metrics[0].prometheus.source", 2),
        (ONE % 'prometheus: {source: judge, query: up}, targetPerReplica: "4"', "metric-source-type", "metrics[0].prometheus.source", 2),
        (ONE % 'prometheus: {source: main, query: " "}, targetPerReplica: "4"', "invalid-value", "metrics[0].prometheus.query", 2),
        (ONE % "decision: {source: main, serviceId: a}", "metric-source-type", "metrics[0].decision.source", 2),
        (ONE % "decision: {source: judge}", "field-missing", "metrics[0].decision.serviceId", 2),
        (ONE % "decision: {source: judge, serviceId: a, path: decisions}", "invalid-value", "metrics[0].decision.path", 2),
        ("maxReplicas: 4\nload: {source: main}", "metric-query", "load", 2),
        ("maxReplicas: 4\nload: {scrape: {metric: m}, query: up}", "metric-query", "load", 2),
        ("maxReplicas: 4\nload: {}", "metric-query", "load", 2),
        ("maxReplicas: 4\nload: {scrape: {metric: m, source: nowhere}}", "unknown-metric-source", "load.scrape.source", 2),
        (f"minReplicas: 0\nmaxReplicas: 4\nalgorithm: Ratio\nmetrics: [{QUEUE}]", "zero-without-wake", "minReplicas", 1),
        (f"minReplicas: 0\nmaxReplicas: 4\nalgorithm: Ratio\nscaleToZero: {{policy: Never}}\nmetrics: [{QUEUE}]", "zero-without-policy", "minReplicas", 1),
        ("maxReplicas: 4\nload: {source: other, query: up}", "unknown-metric-source", "load.source", 2),
        ("maxReplicas: 4\nscaleDown: {deletionCost: {source: judge, query: up}}", "metric-source-type", "scaleDown.deletionCost.source", 2),
        (f"maxReplicas: 4\nmetrics: [{QUEUE}, {QUEUE}]", "duplicate-metric", "metrics[1].name", 2),
        ("minReplicas: 5\nmaxReplicas: 4", "min-above-max", "minReplicas", 1),
        ("minReplicas: 2", "field-missing", "maxReplicas", 0),
        ("minReplicas: 3\nmaxReplicas: 4\nmaxGPUs: 2", "budget-below-min", "maxGPUs", 3),
        ("maxReplicas: 4\nmaxGPUs: 0", "invalid-value", "maxGPUs", 2),
        ("maxReplicas: 4\nmaxGPUs: 1\nscheduled: [{name: a, schedule: '0 8 * * *', duration: 1h, minReplicas: 2}]", "budget-below-min", "maxGPUs", 2),
        ("maxReplicas: 0", "invalid-value", "maxReplicas", 1),
        ("maxReplicas: 1000000000", "invalid-value", "maxReplicas", 1),
        ("minReplicas: -1\nmaxReplicas: 4", "invalid-value", "minReplicas", 1),
        ('minReplicas: "3"\nmaxReplicas: 4', "invalid-type", "minReplicas", 1),
        ("minReplicas: 2.5\nmaxReplicas: 4", "invalid-type", "minReplicas", 1),
        ("maxReplicas: 4\ninterval: 500ms", "invalid-value", "interval", 2),
        ("maxReplicas: 4\ndrainWindow: 0s", "invalid-value", "drainWindow", 2),
        ("maxReplicas: 4\nblindFor: 0s", "invalid-value", "blindFor", 2),
        ("maxReplicas: 4\nslo: {ttftP95: 0s}", "invalid-value", "slo.ttftP95", 2),
        ("maxReplicas: 4\nslo: {itlP95: 0ms}", "invalid-value", "slo.itlP95", 2),
        ("maxReplicas: 4\nheadroomPercent: 20%", "invalid-type", "headroomPercent", 2),
        ("maxReplicas: 4\ncapacity: {prefillTokensPerSecond: 1}", "field-missing", "capacity.decodeTokensPerSecond", 2),
        ("maxReplicas: 4\ncapacity: {prefillTokensPerSecond: 0, decodeTokensPerSecond: 1}", "invalid-value", "capacity.prefillTokensPerSecond", 2),
        ("maxReplicas: 4\nalgorithm: Ratio", "field-missing", "metrics", 0),
        (f"maxReplicas: 4\nalgorithm: Ratio\nheadroomPercent: 5\nmetrics: [{QUEUE}]", "invalid-value", "headroomPercent", 3),
        (f"maxReplicas: 4\nalgorithm: Ratio\nslo: {{}}\nmetrics: [{QUEUE}]", "invalid-value", "slo", 3),
        ("maxReplicas: 4\nscaleDown: {behavior: None, deletionCost: {source: main, query: up}}", "invalid-value", "scaleDown.deletionCost", 2),
        ("maxReplicas: 4\nscaleDown: {maxStep: -1}", "invalid-value", "scaleDown.maxStep", 2),
        ("minReplicas: 0\nmaxReplicas: 4", "zero-without-policy", "minReplicas", 1),
        (f"maxReplicas: 4\nscaleToZero: {{policy: AfterIdle, wake: [{ROUTER}]}}", "policy-without-zero", "scaleToZero.policy", 2),
        (AT % '"0 1 * * *", duration: 1h, minReplicas: 0', "zero-without-policy", "scheduled[0].minReplicas", 2),
        (IDLE % "policy: AfterIdle", "zero-without-wake", "scaleToZero", 3),
        (IDLE % f"policy: BreakEven, wake: [{ROUTER}]", "field-missing", "scaleToZero.breachCost", 3),
        (IDLE % f'policy: AfterIdle, breachCost: "2", wake: [{ROUTER}]', "invalid-value", "scaleToZero.breachCost", 3),
        (IDLE % f'policy: BreakEven, breachCost: "2 USD", wake: [{ROUTER}]', "invalid-value", "scaleToZero.breachCost", 3),
        (IDLE % f"policy: BreakEven, breachCost: 2, wake: [{ROUTER}]", "invalid-type", "scaleToZero.breachCost", 3),
        (IDLE % f"policy: Sometimes, wake: [{ROUTER}]", "invalid-value", "scaleToZero.policy", 3),
        (WAKE % "prometheus: {source: main, query: up}", "field-missing", "scaleToZero.wake[0].hold", 3),
        (WAKE % "prometheus: {source: nowhere, query: up}, hold: 1m", "unknown-metric-source", "scaleToZero.wake[0].prometheus.source", 3),
        (WAKE % "hold: 1m", "metric-query", "scaleToZero.wake[0]", 3),
        (WAKE % "scheduled: office", "invalid-value", "scaleToZero.wake[0].scheduled", 3),
        (WAKE % "scrape: {metric: m}, hold: 1m", "field-missing", "scaleToZero.wake[0].scrape.source", 3),
        (WAKE % "scrape: {metric: m, source: main}, hold: 1m", "metric-source-type", "scaleToZero.wake[0].scrape.source", 3),
        (AT % '"0 8 * *", duration: 1h, minReplicas: 2', "invalid-schedule", "scheduled[0].schedule", 2),
        (AT % '"0 8 * * *", duration: 1h, minReplicas: 2, timeZone: Mars/Base', "unknown-time-zone", "scheduled[0].timeZone", 2),
        (AT % '"0 8 * * *", duration: 5s, minReplicas: 2', "invalid-value", "scheduled[0].duration", 2),
        (AT % '"0 8 * * *", duration: 800h, minReplicas: 2', "invalid-value", "scheduled[0].duration", 2),
        (AT % '"0 8 * * *", duration: 1h, minReplicas: 5', "min-above-max", "scheduled[0].minReplicas", 2),
        (AT % '"0 8 * * *", duration: 1h, minReplicas: 3, maxReplicas: 2', "min-above-max", "scheduled[0].minReplicas", 2),
        (AT % '"0 8 * * *", duration: 1h', "field-missing", "scheduled[0]", 2),
        (AT % '"0 8 * * *", duration: 1h, minReplicas: -1', "invalid-value", "scheduled[0].minReplicas", 2),
        (AT % '"0 8 * * *", duration: 1h, minReplicas: 2}, {name: a, schedule: "0 9 * * *", duration: 1h, minReplicas: 2', "duplicate-metric", "scheduled[1].name", 2),
        ("minReplicas: 3\nmaxReplicas: 4\nscheduled: [{name: a, schedule: '0 8 * * *', duration: 1h, maxReplicas: 2}]", "min-above-max", "scheduled[0].maxReplicas", 3),
        ("mode: External\nminReplicas: 1", "scaling-external", "minReplicas", 2),
        (f"mode: External\nmetrics: [{QUEUE}]", "scaling-external", "metrics", 2),
        ("mode: Automatic\nmaxReplicas: 4", "invalid-value", "mode", 1),
        ("maxReplicas: 4\nmaxReplica: 5", "unknown-field", "maxReplica", 2),
    ],
)  # fmt: skip
def test_a_wrong_block_is_one_error_at_its_line(lines, code, field, line):
    """Issue D, "Bad input": refused at validation, one clear reason, where and what to do."""
    found = faults(lines)

    assert [(code, f"spec.scaling.{field}")] == [(f.code, f.field) for f in found]
    (finding,) = found
    assert finding.severity is Severity.ERROR
    assert finding.location.path == "models/q.yaml"
    assert SCALING_AT + line == finding.location.line
    assert 0 < finding.location.column
    assert compiled(lines).spec is None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (METRIC % '"80%"', '"0.8" where the query gives 0 to 1'),
        (METRIC % "4", 'for instance "4"'),
        ("minReplicas: 2", "write the most replicas that you would pay for"),
        (ONE % 'prometheus: {source: mian, query: up}, targetPerReplica: "4"', "did you mean main?"),
        (ONE % 'prometheus: {source: judge, query: up}, targetPerReplica: "4"', "the Fleet has main"),
        (IDLE % "policy: AfterIdle", "name a gateway's queue"),
        (WAKE % "prometheus: {source: main, query: up}", "0s where nothing does"),
        ("maxReplicas: 4\nmaxReplica: 5", "did you mean maxReplicas?"),
    ],
)  # fmt: skip
def test_the_error_says_what_to_do(lines, words):
    (finding,) = faults(lines)

    assert words in str(finding)


def test_several_faults_are_told_at_once():
    found = faults("minReplicas: 5\nmaxReplicas: 4\ninterval: 0s\nmetrics: [{name: q}]")

    assert ["min-above-max", "invalid-value", "metric-query"] == [f.code for f in found]


def test_two_wake_sources_of_one_name_are_told_apart():
    twice = f"[{ROUTER}, {ROUTER}]"
    (finding,) = faults(IDLE % f"policy: AfterIdle, wake: {twice}")

    assert ("duplicate-metric", "spec.scaling.scaleToZero.wake[1].name") == (
        finding.code,
        finding.field,
    )


def test_a_schedule_holds_no_request():
    office = "[{name: office, schedule: '0 8 * * *', duration: 1h, minReplicas: 1}]"
    wake = "[{name: w, scheduled: office, hold: 1m}]"
    (finding,) = faults(IDLE % f"policy: AfterIdle, wake: {wake}" + f"\nscheduled: {office}")

    assert "spec.scaling.scaleToZero.wake[0].hold" == finding.field


def test_a_gateway_that_holds_nothing_is_a_warning_that_says_what_clients_get():
    """Refusing would stop those who accept an error; silence would surprise the first client."""
    (finding,) = faults(WAKE % "prometheus: {source: main, query: up}, hold: 0s")

    assert ("nothing-holds", Severity.WARNING) == (finding.code, finding.severity)
    assert "the first clients get an error" in finding.message


def test_arrivals_may_be_scraped_from_a_gateway():
    """Issue D: a gateway's or endpoint picker's counter is the first choice."""
    found = scaling("maxReplicas: 4\nload: {scrape: {metric: requests_total, source: epp}}")

    assert ScrapeQuery("requests_total", Aggregate.AVG, "epp") == found.load


RATIO = "minReplicas: 0\nmaxReplicas: 4\nalgorithm: Ratio\nmetrics: [{name: q, %s}]"


@pytest.mark.parametrize(
    "query",
    [
        'prometheus: {source: main, query: up}, targetPerReplica: "1"',
        'scrape: {source: epp, metric: queue_size}, targetPerReplica: "1"',
        "decision: {source: judge, serviceId: a}",
    ],
)
def test_zero_of_the_seeds_rule_wakes_by_its_metrics_with_a_warning(query):
    """Seed 001: at zero ceil(value / target) wakes; decision 46: to the letter, but told."""
    (finding,) = faults(RATIO % query)

    assert ("nothing-holds", Severity.WARNING) == (finding.code, finding.severity)
    assert "spec.scaling.minReplicas" == finding.field


def test_a_policy_that_is_off_may_keep_its_settings():
    """Switched off for a while: nobody should have to delete what wakes."""
    assert [] == faults(f"maxReplicas: 4\nscaleToZero: {{policy: Never, wake: [{ROUTER}]}}")


def test_a_warning_leaves_the_unit_usable():
    """Only errors make a unit broken, or a warning would keep a service from being changed."""
    zero = ZERO.replace("hold: 5m", "hold: 0s")

    assert {"warning"} == {f.severity.value for f in faults(zero)}


def test_sources_are_not_asked_for_where_no_fleet_is_at_hand():
    """`stoker validate FILE` sees one file; the Fleet's sources stand in another."""
    assert [] == faults(ZERO, sources=None)


def test_a_fleet_without_sources_says_where_to_add_one():
    (finding,) = faults(ZERO, sources=())

    assert "add it to spec.metricSources of the Fleet file" in finding.hint


def test_a_count_of_git_and_scaling_exclude_each_other():
    text = with_spec("replicas: 2\nscaling: {maxReplicas: 4}")

    assert "replicas-and-scaling" in {f.code for f in desired_of({"models/q.yaml": text}).findings}


def test_a_service_whose_count_is_external_takes_nothing_of_the_fleets_scaling():
    """Defaults say how counts follow load; one service left to its HPA says only that."""
    base = Layer({"spec": {"scaling": {"maxReplicas": 4, "interval": "5s"}}})
    patch = Layer({"spec": {"scaling": {"mode": "External"}}})

    assert overlay(base, patch).value == {"spec": {"scaling": {"mode": "External"}}}


WORDS = st.sampled_from(["", "80%", "4", "0", "-1", "NaN", "1h", "main", "Ratio", "None", "x y"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**9) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(FIELDS, VALUES, max_size=6))
def test_no_block_however_wrong_raises_or_passes_half(block):
    """A bad file is a finding, never a crash; what is converted is whole and within bounds."""
    spec = {**yaml.safe_load(SERVICE)["spec"], "scaling": block}
    document = {**yaml.safe_load(SERVICE), "spec": spec}
    settings = UnitSettings(namespace="llm", pools=("l4",), sources=SOURCES)
    draft = Draft("ModelService", "qwen", "", Layer(document), SourceLocation("q.yaml", 1, 1))

    found = compile_draft(draft, settings)

    errors = [f for f in found.findings if f.severity is Severity.ERROR]
    assert (found.spec is None) == bool(errors)
    if all(finding.code == "not-implemented-yet" for finding in errors):
        made = scaling_of(ScalingBlock.model_validate(block))
        assert made is None or 0 <= made.min_replicas <= made.max_replicas
        assert made is None or all(metric.target != 0 for metric in made.metrics)

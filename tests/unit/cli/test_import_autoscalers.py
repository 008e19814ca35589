"""HPAs and ScaledObjects: carried as they are, or translated as far as they say what they ask."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from definitions import a_definition
from stoker.cli.import_hpa import translate_hpa
from stoker.cli.import_keda import translate_scaledobject
from stoker.cli.import_scaling import MetricSources, policy_text
from stoker.errors import Stalled
from stoker.model.refs import ObjectRef
from stoker.model.scaling import (
    Aggregate,
    Algorithm,
    Metric,
    MetricValue,
    PrometheusQuery,
    ScaleDown,
    ScaleToZero,
    Scaling,
    ScheduledBounds,
    ScrapeQuery,
    WakeSource,
    ZeroPolicy,
)
from stoker.source.check_file import check_file
from stoker.source.scaling_model import scaling_of
from stoker.source.schema_scaling import ScalingBlock
from unit.cli.test_import import SPACE, a_deployment, an_autoscaler, place
from unit.cli.test_import_llmscaler import changed

__all__ = ["place"]

HPA = yaml.safe_load("""\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: embed-e5, namespace: llm}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: embed-e5}
  minReplicas: 2
  maxReplicas: 6
  metrics:
  - type: Pods
    pods:
      metric: {name: vllm_num_requests_waiting}
      target: {type: AverageValue, averageValue: "2500m"}
  behavior:
    scaleDown: {stabilizationWindowSeconds: 600, policies: [{type: Pods, value: 1, periodSeconds: 60}]}
""")
KEDA = yaml.safe_load("""\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: embed-e5, namespace: llm}
spec:
  scaleTargetRef: {name: embed-e5}
  pollingInterval: 10
  cooldownPeriod: 900
  minReplicaCount: 0
  maxReplicaCount: 8
  triggers:
  - type: prometheus
    name: waiting
    metadata:
      serverAddress: http://prometheus.monitoring:9090
      query: sum(vllm:num_requests_waiting)
      threshold: "5"
  - type: cron
    metadata: {timezone: Europe/Berlin, start: 0 8 * * 1-5, end: 30 17 * * 1-5, desiredReplicas: "3"}
""")
PODS = HPA["spec"]["metrics"][0]


def of_hpa(body) -> tuple[Scaling, list[str]]:
    return of(translate_hpa(body, MetricSources()))


def of_keda(body) -> tuple[Scaling, list[str]]:
    return of(translate_scaledobject(body, MetricSources()))


def of(found) -> tuple[Scaling, list[str]]:
    made = scaling_of(ScalingBlock.model_validate(dict(found.scaling)))
    assert made is not None
    return made, [line.split(" ", 1)[1] for line in found.left]


def named(left: list[str]) -> list[str]:
    return [line.split()[0] for line in left]


def test_an_average_over_pods_of_vllm_is_scraped():
    """Semantics 1.8: an HPA's Pods metric is the average that Ratio multiplies by what is ready."""
    found, left = of_hpa(HPA)

    query = ScrapeQuery("vllm:num_requests_waiting", Aggregate.AVG)
    assert found == Scaling(
        min_replicas=2,
        max_replicas=6,
        algorithm=Algorithm.RATIO,
        metrics=(Metric("num-requests-waiting", query, 2.5),),
        scale_down=ScaleDown(600_000, 1),
    )
    assert ["spec.behavior.scaleDown.policies", "spec.metrics"] == named(left)


def test_what_the_server_writes_into_an_hpa_by_itself_is_no_loss():
    behavior = {
        "scaleUp": None,
        "scaleDown": {
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        },
    }
    found, left = of_hpa(changed(HPA, "spec.behavior", behavior))

    assert ScaleDown(300_000) == found.scale_down
    assert ["spec.metrics"] == named(left)


EXTERNAL = {
    "type": "External",
    "external": {
        "metric": {"name": "queue_length"},
        "target": {"type": "AverageValue", "averageValue": "5"},
    },
}
OBJECT = {
    "type": "Object",
    "object": {
        "describedObject": {"kind": "Service", "name": "gateway"},
        "metric": {"name": "requests"},
        "target": {"type": "Value", "value": "10"},
    },
}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}
OTHER = {
    "type": "Pods",
    "pods": {
        "metric": {"name": "tokens"},
        "target": {"type": "AverageValue", "averageValue": "100"},
    },
}


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (EXTERNAL, 'queue_length: its query is in the rules of the metrics adapter; write it with targetPerReplica "5" and value: Total'),
        (OBJECT, 'requests: its query is in the rules of the metrics adapter; write it with targetPerReplica "10"'),
        (OTHER, 'tokens: its query is in the rules of the metrics adapter; write it with targetPerReplica "100"'),
        (CPU, "how busy a processor is says nothing"),
        ({"type": "Odd"}, "no metric of type Odd"),
        ({**EXTERNAL, "external": {"metric": {"name": "q"}}}, "its query is in the rules"),
    ],
    ids=["external", "object", "pods", "cpu", "odd", "no target"],
)  # fmt: skip
def test_what_an_hpa_does_not_say_is_named_with_what_to_write(metric, words):
    _, left = of_hpa(changed(HPA, "spec.metrics", [PODS, metric]))

    (line,) = [line for line in left if line.startswith("spec.metrics[1]")]
    assert words in line


@pytest.mark.parametrize(
    "metrics", [[], [CPU], [EXTERNAL], None], ids=["none", "cpu", "external", "absent"]
)
def test_an_hpa_of_which_nothing_can_be_said_is_not_translated(metrics):
    """A policy without its metric would hold one count for ever."""
    with pytest.raises(Stalled, match="none of its metrics can be translated"):
        of_hpa(changed(HPA, "spec.metrics", metrics))


def test_an_hpa_that_never_scales_down_is_not_translated():
    """Here counts fall; translated, it would lose replicas that it was told to keep."""
    with pytest.raises(Stalled, match="Disabled"):
        of_hpa(changed(HPA, "spec.behavior.scaleDown.selectPolicy", "Disabled"))


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        ("spec.minReplicas", 0, "spec.minReplicas"),
        ("spec.behavior.scaleUp", {"stabilizationWindowSeconds": 60}, "spec.behavior.scaleUp"),
        ("spec.behavior.scaleDown.tolerance", "0.05", "spec.behavior.scaleDown.tolerance"),
        ("spec.behavior.scaleDown.other", 1, "spec.behavior.scaleDown.other"),
        ("spec.behavior.scaleDown.policies", [{"type": "Percent", "value": 10}], "spec.behavior.scaleDown.policies"),
        ("spec.behavior.other", 1, "spec.behavior.other"),
        ("spec.other", 1, "spec.other"),
    ],
)  # fmt: skip
def test_what_of_an_hpa_is_in_no_file_is_named(path, value, name):
    assert name in named(of_hpa(changed(HPA, path, value))[1])


def test_triggers_of_keda_become_metrics_wake_sources_and_scheduled_bounds():
    """KEDA hands the HPA an AverageValue: the value of all replicas together (semantics 1.8)."""
    found, left = of_keda(KEDA)

    query = PrometheusQuery("prometheus", "sum(vllm:num_requests_waiting)")
    assert found == Scaling(
        min_replicas=0,
        max_replicas=8,
        algorithm=Algorithm.RATIO,
        interval_ms=10_000,
        metrics=(Metric("waiting", query, 5.0, MetricValue.TOTAL),),
        scale_down=ScaleDown(300_000),
        scale_to_zero=ScaleToZero(
            ZeroPolicy.AFTER_IDLE,
            900_000,
            wake=(WakeSource("waiting", query), WakeSource("at-cron-1", None)),
        ),
        scheduled=(
            ScheduledBounds("cron-1", "0 8 * * 1-5", 34_200_000, "Europe/Berlin", min_replicas=3),
        ),
    )
    assert [] == left


def test_the_defaults_of_keda_are_written_out():
    body = copy.deepcopy(KEDA)
    for name in ("pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount"):
        del body["spec"][name]
    found, _ = of_keda(body)

    assert (30_000, 0, 100) == (found.interval_ms, found.min_replicas, found.max_replicas)
    assert 300_000 == found.scale_to_zero.idle_ms


METADATA = "spec.triggers.0.metadata"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("spec.triggers.0.metricType", "Value", MetricValue.PER_REPLICA),
        ("spec.triggers.0.metricType", "AverageValue", MetricValue.TOTAL),
    ],
)
def test_the_type_of_a_trigger_says_what_its_value_counts(path, value, expected):
    found, _ = of_keda(changed(KEDA, path, value))

    assert expected is found.metrics[0].value


def test_an_activation_threshold_becomes_a_query_of_its_own():
    """Any value above zero wakes; below its threshold KEDA stays at zero."""
    found, _ = of_keda(changed(KEDA, f"{METADATA}.activationThreshold", "2.5"))

    query = found.scale_to_zero.wake[0].query
    assert PrometheusQuery("prometheus", "(sum(vllm:num_requests_waiting)) > bool 2.5") == query


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        ("spec.fallback", {"replicas": 3}, "spec.fallback"),
        ("spec.idleReplicaCount", 0, "spec.idleReplicaCount"),
        ("spec.initialCooldownPeriod", 60, "spec.initialCooldownPeriod"),
        ("spec.other", 1, "spec.other"),
        ("spec.advanced.restoreToOriginalReplicaCount", True, "spec.advanced.restoreToOriginalReplicaCount"),
        ("spec.advanced.other", 1, "spec.advanced.other"),
        ("spec.advanced.horizontalPodAutoscalerConfig.name", "x", "spec.advanced.horizontalPodAutoscalerConfig.name"),
        ("spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp", {"x": 1}, "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp"),
        (f"{METADATA}.ignoreNullValues", "false", "spec.triggers[0].metadata.ignoreNullValues"),
        (f"{METADATA}.namespace", "llm", "spec.triggers[0].metadata.namespace"),
        (f"{METADATA}.queryParameters", "a=b", "spec.triggers[0].metadata.queryParameters"),
        (f"{METADATA}.unsafeSsl", "true", "spec.triggers[0].metadata.unsafeSsl"),
        (f"{METADATA}.metricName", "x", "spec.triggers[0].metadata.metricName"),
        (f"{METADATA}.other", "x", "spec.triggers[0].metadata.other"),
        ("spec.triggers.0.useCachedMetrics", True, "spec.triggers[0].useCachedMetrics"),
        ("spec.triggers.0.authenticationRef", {"name": "prom"}, "spec.triggers[0].authenticationRef"),
        ("spec.triggers.1.type", "kafka", "spec.triggers[1]"),
        ("spec.triggers.1.metadata.end", "30 17 * * *", "spec.triggers[1]"),
        ("spec.triggers.1.metadata.end", "0 7 * * 1-5", "spec.triggers[1]"),
        ("spec.triggers.1.metadata.start", "*/5 8 * * 1-5", "spec.triggers[1]"),
        ("spec.triggers.1.metadata.desiredReplicas", "many", "spec.triggers[1]"),
        ("metadata.annotations", {"autoscaling.keda.sh/paused-replicas": "0"}, "metadata.annotations[autoscaling.keda.sh/paused-replicas]"),
    ],
)  # fmt: skip
def test_what_of_a_scaledobject_is_in_no_file_is_named(path, value, name):
    assert name in named(of_keda(changed(KEDA, path, value))[1])


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("spec.advanced.scalingModifiers", {"formula": "a + b"}, "a formula over triggers"),
        ("spec.triggers", [], "none of its triggers"),
        ("spec.triggers.0.type", "kafka", "none of its triggers"),
        (f"{METADATA}.threshold", "0", "above zero"),
        (f"{METADATA}.threshold", None, "above zero"),
        (f"{METADATA}.query", "", "query is missing"),
        (f"{METADATA}.serverAddress", None, "is no address"),
        ("spec.scaleTargetRef", {}, "needs apiVersion, kind and name"),
    ],
)
def test_a_scaledobject_that_cannot_be_read_is_not_translated(path, value, words):
    with pytest.raises(Stalled, match=words):
        of_keda(changed(KEDA, path, value))


def test_headers_of_a_trigger_are_named_and_their_values_are_not():
    sources = MetricSources()
    found = translate_scaledobject(
        changed(KEDA, f"{METADATA}.customHeaders", "X-Key=abc123"), sources
    )

    assert "abc123" not in policy_text(found, sources) + " ".join(found.left)
    assert {"prometheus-headers": ("X-Key",)} == sources.headers


def test_a_night_shift_over_midnight_is_one_time():
    times = {"timezone": "UTC", "start": "0 22 * * *", "end": "0 6 * * *", "desiredReplicas": "20"}
    found, _ = of_keda(changed(KEDA, "spec.triggers.1.metadata", times))

    assert (8 * 3_600_000, 8) == (found.scheduled[0].duration_ms, found.scheduled[0].min_replicas)


@pytest.mark.parametrize("make", [translate_hpa, translate_scaledobject])
def test_the_files_are_right_but_for_what_this_version_does_not_obey(make):
    sources = MetricSources()
    text = policy_text(make(HPA if make is translate_hpa else KEDA, sources), sources)

    assert {f.code for f in check_file("p.yaml", text.encode())} <= {
        "not-implemented-yet",
        "nothing-holds",
    }


def test_without_the_option_an_autoscaler_goes_on_scaling(place):
    place.kubectl_apply(a_deployment())
    place.kubectl_apply(an_autoscaler())
    answer = place.run("deployment/embed-e5", "hpa/embed-e5")

    assert "count stays with HorizontalPodAutoscaler/embed-e5" in answer.err
    assert (place.folder / "embed-e5/horizontalpodautoscaler-embed-e5.yaml").exists()


def test_a_live_hpa_is_translated_and_not_carried(place):
    """While it is there it keeps the count (design section 5), so it goes after the merge."""
    place.kubectl_apply(a_deployment())
    place.kubectl_apply(HPA)
    answer = place.run("deployment/embed-e5", "hpa/embed-e5", "--translate")

    assert answer.code == 0, answer.err
    assert "ScalePolicy" == place.read("embed-e5.yaml")["kind"]
    assert "replicas" not in place.read("embed-e5/deployment-embed-e5.yaml")["spec"]
    assert not (place.folder / "embed-e5/horizontalpodautoscaler-embed-e5.yaml").exists()
    assert "count stays with" not in answer.err
    assert "delete HorizontalPodAutoscaler/embed-e5 after the merge" in answer.err


def test_a_live_scaledobject_is_translated(place):
    place.kubectl_apply(a_deployment())
    definition = a_definition("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
    place.cluster.create(definition, manager="setup")
    place.cluster.create(KEDA, manager="setup")
    answer = place.run("scaledobject/embed-e5", "--translate")

    assert answer.code == 0, answer.err
    spec: dict[str, Any] = place.read("embed-e5.yaml")["spec"]
    assert ObjectRef("apps", "Deployment", SPACE, "embed-e5").name == spec["target"]["name"]
    assert "Total" == spec["scaling"]["metrics"][0]["value"]


def test_as_a_modelservice_the_rules_of_the_hpa_are_its_scaling(place):
    revision = "7ae557604adf67be50417f59c2c2f167def9a775"
    model = a_deployment(
        image="vllm/vllm-openai:v0.28",
        args=["--model", "org/e5", "--revision", revision],
        resources={"limits": {"nvidia.com/gpu": "1"}},
    )
    place.kubectl_apply(model)
    place.kubectl_apply(HPA)
    answer = place.run("hpa/embed-e5", "--translate", "--as-kind", "modelservice")

    assert answer.code == 0, answer.err
    spec = place.read("embed-e5.yaml")["spec"]
    assert (2, 6) == (spec["scaling"]["minReplicas"], spec["scaling"]["maxReplicas"])
    assert "embed-e5" == spec["adopt"]["name"]

"""Every field of an LLMScaler (seed 001) is in the file or named, and its samples come across."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from definitions import a_definition
from stoker.cli.import_llmscaler import translate_llmscaler
from stoker.cli.import_scaling import MetricSources, policy_text
from stoker.errors import Stalled
from stoker.model.refs import ObjectRef
from stoker.model.scaling import (
    Algorithm,
    DecisionQuery,
    Metric,
    PrometheusQuery,
    ScaleDown,
    ScaleToZero,
    Scaling,
)
from stoker.source.check_file import check_file
from stoker.source.scaling_model import scaling_of
from stoker.source.schema_scaling import ScalingBlock
from stoker.source.schema_sources import MetricSourceBlock
from unit.cli.test_import import SPACE, a_deployment, place

__all__ = ["place"]

SAMPLE = yaml.safe_load("""\
apiVersion: autoscaling.modelsphere.dev/v1alpha1
kind: LLMScaler
metadata:
  name: llmscaler-sample
spec:
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: vllm-opt-125m
  serverAddress: "http://prometheus-operated.monitoring.svc:9090"
  minReplicas: 1
  maxReplicas: 5
  syncPeriodSeconds: 15
  retryPeriodSeconds: 10
  metrics:
    - name: kv-cache
      query: 'avg(avg_over_time(vllm:kv_cache_usage_perc{namespace="default", app="vllm-opt-125m"}[2m]))'
      target: "0.8"
  scaleDown:
    stabilizationWindowSeconds: 180
    maxStepReplicas: 1
    behavior: CacheAware
    deletionCostQuery: 'vllm:kv_cache_usage_perc{namespace="default", app="vllm-opt-125m"} * 100'
""")
CUSTOM = yaml.safe_load("""\
apiVersion: autoscaling.modelsphere.dev/v1alpha1
kind: LLMScaler
metadata:
  name: llmscaler-custom-provider-sample
spec:
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: fallback-modelforge-01
  metricProvider: Custom
  serverAddress: "http://llm-decision-server.modelforge.svc:80"
  customProvider:
    serviceId: fallback-modelforge-01
    namespace: modelforge
    path: /decisions
  minReplicas: 1
  maxReplicas: 20
  scaleDown:
    stabilizationWindowSeconds: 180
    maxStepReplicas: 1
""")
"""The two samples of seed 001, as they stand there."""
QUERY = SAMPLE["spec"]["metrics"][0]["query"]
COST = SAMPLE["spec"]["scaleDown"]["deletionCostQuery"]
MAIN = "prometheus-operated"


def changed(body, path, value):
    body = copy.deepcopy(body)
    *above, last = path.split(".")
    inner = body
    for key in above:
        inner = inner[int(key)] if isinstance(inner, list) else inner.setdefault(key, {})
    if value is None:
        inner.pop(last, None)
    else:
        inner[last] = value
    return body


def block_of(body) -> dict[str, Any]:
    found = translate_llmscaler(body, MetricSources()).scaling
    assert found is not None
    return dict(found)


def scaling(body) -> Scaling:
    made = scaling_of(ScalingBlock.model_validate(block_of(body)))
    assert made is not None
    return made


def lines(body) -> list[str]:
    """The fields that are named as left out or changed."""
    left = translate_llmscaler(body, MetricSources()).left
    return [line.split()[1] for line in left]


def test_the_sample_of_prometheus_comes_across_whole():
    assert scaling(SAMPLE) == Scaling(
        min_replicas=1,
        max_replicas=5,
        interval_ms=15_000,
        algorithm=Algorithm.RATIO,
        metrics=(Metric("kv-cache", PrometheusQuery(MAIN, QUERY), 0.8),),
        scale_down=ScaleDown(180_000, 1, deletion_cost=PrometheusQuery(MAIN, COST)),
    )
    assert ["spec.retryPeriodSeconds"] == lines(SAMPLE)


def test_the_sample_of_the_custom_provider_comes_across_whole():
    source = "llm-decision-server"
    query = DecisionQuery(source, "fallback-modelforge-01", "modelforge", "/decisions")

    assert scaling(CUSTOM) == Scaling(
        min_replicas=1,
        max_replicas=20,
        algorithm=Algorithm.RATIO,
        metrics=(Metric("decision", query),),
        scale_down=ScaleDown(180_000, 1),
    )
    assert [] == lines(CUSTOM)


@pytest.mark.parametrize("body", [SAMPLE, CUSTOM], ids=["prometheus", "custom"])
def test_the_files_are_right_but_for_what_this_version_does_not_obey(body):
    sources = MetricSources()
    text = policy_text(translate_llmscaler(body, sources), sources)

    assert {f.code for f in check_file("p.yaml", text.encode())} <= {"not-implemented-yet"}
    for entry in sources.entries.values():
        MetricSourceBlock.model_validate(entry)


def test_the_policy_scales_the_same_workload_and_says_what_the_fleet_file_needs():
    sources = MetricSources()
    text = policy_text(translate_llmscaler(SAMPLE, sources), sources)
    body = yaml.safe_load(text)

    assert {"name": "llmscaler-sample", "namespace": "default"} == body["metadata"]
    assert SAMPLE["spec"]["targetRef"] == body["spec"]["target"]
    comment = "\n".join(line[2:] for line in text.splitlines() if line.startswith("# "))
    entries = yaml.safe_load(comment.split("once:")[1])["metricSources"]
    url = SAMPLE["spec"]["serverAddress"]
    assert [{"name": MAIN, "prometheus": {"url": url}}] == entries


@pytest.mark.parametrize(
    ("body", "path", "value", "at", "expected"),
    [
        (SAMPLE, "spec.minReplicas", 3, "minReplicas", 3),
        (SAMPLE, "spec.maxReplicas", 9, "maxReplicas", 9),
        (SAMPLE, "spec.syncPeriodSeconds", 30, "interval", "30s"),
        (SAMPLE, "spec.syncPeriodSeconds", None, "interval", "15s"),
        (SAMPLE, "spec.metrics.0.name", "queue", "metrics.0.name", "queue"),
        (SAMPLE, "spec.metrics.0.name", None, "metrics.0.name", "metric-1"),
        (SAMPLE, "spec.metrics.0.query", "avg(x)", "metrics.0.prometheus.query", "avg(x)"),
        (SAMPLE, "spec.metrics.0.target", "80", "metrics.0.targetPerReplica", "80"),
        (SAMPLE, "spec.metrics.0.target", "8e-1", "metrics.0.targetPerReplica", "0.8"),
        (SAMPLE, "spec.metrics.0.target", "5.50", "metrics.0.targetPerReplica", "5.5"),
        (SAMPLE, "spec.scaleDown.stabilizationWindowSeconds", 90, "scaleDown.stabilizationWindow", "1m30s"),
        (SAMPLE, "spec.scaleDown", None, "scaleDown.stabilizationWindow", "0s"),
        (SAMPLE, "spec.scaleDown.maxStepReplicas", 4, "scaleDown.maxStep", 4),
        (SAMPLE, "spec.scaleDown", None, "scaleDown.maxStep", 0),
        (SAMPLE, "spec.scaleDown", None, "scaleDown.behavior", "CacheAware"),
        (SAMPLE, "spec.scaleDown.behavior", "None", "scaleDown.behavior", "None"),
        (SAMPLE, "spec.scaleDown.deletionCostQuery", "y", "scaleDown.deletionCost.query", "y"),
        (SAMPLE, "spec.scaleDown.deletionCostQuery", None, "scaleDown.deletionCost", None),
        (SAMPLE, "spec.metricProvider", "Prometheus", "metrics.0.prometheus.source", MAIN),
        (CUSTOM, "spec.customProvider.serviceId", "other", "metrics.0.decision.serviceId", "other"),
        (CUSTOM, "spec.customProvider.namespace", "team", "metrics.0.decision.namespace", "team"),
        (CUSTOM, "spec.customProvider.namespace", None, "metrics.0.decision.namespace", None),
        (CUSTOM, "spec.customProvider.path", "/v1/ask", "metrics.0.decision.path", "/v1/ask"),
        (CUSTOM, "spec.customProvider.path", None, "metrics.0.decision.path", None),
    ],
)  # fmt: skip
def test_each_field_arrives(body, path, value, at, expected):
    found: Any = block_of(changed(body, path, value))
    for key in at.split("."):
        found = found[int(key)] if isinstance(found, list) else (found or {}).get(key)

    assert expected == found


FIELDS = {
    "spec.targetRef.apiVersion": (SAMPLE, "apps/v1beta1"),
    "spec.targetRef.kind": (SAMPLE, "StatefulSet"),
    "spec.targetRef.name": (SAMPLE, "other"),
    "spec.metricProvider": (SAMPLE, "Custom"),
    "spec.customProvider.serviceId": (CUSTOM, "other"),
    "spec.customProvider.namespace": (CUSTOM, "other"),
    "spec.customProvider.path": (CUSTOM, "/other"),
    "spec.serverAddress": (SAMPLE, "http://other:9090"),
    "spec.serverHeaders": (SAMPLE, {"X-Org": "7"}),
    "spec.minReplicas": (SAMPLE, 2),
    "spec.maxReplicas": (SAMPLE, 9),
    "spec.metrics.0.name": (SAMPLE, "other"),
    "spec.metrics.0.query": (SAMPLE, "other"),
    "spec.metrics.0.target": (SAMPLE, "0.9"),
    "spec.syncPeriodSeconds": (SAMPLE, 30),
    "spec.retryPeriodSeconds": (CUSTOM, 30),
    "spec.scaleDown.stabilizationWindowSeconds": (SAMPLE, 30),
    "spec.scaleDown.maxStepReplicas": (SAMPLE, 3),
    "spec.scaleDown.behavior": (SAMPLE, "None"),
    "spec.scaleDown.deletionCostQuery": (SAMPLE, "other"),
    "spec.preemption.enable": (SAMPLE, True),
    "spec.preemption.priorityClass": (SAMPLE, "high"),
    "status.currentReplicas": (SAMPLE, 3),
    "status.desiredReplicas": (SAMPLE, 3),
    "status.conditions": (SAMPLE, []),
}
"""Every line of the field tables of seed 001, with a value that is not the sample's."""


@pytest.mark.parametrize("path", FIELDS)
def test_no_field_of_the_table_goes_unseen(path):
    """Issue D: every field; each is in a file or named, none is dropped without a word."""
    body, value = FIELDS[path]
    other = changed(body, path, value)
    if path == "spec.metricProvider":
        other = changed(other, "spec.customProvider", {"serviceId": "x"})

    def told(body):
        sources = MetricSources()
        found = translate_llmscaler(body, sources)
        return policy_text(found, sources), found.left

    assert told(other) != told(body)


@pytest.mark.parametrize(
    ("body", "path", "value", "named"),
    [
        (SAMPLE, "spec.retryPeriodSeconds", 60, "spec.retryPeriodSeconds"),
        (CUSTOM, "spec.syncPeriodSeconds", 0, "spec.syncPeriodSeconds"),
        (CUSTOM, "spec.preemption", {"enable": True}, "spec.preemption.enable"),
        (CUSTOM, "spec.preemption", {"priorityClass": "x"}, "spec.preemption.priorityClass"),
        (CUSTOM, "spec.preemption", {"other": 1}, "spec.preemption.other"),
        (CUSTOM, "spec.metrics", [{"query": "x"}], "spec.metrics"),
        (CUSTOM, "spec.scaleDown.deletionCostQuery", "x", "spec.scaleDown.deletionCostQuery"),
        (CUSTOM, "spec.serverHeaders", {"A": "b"}, "spec.serverHeaders"),
        (CUSTOM, "spec.customProvider.other", 1, "spec.customProvider.other"),
        (CUSTOM, "spec.scaleDown.other", 1, "spec.scaleDown.other"),
        (CUSTOM, "spec.targetRef.namespace", "x", "spec.targetRef.namespace"),
        (CUSTOM, "spec.other", 1, "spec.other"),
        (CUSTOM, "status", {"currentReplicas": 3}, "status"),
        (CUSTOM, "metadata.labels", {"a": "b"}, "metadata.labels"),
        (CUSTOM, "metadata.annotations", {"a": "b"}, "metadata.annotations"),
        (SAMPLE, "spec.customProvider", {"serviceId": "x"}, "spec.customProvider"),
        (SAMPLE, "spec.metrics.0.name", "KV cache", "spec.metrics[0].name"),
        (SAMPLE, "spec.metrics.0.other", 1, "spec.metrics[0].other"),
        (SAMPLE, "spec.scaleDown.behavior", "None", "spec.scaleDown.deletionCostQuery"),
    ],
)
def test_what_is_in_no_file_is_named(body, path, value, named):
    assert named in lines(changed(body, path, value))


@pytest.mark.parametrize(
    ("body", "path", "value", "words"),
    [
        (SAMPLE, "spec.targetRef.name", None, "spec.targetRef needs"),
        (SAMPLE, "spec.targetRef.kind", None, "spec.targetRef needs"),
        (SAMPLE, "spec.targetRef.apiVersion", None, "spec.targetRef needs"),
        (SAMPLE, "spec.serverAddress", None, "spec.serverAddress"),
        (SAMPLE, "spec.serverAddress", "http://me:secret@x", "holds a password"),
        (SAMPLE, "spec.minReplicas", None, "spec.minReplicas is missing"),
        (SAMPLE, "spec.maxReplicas", None, "spec.maxReplicas is missing"),
        (SAMPLE, "spec.minReplicas", -1, "no whole number"),
        (SAMPLE, "spec.minReplicas", "1", "no whole number"),
        (SAMPLE, "spec.minReplicas", 6, "above maxReplicas 5"),
        (SAMPLE, "spec.metrics", [], "spec.metrics is empty"),
        (SAMPLE, "spec.metrics.0.query", "", "query is missing"),
        (SAMPLE, "spec.metrics.0.target", "80%", "percentage"),
        (SAMPLE, "spec.metrics.0.target", "0", "above zero"),
        (SAMPLE, "spec.metrics.0.target", "-1", "above zero"),
        (SAMPLE, "spec.metrics.0.target", "NaN", "above zero"),
        (SAMPLE, "spec.metrics.0.target", None, "above zero"),
        (SAMPLE, "spec.metricProvider", "Datadog", "none of Prometheus, Custom"),
        (SAMPLE, "spec.scaleDown.behavior", "Newest", "none of CacheAware, None"),
        (CUSTOM, "spec.customProvider", None, "serviceId is missing"),
        (CUSTOM, "spec.customProvider", [], "serviceId is missing"),
        (CUSTOM, "spec.customProvider", ["x"], "no map"),
    ],
)
def test_what_cannot_be_read_stops_the_import_of_the_object(body, path, value, words):
    with pytest.raises(Stalled, match="is not carried") as raised:
        block_of(changed(body, path, value))

    assert words in str(raised.value)
    assert "secret@" not in str(raised.value)


def test_values_of_headers_are_in_no_file_and_no_line():
    """A token that was imported into Git would have to be revoked."""
    body = changed(SAMPLE, "spec.serverHeaders", {"Authorization": "Bearer abc123", "X-Org": "7"})
    sources = MetricSources()
    found = translate_llmscaler(body, sources)
    text = policy_text(found, sources)

    assert "abc123" not in text + " ".join(found.left)
    secret = {"secretRef": {"name": f"{MAIN}-headers"}}
    assert [secret] == sources.entries[MAIN]["prometheus"]["headersFrom"]
    assert {f"{MAIN}-headers": ("Authorization", "X-Org")} == sources.headers


def test_scalers_of_one_server_share_a_source_and_others_get_their_own():
    sources = MetricSources()
    other = changed(SAMPLE, "spec.serverHeaders", {"X-Org": "7"})
    more = changed(SAMPLE, "spec.serverHeaders", {"X-Org": "8"})
    names = [translate_llmscaler(b, sources).sources[0] for b in (SAMPLE, SAMPLE, other, more)]

    assert [MAIN, MAIN, f"{MAIN}-2", f"{MAIN}-3"] == names


@pytest.mark.parametrize("body", [SAMPLE, CUSTOM], ids=["prometheus", "custom"])
def test_zero_is_left_and_reached_by_the_metrics_themselves_as_the_operator_does(body):
    """Seed 001: at zero ceil(value / target) is taken; nothing else is needed (decision 46)."""
    found = scaling(changed(body, "spec.minReplicas", 0))

    assert 0 == found.min_replicas
    assert ScaleToZero() == found.scale_to_zero


def test_metrics_of_one_name_are_told_apart():
    metrics = [
        {"name": "kv", "query": "a", "target": "1"},
        {"name": "kv", "query": "b", "target": "2"},
    ]
    found = scaling(changed(SAMPLE, "spec.metrics", metrics))

    assert ["kv", "kv-2"] == [metric.name for metric in found.metrics]


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("apps/v1", "StatefulSet"), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")],
)
def test_any_target_is_kept(api_version, kind):
    body = changed(SAMPLE, "spec.targetRef.apiVersion", api_version)
    found = translate_llmscaler(changed(body, "spec.targetRef.kind", kind), MetricSources())

    group, _, version = api_version.rpartition("/")
    assert ObjectRef(group, kind, "default", "vllm-opt-125m", version) == found.target


REVISION = "7ae557604adf67be50417f59c2c2f167def9a775"


def a_model():
    return a_deployment(
        "vllm-opt-125m",
        "vllm/vllm-openai:v0.28",
        args=["--model", "org/opt", "--revision", REVISION],
        resources={"limits": {"nvidia.com/gpu": "1"}},
    )


def live(place, body=SAMPLE):
    group = "autoscaling.modelsphere.dev"
    place.cluster.create(
        a_definition(group, "v1alpha1", "LLMScaler", "llmscalers"), manager="setup"
    )
    place.cluster.create(changed(body, "metadata.namespace", SPACE), manager="setup")


def test_a_live_object_becomes_a_policy_and_the_count_stays(place):
    """ux.md: whose the count was, whose it is then, and that it stays."""
    place.kubectl_apply(a_model())
    live(place)
    answer = place.run("llmscaler/llmscaler-sample")

    assert answer.code == 0, answer.err
    assert "ScalePolicy" == place.read("llmscaler-sample.yaml")["kind"]
    assert SPACE == place.read("llmscaler-sample.yaml")["metadata"]["namespace"]
    owner = "owner of spec.replicas: kubectl-client-side-apply (Update) -> stoker; count stays 2"
    assert owner in answer.err
    assert f"add metric source {MAIN} (prometheus http://prometheus-operated" in answer.err
    assert "scale llmscaleoperator to 0" in answer.err


def test_a_deployment_beside_it_leaves_its_count_to_the_policy(place):
    place.kubectl_apply(a_model())
    live(place)
    place.run("deployment/vllm-opt-125m", "llmscaler/llmscaler-sample")

    manifest = place.read("vllm-opt-125m/deployment-vllm-opt-125m.yaml")
    assert "replicas" not in manifest["spec"]


def test_as_a_modelservice_the_deployment_is_adopted_with_the_scaling(place):
    place.kubectl_apply(a_model())
    live(place)
    answer = place.run("llmscaler/llmscaler-sample", "--as-kind", "modelservice")

    assert answer.code == 0, answer.err
    spec = place.read("vllm-opt-125m.yaml")["spec"]
    assert {"kind": "Deployment", "name": "vllm-opt-125m"} == spec["adopt"]
    assert "replicas" not in spec
    assert block_of(SAMPLE) == spec["scaling"]
    text = (place.folder / "vllm-opt-125m.yaml").read_text()
    assert f"# - name: {MAIN}" in text
    assert {f.code for f in check_file("q.yaml", text.encode())} <= {"not-implemented-yet"}


def test_an_operator_that_pins_its_target_at_zero_gives_no_policy(place):
    """Seed 001: maxReplicas 0 disables scaling; a count of zero says the same."""
    place.kubectl_apply(a_model())
    live(place, changed(changed(SAMPLE, "spec.minReplicas", 0), "spec.maxReplicas", 0))
    answer = place.run("llmscaler/llmscaler-sample")
    adopted = place.run("llmscaler/llmscaler-sample", "--as-kind", "modelservice")

    assert 2 == answer.code
    assert "0 pins it at zero" in answer.err
    assert 0 == adopted.code
    assert 0 == place.read("vllm-opt-125m.yaml")["spec"]["replicas"]


def test_a_file_needs_no_cluster(place, tmp_path, monkeypatch):
    """Who keeps LLMScalers in Git need not be connected to anything."""
    path = tmp_path / "scalers.yaml"
    path.write_text(yaml.safe_dump_all([SAMPLE, CUSTOM]))
    monkeypatch.setattr("stoker.cli.connect.connect", None)
    answer = place.run(path, namespace="team")

    assert answer.code == 0, answer.err
    assert "team" == place.read("llmscaler-sample.yaml")["metadata"]["namespace"]
    assert "ScalePolicy" == place.read("llmscaler-custom-provider-sample.yaml")["kind"]
    assert "vllm-opt-125m count goes from LLMScaler/llmscaler-sample to Stoker" in answer.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: ConfigMap\nmetadata: {name: a}\n", "only HorizontalPodAutoscaler, LLMScaler"),
        ("kind: [", "cannot be read"),
        ("- 1\n", "holds what is no object"),
    ],
)
def test_a_file_of_something_else_says_so(place, tmp_path, text, words):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    answer = place.run(path)

    assert 2 == answer.code
    assert words in answer.err


def test_two_scalers_of_one_workload_are_refused_with_both_names(place, tmp_path):
    """Only one of them can be right, and the count must have one owner."""
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump_all([SAMPLE, changed(SAMPLE, "metadata.name", "second")]))
    answer = place.run(path)

    assert 2 == answer.code
    assert "LLMScaler/llmscaler-sample and LLMScaler/second both scale" in answer.err


def test_a_wake_that_nothing_holds_is_told_with_what_the_first_client_gets(place, tmp_path):
    """Issue D: validation warns and prints what the first client gets."""
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(changed(SAMPLE, "spec.minReplicas", 0)))
    answer = place.run(path)

    assert 0 == answer.code
    assert "the first clients get an error" in answer.err

"""`metricSources` of a Fleet: whom signals may ask, and no secret in the file."""

from __future__ import annotations

import pytest

from stoker.model.scaling import MetricSource, MetricSourceType
from stoker.source.fleet_file import fleet_findings
from stoker.source.schema_sources import MetricSourceBlock, sources_of
from unit.source.source_builders import FLEET, fleet_with

LINE = FLEET.count("\n") + 1


def faults(sources: str):
    """Everything said of the sources but that this version does not ask them yet."""
    text = fleet_with(f"metricSources: [{sources}]")
    return [
        f for f in fleet_findings("fleet.yaml", text.encode()) if f.code != "not-implemented-yet"
    ]


def test_a_source_has_a_type_an_address_and_headers_by_name_of_their_secrets():
    blocks = [
        {"name": "main", "prometheus": {"url": "http://prometheus:9090"}},
        {
            "name": "judge",
            "decision": {
                "url": "https://judge.example/base",
                "headersFrom": [{"secretRef": {"name": "judge"}}, {"secretRef": {"name": "more"}}],
            },
        },
        {"name": "epp", "scrape": {"url": "http://epp.llm:9090/metrics"}},
    ]

    assert sources_of([MetricSourceBlock.model_validate(block) for block in blocks]) == (
        MetricSource("main", MetricSourceType.PROMETHEUS, "http://prometheus:9090"),
        MetricSource(
            "judge", MetricSourceType.DECISION, "https://judge.example/base", ("judge", "more")
        ),
        MetricSource("epp", MetricSourceType.SCRAPE, "http://epp.llm:9090/metrics"),
    )


PROMETHEUS = "{name: a, prometheus: {url: %s}}"


@pytest.mark.parametrize(
    ("sources", "code", "field"),
    [
        ("{name: a}", "metric-source-type", "[0]"),
        ("{name: a, prometheus: {url: 'http://x'}, decision: {url: 'http://x'}}", "metric-source-type", "[0]"),
        (f"{PROMETHEUS % 'http://x'}, {PROMETHEUS % 'http://y'}", "duplicate-metric-source", "[1].name"),
        (PROMETHEUS % "prometheus:9090", "invalid-value", "[0].prometheus.url"),
        (PROMETHEUS % "ftp://x", "invalid-value", "[0].prometheus.url"),
        (PROMETHEUS % "'http://'", "invalid-value", "[0].prometheus.url"),
        (PROMETHEUS % "'http://x:99999'", "invalid-value", "[0].prometheus.url"),
        (PROMETHEUS % "'http://me:secret@x'", "invalid-value", "[0].prometheus.url"),
        (PROMETHEUS % "'http://x?tenant=1'", "invalid-value", "[0].prometheus.url"),
        ("{name: a, decision: {url: x}}", "invalid-value", "[0].decision.url"),
        ("{name: a, scrape: {url: x}}", "invalid-value", "[0].scrape.url"),
        ("{name: a, scrape: {url: 'http://x', headersFrom: []}}", "unknown-field", "[0].scrape.headersFrom"),
        ("{name: Main, prometheus: {url: 'http://x'}}", "invalid-name", "[0].name"),
        ("{name: a, prometheus: {}}", "field-missing", "[0].prometheus.url"),
        ("{name: a, prometheus: {url: 'http://x', headers: {a: b}}}", "unknown-field", "[0].prometheus.headers"),
        ("{name: a, prometheus: {url: 'http://x', headersFrom: [{secretRef: {name: A}}]}}", "invalid-value", "[0].prometheus.headersFrom[0].secretRef.name"),
    ],
)  # fmt: skip
def test_a_wrong_source_is_one_error_at_its_line(sources, code, field):
    found = faults(sources)

    assert [(code, f"spec.metricSources{field}")] == [(f.code, f.field) for f in found]
    assert ("fleet.yaml", LINE) == (found[0].location.path, found[0].location.line)


def test_a_password_in_an_address_is_not_shown():
    """What is refused must not be printed into a pull request either."""
    (finding,) = faults(PROMETHEUS % "'http://me:secret@x'")

    assert "secret@" not in str(finding)
    assert "put an Authorization header into a Secret" in finding.hint

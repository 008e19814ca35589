"""Scenario files: what they may say, and where a fault is told to be."""

from __future__ import annotations

import pytest
import yaml

from stoker.errors import BadInput, Stalled
from stoker.rehearse.scenario import (
    FLEET_PATH,
    fleet_files,
    read_scenario,
    scenario_named,
    shipped_scenarios,
)
from unit.rehearse.rehearse_builders import a_scenario, scenario_text

NOTICE = {"at": "0s", "notice": {"nodes": ["n1"]}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"nodes": [{"name": "n1"}, {"name": "n1"}]}, "two nodes called n1"),
        ({"services": [{"name": "a"}, {"name": "a"}]}, "two services called a"),
        ({"events": [{"at": "0s", "drain": {"nodes": ["n2"]}}]}, "the node n2"),
        ({"events": [{"at": "0s", "change": {"service": "b", "patch": {}}}]}, "the service b"),
        ({"events": [{"at": "0s"}]}, "exactly one"),
        ({"events": [{**NOTICE, "lose": {"nodes": ["n1"]}}]}, "exactly one"),
        ({"bars": {"services": [{"name": "b", "refused": 0}]}}, "the service b"),
        ({"nodes": [{"name": "n1", "holds": ["b"]}]}, "the service b"),
        ({"nodes": []}, "at least 1"),
        ({"load": {"lag": ["1s"]}}, "lags"),
        ({"lasts": "soon"}, "not a duration"),
    ],
)
def test_a_fault_is_told_with_its_line(spec, message):
    with pytest.raises(BadInput) as caught:
        read_scenario("one.yaml", scenario_text(**spec))

    (finding, *_) = caught.value.findings
    assert message in str(finding)
    assert finding.location.path == "one.yaml"
    assert finding.location.line


def test_two_documents_are_no_scenario():
    text = scenario_text() + b"---\n" + scenario_text()

    with pytest.raises(BadInput, match="2 documents"):
        read_scenario("one.yaml", text)


def test_an_event_says_what_it_is_and_whom_it_meets():
    events = [NOTICE, {"at": "5s", "break": {"nodes": ["n1"]}}, {"at": "6s", "killController": {}}]
    made = a_scenario(events=events).spec.events

    assert ["notice", "break", "killController"] == [event.what for event in made]
    assert [("n1",), ("n1",), ()] == [event.nodes_named for event in made]


def test_a_service_is_merged_over_the_defaults_and_those_over_what_all_begin_with():
    scenario = a_scenario(
        defaults={"replicas": 3, "drain": {"max": "2m"}},
        services=[{"name": "a", "spec": {"drain": {"shutdown": "5s"}}}, {"name": "b"}],
    )
    files = fleet_files(scenario.spec, "uid-1")
    spec = yaml.safe_load(files["models/a.yaml"])["spec"]

    assert {"max": "2m", "shutdown": "5s"} == spec["drain"]
    assert 3 == spec["replicas"]
    assert "hf://example/a" == spec["model"]["uri"]
    assert "uid-1" == yaml.safe_load(files[FLEET_PATH])["spec"]["cluster"]["uid"]


@pytest.mark.parametrize("name", shipped_scenarios())
def test_a_shipped_scenario_is_valid_and_called_as_its_file(name):
    assert name == scenario_named(name).metadata.name


def test_a_name_that_is_neither_shipped_nor_a_file_is_wrong_use():
    with pytest.raises(Stalled, match="no scenario") as caught:
        scenario_named("no-such-scenario")

    assert "preemption" in caught.value.hint

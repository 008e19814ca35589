"""`stoker rehearse`: what it prints, as what, and with which exit code."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
import yaml

from stoker.cli.rehearsal_schema import rehearsal_schema
from stoker.rehearse.scenario import shipped_scenarios

QUICK = {"pull": "1s", "download": "1s", "disk": "1s", "init": "1s"}
LOAD = {"ratePerSecond": 2, "lags": ["0s"], "sticky": 0, "output": {"p50": "1s", "p99": "2s"}}


@pytest.fixture
def scenario(shell):
    """Write a scenario of one service on one node for a few seconds; gives its path."""

    def write(**spec):
        plain = {
            "about": "one node",
            "nodes": [{"name": "n1", "holds": ["a"]}],
            "services": [{"name": "a"}],
            "starts": QUICK,
            "load": LOAD,
            "warmUp": "1s",
            "lasts": "5s",
        }
        body = {
            "apiVersion": "stoker.dev/v1alpha1",
            "kind": "Scenario",
            "metadata": {"name": "one"},
            "spec": {**plain, **spec},
        }
        path = shell.folder / "one.yaml"
        path.write_text(yaml.safe_dump(body), encoding="utf-8")
        return path

    return write


def test_without_a_scenario_the_shipped_ones_are_listed(shell):
    answer = shell("rehearse")

    assert answer.code == 0
    assert list(shipped_scenarios()) == [line.split()[0] for line in answer.out.splitlines()]


def test_a_scenario_that_does_not_exist_is_wrong_use(shell):
    answer = shell("rehearse", "no-such-thing")

    assert answer.code == 2
    assert "preemption" in answer.err


def test_a_file_that_is_wrong_is_told_with_its_line(shell, scenario):
    answer = shell("rehearse", scenario(lasts="soon"))

    assert answer.code == 2
    assert re.search(r"one\.yaml:\d+:\d+: spec\.lasts: ", answer.err)


def test_where_every_bar_holds_it_ends_with_0_and_says_so(shell, scenario):
    answer = shell("rehearse", scenario())

    assert answer.code == 0
    assert answer.out.splitlines()[-1] == "all 5 bars hold, 1 seed"
    assert re.search(r"^ +1  a +12 +0 +0 +0 +0 +0 ", answer.out, re.MULTILINE)


def test_where_a_bar_is_missed_it_ends_with_1_and_says_which(shell, scenario):
    events = [{"at": "0s", "lose": {"nodes": ["n1"], "knownAfter": "1s"}}]
    answer = shell("rehearse", scenario(events=events), "--seed", "7")

    assert answer.code == 1
    assert "seed 7: a refused " in answer.out
    assert "n1 dies" in answer.out


def test_where_nothing_can_serve_it_ends_with_3(shell, scenario):
    services = [{"name": "a", "spec": {"gpu": {"count": 2}}}]
    answer = shell("rehearse", scenario(services=services))

    assert answer.code == 3
    assert "a 0 of 1 Ready" in answer.out


def test_json_is_as_published_and_a_seed_gives_the_same_again(shell, scenario):
    events = [{"at": "1s", "drain": {"nodes": ["n1"]}}]
    first, again = (
        json.loads(shell("rehearse", scenario(events=events), "-o", "json").out) for _ in range(2)
    )

    jsonschema.validate(first, rehearsal_schema())
    assert first["runs"][0]["services"] == again["runs"][0]["services"]
    assert first["runs"][0]["events"] == again["runs"][0]["events"]


def test_the_picture_names_nodes_services_and_events(shell, scenario):
    events = [{"at": "1s", "drain": {"nodes": ["n1"]}}]
    text = shell("rehearse", scenario(events=events), "-o", "svg").out

    assert text.startswith("<svg")
    assert all(f">{word}<" in text for word in ("n1", "kubectl drain n1"))
    assert re.findall(r"https?://[^\"' ]+", text) == ["http://www.w3.org/2000/svg"]


@pytest.mark.parametrize("words", [("-o", "yaml"), ("--on", "mars")])
def test_outputs_and_grounds_are_closed_lists(shell, words):
    assert shell("rehearse", "preemption", *words).code == 2

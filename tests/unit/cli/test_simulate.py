"""`stoker simulate`: what it prints, as what, and how it refuses what is wrong."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from stoker.cli.simulate_policies import POLICIES
from stoker.cli.simulation_schema import simulation_schema


@pytest.fixture
def trace(shell):
    """Ten minutes, twice the rate in the middle; gives its path."""
    path = shell.folder / "rates.csv"
    rows = "0,1,200,50\n200,2,200,50\n400,1,200,50\n600,0,1,1\n"
    path.write_text(f"seconds,requestsPerSecond,promptTokens,outputTokens\n{rows}", "utf-8")
    return path


def test_every_policy_is_played_and_told_by_its_name(shell, trace):
    answer = shell("simulate", "--trace", trace, *(f"--policy={name}" for name in POLICIES))

    assert answer.code == 0, answer.err
    assert all(re.search(rf"^{name}", answer.out, re.MULTILINE) for name in POLICIES)
    assert "KEPT" in answer.out


def test_without_a_policy_ours_is_held_against_the_clairvoyant(shell, trace):
    answer = shell("simulate", "--trace", trace)

    assert ["stoker on", "clairvoyant 0.8 on"] == re.findall(
        r"^(\w.*? on) ", answer.err, re.MULTILINE
    )


def test_json_keeps_its_schema(shell, trace):
    answer = shell("simulate", "--trace", trace, "--price", 2, "--policy", "fixed=2", "-o", "json")
    document = json.loads(answer.out)
    jsonschema.validate(document, simulation_schema())
    run = document["runs"][0]

    assert ("fixed 2", 2) == (run["policy"], run["peak"])
    assert run["cost"] == pytest.approx(2 * run["gpuHours"], abs=1e-5)
    assert document["requests"] == run["kept"]


def test_the_picture_is_well_formed_and_names_every_policy(shell, trace):
    answer = shell(
        "simulate", "--trace", trace, "--policy", "fixed=1", "--policy", "kpa", "-o", "svg"
    )
    root = ET.fromstring(answer.out)
    words = " ".join(text for text in root.itertext())

    assert root.tag.endswith("svg")
    assert "fixed 1: " in words
    assert "kpa in-flight 20: " in words


def test_the_same_seed_prints_the_same(shell, trace):
    asked = ("simulate", "--trace", trace, "--policy", "stoker", "-o", "json")

    assert shell(*asked).out == shell(*asked).out


def test_a_trace_can_be_scaled_reversed_and_drawn_anew(shell, trace):
    def requests(*more: object) -> int:
        answer = shell("simulate", "--trace", trace, "--policy", "fixed=1", "-o", "json", *more)
        return json.loads(answer.out)["requests"]

    assert requests("--peak", 4) > 1.5 * requests()
    assert requests() == requests("--reversed")
    assert requests() != requests("--resampled")


def test_a_name_is_looked_for_in_the_folder_of_traces(shell, trace, monkeypatch):
    monkeypatch.setenv("STOKER_TRACES", str(trace.parent))

    assert shell("simulate", "--trace", trace.name, "--policy", "fixed=1").code == 0


def test_a_spot_trace_takes_replicas_away(shell, trace):
    spot = shell.folder / "spot.json"
    spot.write_text('{"metadata": {"gap_seconds": 100}, "data": [2, 2, 0, 2]}', "utf-8")
    answer = shell(
        *("simulate", "--trace", trace, "--policy", "fixed=2", "--first", 2),
        *("--spot", spot, "-o", "json"),
    )

    assert 2 == json.loads(answer.out)["runs"][0]["lost"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--policy", "magic"], "no policy 'magic'"),
        (["--policy", "kpa:mood=3"], "no signal 'mood'"),
        (["--policy", "fixed:kv=3"], "no signal of one's choice"),
        (["--policy", "kpa=0"], "not a number above 0"),
        (["--policy", "kpa=lots"], "not a number above 0"),
        (["--policy", "fixed=2.5"], "whole number"),
        (["--policy", "wva-v2=0.1"], "above 0.15"),
        (["--policy", "clairvoyant=2"], "at most 1"),
        (["--engine", "abacus"], "no engine 'abacus'"),
        (["--router", "coin"], "no router 'coin'"),
        (["--cold-start", "soon"], "not a duration"),
        (["--min", "5", "--max", "4"], "--min 5 is above --max 4"),
        (["--base", "HEAD"], "--service NAME"),
        (["-o", "xml"], "no output 'xml'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_told(shell, trace, more, words):
    answer = shell("simulate", "--trace", trace, *more)

    assert answer.code == 2
    assert words in answer.err


def test_a_line_that_is_wrong_is_told_with_its_number(shell, trace):
    trace.write_text("seconds,requestsPerSecond\n0,1\n5,many\n", "utf-8")
    answer = shell("simulate", "--trace", trace)

    assert answer.code == 2
    assert re.search(r"rates\.csv:3:1: requestsPerSecond is no number", answer.err)
    assert "invalid-trace" in answer.err


def test_a_file_that_is_not_there_is_no_crash(shell):
    answer = shell("simulate", "--trace", shell.folder / "nothing.csv")

    assert answer.code == 3
    assert "nothing.csv" in answer.err


def test_no_trace_is_wrong_use(shell):
    assert 2 == shell("simulate").code


def test_a_service_without_scaling_is_told(shell, trace):
    folder = shell.fleet()
    answer = shell("simulate", "--trace", trace, "-f", folder, "--service", "qwen-0-5b")

    assert "no-scaling" in answer.err
    assert "no-such-unit" in shell("simulate", "--trace", trace, "-f", folder, "--service", "x").err


def test_a_service_whose_file_is_wrong_is_told_with_its_line(shell, trace):
    folder = shell.fleet()
    file = folder / "models" / "qwen-0.5b.yaml"
    file.write_text(file.read_text("utf-8").replace("replicas: 2", "replicas: many"), "utf-8")
    answer = shell("simulate", "--trace", trace, "-f", folder, "--service", "qwen-0-5b")

    assert answer.code == 2
    assert re.search(r"qwen-0\.5b\.yaml:\d+:\d+: spec\.replicas", answer.err)


@pytest.mark.parametrize("output", ["text", "json", "svg"])
def test_a_trace_without_a_request_is_played_in_no_time(shell, trace, output):
    trace.write_text("seconds,requestsPerSecond\n", "utf-8")
    answer = shell("simulate", "--trace", trace, "--peak", 4, "-o", output)

    assert answer.code == 0
    assert " 0 requests" in answer.err

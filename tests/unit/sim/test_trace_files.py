"""Trace files: what each kind comes to, and one clear error with a line where one is wrong."""

from __future__ import annotations

import gzip
import json
from itertools import islice

import pytest

from stoker.errors import BadInput
from stoker.sim.trace_files import RateShape, read_spot, read_trace
from stoker.sim.traffic import Request

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
MOONCAKE = '{"timestamp": %s, "input_length": 1200, "output_length": 5, "hash_ids": [0, 7]}\n'
EXPORT = {
    "status": "success",
    "data": {
        "resultType": "matrix",
        "result": [{"metric": {}, "values": [[100, "4"], [160, "0"]]}],
    },
}


@pytest.fixture
def written(tmp_path):
    def write(text: str, name: str = "trace.csv"):
        path = tmp_path / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz", "any-name"])
def test_azure_counts_from_its_first_request(written, name):
    text = AZURE + "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.4799600,3180,8\r\n"

    assert [Request(0.0, 4808, 10), Request(0.5, 3180, 8)] == list(read_trace(written(text, name)))


def test_mooncake_brings_the_names_of_prefix_blocks(written):
    text = MOONCAKE % 5000 + "\n" + MOONCAKE % 6500

    assert [Request(0.0, 1200, 5, (0, 7)), Request(1.5, 1200, 5, (0, 7))] == list(
        read_trace(written(text, "trace.jsonl.gz"))
    )


def test_a_table_of_rates_becomes_as_many_requests(written):
    text = "seconds,requestsPerSecond,promptTokens,outputTokens\n0,2,10,3\n500,0,1,1\n600,5,8,8\n700,0,1,1\n"
    found = list(read_trace(written(text)))

    assert found == sorted(found, key=lambda r: r.at_s)
    assert {(10, 3), (8, 8)} == {(r.prompt_tokens, r.output_tokens) for r in found}
    assert 1000 == pytest.approx(sum(1 for r in found if r.at_s < 500), rel=0.1)
    assert not any(500 <= r.at_s < 600 for r in found)


def test_the_same_seed_gives_the_same_instants(written):
    path = written("seconds,requestsPerSecond\n0,2\n60,0\n")

    assert list(read_trace(path)) == list(read_trace(path))
    assert list(read_trace(path)) != list(read_trace(path, RateShape(seed=2)))


def test_a_range_export_is_a_table_of_rates(written):
    path = written(json.dumps(EXPORT, indent=2), "export.json")
    found = list(read_trace(path, RateShape(prompt_tokens=7, output_tokens=2)))

    assert 240 == pytest.approx(len(found), rel=0.2)
    assert {(7, 2)} == {(r.prompt_tokens, r.output_tokens) for r in found}
    assert found[-1].at_s < 60


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", "", "is empty"),
        ("a,b\n1,2\n", ":1", "is no trace"),
        (AZURE + "2023-11-16 18:17:03,1\n", ":2", "2 columns instead of 3"),
        (AZURE + "2023-11-16 18:17:03,1,1\nnoon,1,1\n", ":3", "no time"),
        (AZURE + "2023-11-16 18:17:03,1,1\n2023-11-16 18:17:02,1,1\n", ":3", "earlier"),
        (AZURE + "2023-11-16 18:17:03,-1,1\n", ":2", "ContextTokens is not a count"),
        (AZURE + "2023-11-16 18:17:03,1,1e9\n", ":2", "GeneratedTokens is not a count"),
        (AZURE + "2023-11-16 18:17:03,1,1\n2023-11-16 18:17:03Z,1,1\n", ":3", "time zone"),
        (MOONCAKE % 1 + "{\n", ":2", "not JSON"),
        (MOONCAKE % 1 + MOONCAKE % '"x"', ":2", "timestamp"),
        (MOONCAKE % "NaN", ":1", "timestamp"),
        (MOONCAKE % 1 + "[1]\n", ":2", "not a JSON object"),
        (MOONCAKE.replace("[0, 7]", '["a"]') % 1, ":1", "hash_ids"),
        (MOONCAKE.replace("1200", "null") % 1, ":1", "input_length"),
        ("seconds,requestsPerSecond\n0,1\n1,NaN\n", ":3", "not finite"),
        ("seconds,requestsPerSecond\n0,x\n", ":2", "no number"),
        ("seconds,requestsPerSecond\n0,-1\n", ":2", "not within"),
        ("seconds,requestsPerSecond\n0,1\n5,1\n4,1\n", ":4", "earlier"),
        ('{"data": {"result": []}}', "", "no series"),
        ('{"data": {"result": [{}, {}]}}', "", "2 series"),
        ('{"data": {"result": [{"values": []}]}}', "", "not a list of samples"),
        ('{"data": {"result": [{"values": [[1]]}]}}', "", "[time, value]"),
        ('{"data": {"result": [{"values": [[1, "NaN"]]}]}}', "", "not a rate"),
        ('{"data": {"result": [{"values": [[1, "x"]]}]}}', "", "no number"),
        ('{"data": {"result": [{"values": [[1, "1"], [0, "1"]]}]}}', "", "earlier"),
        ('{\n"data": oh\n}', ":2", "not JSON"),
        (MOONCAKE % 1 + '{"timestamp":' + "[" * 100_000 + "\n", ":2", "not JSON"),
        ('{"data":' + "[" * 100_000, "", "not JSON"),
        (AZURE + "2023-11-16 18:17:03," + "1" * 2_000_000, ":2", "cannot be read"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(written, text, line, words):
    path = written(text)
    with pytest.raises(BadInput, match="invalid-trace") as found:
        list(read_trace(path))

    assert 1 == len(found.value.findings)
    assert words in str(found.value)
    assert str(found.value).startswith(f"{path}{line and line + ':1'}: ")


def test_a_file_that_is_cut_off_says_so(written):
    path = written(AZURE + "2023-11-16 18:17:03,1,1\n" * 500, "cut.csv.gz")
    path.write_bytes(path.read_bytes()[:60])

    with pytest.raises(BadInput, match="not a whole"):
        list(read_trace(path))


def test_a_binary_file_is_no_text(written):
    path = written("", "x")
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(BadInput, match="UTF-8"):
        list(read_trace(path))


def test_a_trace_streams(written):
    """An error far behind does not keep the first requests back."""
    path = written(AZURE + "2023-11-16 18:17:03,1,1\n" * 3 + "broken\n")

    assert 3 == len(list(islice(read_trace(path), 3)))


def test_a_spot_trace_counts_instances(written):
    text = json.dumps({"metadata": {"gap_seconds": 195}, "data": [2, 0, 1]})
    found = read_spot(written(text, "spot.json"))

    assert [2, 2, 0, 1, 1] == [found.available(at_s) for at_s in (0, 194, 195, 390, 9_999)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "not a JSON object"),
        ('{"data": [1]}', "gap_seconds"),
        ('{"metadata": {"gap_seconds": 0}, "data": [1]}', "gap_seconds"),
        ('{"metadata": {"gap_seconds": 5}, "data": []}', "data is not a list"),
        ('{"metadata": {"gap_seconds": 5}, "data": [1, -1]}', "data[1]"),
        ('{"metadata": {"gap_seconds": 5}, "data": [true]}', "data[0]"),
    ],
)
def test_a_spot_trace_that_is_wrong_is_told(written, text, words):
    with pytest.raises(BadInput) as found:
        read_spot(written(text))

    assert words in str(found.value)

"""Template vllm/v1: the same pods for ever, and pods that work."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from stoker.model.fleet import (
    Cache,
    CacheType,
    CudaGraphs,
    Drain,
    Pin,
    PlacementMode,
    Pool,
    SecretKey,
)
from stoker.render import Renderer, render, shape
from unit.render.builders import (
    FLEET_ID,
    POOL,
    FakeRepo,
    decision,
    desired,
    placement,
    plan,
    service,
    unit,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "vllm_v1"

SERVICES = {
    "minimal": service(),
    "full": service(
        model_revision="main",
        served_names=("big", "alias"),
        gpu_count=8,
        token_secret=SecretKey("hf", "token"),
        engine_args=("--max-model-len", "32768", '--override={"a": "$b \'c\'"}'),
        cuda_graphs=CudaGraphs.CAPTURE,
        tensor_parallel=4,
        pipeline_parallel=2,
        gpu_resource="amd.com/gpu",
        cpu_request="16",
        memory_request="160Gi",
        shm_bytes=16 * 2**30,
        cache=Cache(CacheType.HOST_PATH, path="/mnt/nvme/stoker"),
        cold_start_deadline_ms=90_500,
        drain=Drain(5_000, 30_000, 10_000),
        service_port=80,
        pools=("pinned",),
        pod_template={
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "x"}},
            "spec": {
                "tolerations": [{"key": "amd.com/gpu", "operator": "Exists"}],
                "nodeSelector": {"arch": "amd64"},
                "containers": [{"name": "engine", "env": [{"name": "EXTRA", "value": "1"}]}],
            },
        },
    ),
    "scheduler": service(
        model_uri="/models/own",
        model_revision="",
        served_names=(),
        placement_mode=PlacementMode.SCHEDULER,
        cache=Cache(CacheType.PVC, claim="weights"),
        pools=("l4-od", "pinned"),
    ),
    "stream": service(
        model_uri="s3://models/qwen", model_revision="2026-11", cache=Cache(CacheType.STREAM)
    ),
    "image": service(
        model_uri="file:///models/qwen",
        model_revision="2026-11",
        cache=Cache(CacheType.IMAGE, image="registry.example/qwen@sha256:" + "cd" * 32),
    ),
}
PINNED = Pool("pinned", match_labels=(("pool", "mi300"),), pin=Pin.REQUIRED)


class _Literal(yaml.SafeDumper):
    """Long texts line by line, so that a difference can be reviewed."""


def _text(dumper, value):
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", value, style="|" if "\n" in value else None
    )


_Literal.add_representer(str, _text)


@pytest.fixture(scope="module")
def rendered():
    found = {}
    repo = FakeRepo()
    with Renderer(1) as renderer:
        for name, spec in SERVICES.items():
            item = unit(spec, name)
            fleet = desired(item, pools=(POOL, PINNED))
            shapes = shape(fleet, repo, renderer, FLEET_ID)
            scheduler = spec.placement_mode is PlacementMode.SCHEDULER
            place = placement(
                shapes, item.ref, "" if scheduler else "node-1.example", count=2, pool=spec.pools[0]
            )
            answer = plan(decision(item.ref, place, mode=spec.placement_mode))
            (found[name],) = render(fleet, shapes, answer, repo, renderer, FLEET_ID)
    return found


def bodies(item):
    return [manifest.body for manifest in item.manifests]


def container(item):
    (deployment,) = [body for body in bodies(item) if body["kind"] == "Deployment"]
    return deployment["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("name", SERVICES)
def test_a_published_version_never_changes_what_it_renders(rendered, name):
    """design.md section 4. A wanted change is templates/vllm/v2 with golden files of its own.

    Run with STOKER_WRITE_GOLDEN=1 only for a file that does not exist yet.
    """
    text = yaml.dump_all(bodies(rendered[name]), Dumper=_Literal, sort_keys=True, width=1000)
    file = GOLDEN / f"{name}.yaml"
    if os.environ.get("STOKER_WRITE_GOLDEN") == "1" and not file.exists():
        file.write_text(text)

    assert file.read_text() == text


def test_arguments_arrive_byte_for_byte(rendered):
    """cases.md row 35: JSON in an argument lost its quotes on the way."""
    arguments = container(rendered["full"])["args"]

    assert ["--max-model-len", "32768", '--override={"a": "$b \'c\'"}'] == arguments[-3:]


def test_the_start_deadline_becomes_probe_budget(rendered):
    """90.5 s at a probe each 5 s are 19 probes; nothing measured goes in."""
    probe = container(rendered["full"])["startupProbe"]

    assert (5, 19) == (probe["periodSeconds"], probe["failureThreshold"])


def test_the_grace_period_holds_the_whole_drain(rendered):
    (deployment,) = [b for b in bodies(rendered["full"]) if b["kind"] == "Deployment"]

    assert (
        5 + 30 + 10 + 5 == deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    )


def test_nothing_opens_the_development_endpoints(rendered):
    """b.C row 130: semantics.md 1.11: sleep and RPC endpoints must never be exposed."""
    for item in rendered.values():
        assert "VLLM_SERVER_DEV_MODE" not in json.dumps(bodies(item))


class _Engine(http.server.BaseHTTPRequestHandler):
    """Answers what the test scripted: path to (status, body)."""

    script: ClassVar[dict[str, tuple[int, str]]] = {}
    asked: ClassVar[list[tuple[str, str | None, bytes]]] = []

    def _answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.asked.append((self.path, self.headers.get("Authorization"), self.rfile.read(length)))
        status, body = self.script.get(self.path, (404, "{}"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = _answer  # noqa: N815 - the names http.server looks for

    def log_message(self, *_args):
        pass


@pytest.fixture
def engine():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Engine)
    _Engine.script, _Engine.asked = {}, []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def exit_code(command, server, *arguments, **environment):
    """Run a command of the pod on this machine, at the stand-in's address."""
    url = f"http://127.0.0.1:{server.server_address[1]}"
    run = subprocess.run(
        [sys.executable, *command[1:3], url, *arguments],
        env={"http_proxy": "http://192.0.2.1:1", **environment},
        check=False,
        capture_output=True,
        timeout=30,
    )
    return run.returncode


@pytest.mark.parametrize(
    ("script", "ready"),
    [
        ({"/v1/completions": (200, '{"choices": [{"text": "a"}]}')}, True),
        ({"/health": (200, ""), "/v1/completions": (500, "")}, False),
        ({"/health": (200, ""), "/v1/completions": (503, "")}, False),
        ({"/v1/completions": (200, '{"choices": []}')}, False),
        ({"/v1/embeddings": (200, '{"data": [{}]}')}, True),
        ({"/v1/completions": (400, ""), "/v1/embeddings": (200, '{"data": [{}]}')}, True),
        ({"/pooling": (200, '{"data": [{}]}')}, True),
        ({"/health": (200, "")}, False),
    ],
    ids=["token", "health only", "busy", "no token", "embeds", "embeds, 400", "pools", "nothing"],
)
def test_ready_means_that_a_token_was_served(rendered, engine, script, ready):
    """cases.md row 91: /health answers 200 long before the first completion works."""
    _Engine.script = script
    command = container(rendered["minimal"])["startupProbe"]["exec"]["command"]

    assert ready is (exit_code(command, engine, command[4]) == 0)


def test_the_probe_asks_for_one_token_of_the_served_name_with_the_key(rendered, engine):
    _Engine.script = {"/v1/completions": (200, '{"choices": [{}]}')}
    command = container(rendered["minimal"])["startupProbe"]["exec"]["command"]
    exit_code(command, engine, command[4], VLLM_API_KEY="k")

    ((path, key, body),) = _Engine.asked
    assert ("/v1/completions", "Bearer k") == (path, key)
    asked = json.loads(body)
    assert ("qwen-7b", 1) == (asked["model"], asked["max_tokens"])


def test_a_probe_fails_while_nothing_listens(rendered, engine):
    command = container(rendered["minimal"])["startupProbe"]["exec"]["command"]
    engine.shutdown()
    engine.server_close()

    assert 0 != exit_code(command, engine, command[4])


METRICS = """\
# HELP vllm:num_requests_running x
vllm:num_requests_running{{engine="0",model_name="a b"}} {running}
vllm:num_requests_running{{engine="1"}} 0.0
vllm:num_requests_waiting{{engine="0"}} {waiting} 1700000000
vllm:num_requests_waiting_by_reason{{reason="x"}} 7.0
"""


def pre_stop(item):
    return container(item)["lifecycle"]["preStop"]["exec"]["command"]


@pytest.mark.parametrize(
    ("metrics", "idle"),
    [
        ((200, METRICS.format(running="0.0", waiting="0")), True),
        ((200, METRICS.format(running="1.0", waiting="0")), False),
        ((200, METRICS.format(running="0.0", waiting="3")), False),
        ((200, "vllm:num_requests_running 0\n"), False),
        ((200, ""), False),
        ((200, METRICS.format(running="NaN", waiting="0")), False),
        ((200, METRICS.format(running="x", waiting="0")), False),
        ((500, ""), False),
    ],
    ids=["idle", "running", "waiting", "half", "no metrics", "NaN", "torn", "failing"],
)
def test_a_stop_waits_while_requests_are_in_flight_or_unknown(rendered, engine, metrics, idle):
    """semantics.md 1.2: a failed poll is busy. A limit of 0.2 s stands in for minutes."""
    _Engine.script = {"/metrics": metrics}
    exit_code(pre_stop(rendered["minimal"]), engine, "0", "0.2")

    assert idle is (len(_Engine.asked) == 1)


def test_a_stop_does_not_wait_for_an_engine_that_does_not_listen(rendered, engine):
    """A replica that is still loading has nothing in flight; 10 minutes would waste its GPU."""
    engine.shutdown()
    engine.server_close()

    assert 0 == exit_code(pre_stop(rendered["minimal"]), engine, "0", "20")


def test_a_stop_is_given_the_seconds_of_the_drain(rendered):
    assert ["http://127.0.0.1:8000", "5", "30"] == pre_stop(rendered["full"])[3:]

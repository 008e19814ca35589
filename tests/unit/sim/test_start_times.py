"""What a pod says about its start, and how long that takes."""

from __future__ import annotations

import pytest

from stoker.sim.start_times import (
    GIB,
    PreStop,
    StartTimes,
    has_host_path,
    pre_stop_of,
    served_names,
    shutdown_seconds_of,
    weights_of,
)


def pod(*args, labels=None, **container):
    return {
        "metadata": {"name": "p", "labels": labels or {}},
        "spec": {
            "containers": [{"name": "side"}, {"name": "engine", "args": list(args), **container}]
        },
    }


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(["serve", "o/m", "--revision", "abc"], ("hf://o/m", "abc"), id="serve"),
        pytest.param(["--model=o/m", "--revision=abc"], ("hf://o/m", "abc"), id="equals"),
        pytest.param(["--model", "s3://b/m"], ("s3://b/m", "label"), id="revision by label"),
        pytest.param(["serve", "--port", "1"], ("svc", "label"), id="no model"),
    ],
)
def test_the_weights_are_read_from_the_command_line(args, expected):
    labels = {"stoker.dev/model-revision": "label", "stoker.dev/service": "svc"}

    assert expected == weights_of(pod(*args, labels=labels))


def test_served_names_end_at_the_next_flag():
    assert ("a", "b") == served_names(pod("--served-model-name", "a", "b", "--port", "1"))
    assert ("a",) == served_names(pod("--served-model-name=a"))
    assert () == served_names(pod("serve", "m"))


SCRIPT = "names = {'vllm:num_requests_running'}"


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        pytest.param({"sleep": {"seconds": 15}}, PreStop(15), id="sleep"),
        pytest.param({"exec": {"command": ["sleep", "5"]}}, PreStop(5), id="command"),
        pytest.param({"exec": {"command": ["sh", "-c", "sleep 2.5; x"]}}, PreStop(2.5), id="shell"),
        pytest.param(
            {"exec": {"command": ["python3", "-c", SCRIPT, "http://127.0.0.1:8000", "15", "600"]}},
            PreStop(15, 600),
            id="the templates' own",
        ),
        pytest.param({"httpGet": {"path": "/"}}, PreStop(), id="another hook"),
        pytest.param(None, PreStop(), id="none"),
    ],
)
def test_pre_stop_hooks_are_read(hook, expected):
    assert expected == pre_stop_of(pod(lifecycle={"preStop": hook}))


@pytest.mark.parametrize(
    ("uri", "size"),
    [
        ("hf://Qwen/Qwen2.5-0.5B-Instruct", 1_000_000_000),
        ("hf://o/Llama-3.3-70B-FP8", 140_000_000_000),
        ("hf://o/model-v2", 15 * GIB),
    ],
)
def test_the_size_of_weights_is_guessed_from_the_name(uri, size):
    assert size == StartTimes().weights(pod("--model", uri)).bytes


def test_the_shutdown_timeout_defaults_to_none():
    assert shutdown_seconds_of(pod("--shutdown-timeout", "60")) == 60.0
    assert shutdown_seconds_of(pod("serve", "m")) == 0.0


def test_weights_on_disk_load_faster_than_from_afar():
    times = StartTimes(weights_bytes={"hf://o/m": 30 * GIB})
    weights = times.weights(pod("serve", "o/m"))

    assert times.weights_seconds(weights, held=True) == 10.0
    assert times.weights_seconds(weights, held=False) == 60.0


def test_skipping_graph_capture_starts_faster():
    times = StartTimes(init_seconds=4, capture_seconds=10)

    assert times.engine_seconds(pod("--enforce-eager")) == 4
    assert times.engine_seconds(pod()) == 14


def test_only_a_host_path_keeps_weights_on_the_node():
    plain, cached = pod(), pod()
    plain["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    cached["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/mnt"}}]

    assert (False, True) == (has_host_path(plain), has_host_path(cached))

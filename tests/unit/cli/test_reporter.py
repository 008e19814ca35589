"""`stoker reporter` refuses nonsense before it asks anybody, and its manifests fit its options."""

from typing import cast

import pytest
import yaml

from shape.docs_console import command_tree
from stoker.cli.reporter import node_of_token
from stoker.errors import Unreachable
from stoker.model.ports import Cluster
from stoker.sim.clock import VirtualClock

IMAGE = "registry.example/stoker@sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--cloud", "ibm"], "--cloud: no 'ibm'"),
        (["--engine", "8000"], "--engine: '8000' is no HOST:PORT"),
        (["--engine", "a:b"], "no HOST:PORT"),
        (["--interval", "0s"], "too often"),
        (["--interval", "soon"], "is not a duration"),
        (["--metadata-address", "8.8.8.8"], "no address of a metadata service"),
        ([f"--engine=127.0.0.1:{n}" for n in range(1, 40)], "39 engines"),
        (["--log-level", "loud"], "--log-level"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_to_write(shell, arguments, told):
    answer = shell("reporter", "--node", "n1", *arguments)

    assert answer.code == 2
    assert told in answer.err


def test_the_node_has_to_be_named(shell):
    answer = shell("reporter")

    assert answer.code == 2
    assert "--node" in answer.err


def test_without_a_cluster_it_says_what_is_missing(shell):
    answer = shell("reporter", "--node", "n1", "--cloud", "none", "--kubeconfig", "/nowhere")

    assert answer.code == 2
    assert "kubeconfig-missing" in answer.err


class Booting:
    """An API server that answers the third question."""

    def __init__(self):
        self.asked = 0

    def create(self, manifest, *, manager):
        self.asked += 1
        if self.asked < 3:
            raise Unreachable("no route to host")
        extra = {"authentication.kubernetes.io/node-name": ["n1"]}
        return {"status": {"userInfo": {"extra": extra}}}


def test_a_node_that_boots_is_waited_for():
    """The pod's container would be restarted with pauses of up to five minutes."""
    clock, cluster = VirtualClock(), Booting()

    assert node_of_token(cast("Cluster", cluster), clock) == ("n1", "")
    assert (cluster.asked, clock.monotonic()) == (3, 10.0)


def test_nobody_types_it_so_the_help_does_not_list_it(shell):
    assert "reporter" not in shell("--help").out


def test_the_daemon_set_runs_it_with_options_that_exist(shell):
    answer = shell(
        "install", "--reporter", "--image", IMAGE, "--cache-path", "/mnt/nvme",
        "--reporter-option=--cloud=aws", "--host-network",
    )  # fmt: skip
    bodies = list(yaml.safe_load_all(answer.out))
    daemon_set = next(body for body in bodies if body["kind"] == "DaemonSet")
    arguments = daemon_set["spec"]["template"]["spec"]["containers"][0]["args"]
    options = {o for p in command_tree().commands["reporter"].params for o in p.opts}

    assert arguments[0] == "reporter"
    assert {argument.split("=")[0] for argument in arguments[1:]} <= options
    assert "--cloud=aws" in arguments
    assert daemon_set["metadata"]["namespace"] == "stoker-reporter"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [([], "--image is needed"), (["--image", IMAGE, "--cache-path", "mnt"], "is not absolute")],
)
def test_manifests_of_a_reporter_that_cannot_run_are_not_printed(shell, arguments, told):
    answer = shell("install", "--reporter", *arguments)

    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err

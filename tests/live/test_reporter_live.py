"""The reporter on the real API server, with the rights that its manifests give and no others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from stoker.clock import SystemClock
from stoker.errors import StokerError
from stoker.kube.caller import bound_node
from stoker.kube.client import Client
from stoker.kube.errors import Forbidden, Invalid, KindNotFound, NotFound
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request
from stoker.model.refs import ObjectRef
from stoker.node.state_writer import StateWriter, Written
from stoker.report.install_reporter import ReporterInstall, reporter_manifests
from stoker.sim.nodes import create_node, node_manifest

pytestmark = pytest.mark.live

OWN, OTHER = "reporter-live-1", "reporter-live-2"
SPACE = "stoker-reporter"
FACTS = {"gpuUtilization": 0.5, "reporter": {"holder": "pod-1"}}


def state(name):
    return ObjectRef("stoker.dev", "NodeState", "", name, "v1alpha1")


def until(condition):
    """Wait for the server's own controllers; fails after 30 seconds."""
    end = time.perf_counter() + 30
    while not condition():
        assert time.perf_counter() < end, "the API server did not get there"
        SystemClock().wait(0.1)


@pytest.fixture(autouse=True)
def nobody_reported_yet(live_cluster):
    """A holder that another test left is stood back for, or taken for one's own."""
    for name in (OWN, OTHER):
        with suppress(NotFound, KindNotFound):
            uid = live_cluster.get(state(name))["metadata"]["uid"]
            live_cluster.delete(state(name), uid=uid)


@pytest.fixture(scope="module")
def kubeconfig(control_plane, live_transport, live_cluster, tmp_path_factory):
    """Of a reporter's pod on the node OWN: its account's token, bound to that pod."""
    for manifest in yaml.safe_load_all(reporter_manifests(ReporterInstall("example.invalid/s"))):
        if manifest["kind"] != "DaemonSet":
            live_cluster.apply(manifest, manager="stoker-install")
    live_cluster.forget_discovery()
    for name in (OWN, OTHER):
        create_node(live_cluster, node_manifest(name))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "reporter", "namespace": SPACE},
        "spec": {
            "serviceAccountName": SPACE,
            "nodeName": OWN,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532,
                                "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "reporter", "image": "example.invalid/s",
                            "securityContext": {"allowPrivilegeEscalation": False,
                                                "capabilities": {"drop": ["ALL"]}}}],
        },
    }  # fmt: skip
    until(lambda: _made(live_cluster, pod))
    token = _token(live_transport)
    text = yaml.safe_load(Path(control_plane.kubeconfig_path).read_text())
    text["users"][0]["user"] = {"token": token}
    path = tmp_path_factory.mktemp("reporter") / "kubeconfig"
    path.write_text(yaml.safe_dump(text))
    return path


def _made(cluster, pod):
    try:
        cluster.apply(pod, manager="test")
    except StokerError:
        return False
    return True


def _token(transport):
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "reporter"}},
    }
    answer = transport.send(
        Request(
            "POST",
            f"/api/v1/namespaces/{SPACE}/serviceaccounts/{SPACE}/token",
            body=json.dumps(body).encode(),
            content_type="application/json",
        )
    )
    return json.loads(answer.body)["status"]["token"]


@pytest.fixture(scope="module")
def reporter_cluster(kubeconfig):
    transport = HttpsTransport.from_kubeconfig(kubeconfig)
    client = Client(transport)
    until(lambda: _denied_elsewhere(client))
    yield client
    transport.close()


def _denied_elsewhere(client):
    """An admission policy takes a moment to be in force."""
    body = {"apiVersion": "stoker.dev/v1alpha1", "kind": "NodeState", "metadata": {"name": "probe"}}
    try:
        client.create(body, manager="test", dry_run=True)
    except (Forbidden, Invalid) as error:
        return "own node alone" in error.message
    except StokerError:
        return False
    return False


def test_its_token_names_its_node(reporter_cluster, live_cluster):
    node = live_cluster.get(ObjectRef("", "Node", "", OWN))

    assert bound_node(reporter_cluster) == (OWN, node["metadata"]["uid"])


def test_it_writes_its_own_nodes_state_and_nothing_else(reporter_cluster, live_cluster):
    uid = bound_node(reporter_cluster)[1]
    own = StateWriter(reporter_cluster, SystemClock(), OWN, "pod-1", uid)

    assert own.write(FACTS) is Written.WRITTEN
    assert live_cluster.get(state(OWN))["status"]["gpuUtilization"] == 0.5
    with pytest.raises((Forbidden, Invalid), match="own node alone"):
        StateWriter(reporter_cluster, SystemClock(), OTHER, "pod-1").write(FACTS)
    for refused in (
        lambda: reporter_cluster.delete(state(OWN)),
        lambda: reporter_cluster.list("stoker.dev", "NodeState"),
        lambda: reporter_cluster.list("", "Node"),
        lambda: reporter_cluster.list("", "Pod"),
        lambda: reporter_cluster.patch(state(OWN), "merge", {"spec": {}}, manager="x"),
    ):
        with pytest.raises(Forbidden):
            refused()


def test_a_state_that_exists_on_another_node_is_not_written_either(reporter_cluster, live_cluster):
    body = {"apiVersion": "stoker.dev/v1alpha1", "kind": "NodeState", "metadata": {"name": OTHER}}
    live_cluster.apply(body, manager="test")

    with pytest.raises((Forbidden, Invalid), match="own node alone"):
        StateWriter(reporter_cluster, SystemClock(), OTHER, "pod-1").write(FACTS)
    assert "status" not in live_cluster.get(state(OTHER))


def test_a_second_writer_loses_the_race_by_the_version(reporter_cluster, live_cluster):
    """The precondition in a merge patch of the status subresource."""
    first = StateWriter(reporter_cluster, SystemClock(), OWN, "pod-1")
    first.write(FACTS)
    live_cluster.patch(
        state(OWN), "merge", {"status": {"reporter": {"holder": "pod-2"}}},
        manager="test", subresource="status",
    )  # fmt: skip

    assert first.write({**FACTS, "gpuUtilization": 0.9}) is Written.STANDING_BACK
    live_cluster.patch(
        state(OWN), "merge", {"status": {"reporter": None}}, manager="test", subresource="status"
    )


def test_the_command_reports_and_ends_cleanly(kubeconfig, live_cluster, reporter_cluster):
    del reporter_cluster  # its policy is in force
    command = [
        sys.executable, "-m", "stoker", "reporter", "--node", OWN, "--cloud", "none",
        "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0", "--holder", "pod-1",
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        try:
            until(lambda: _holder(live_cluster) == "pod-1")
        finally:
            child.send_signal(signal.SIGTERM)
            _, narrated = child.communicate(timeout=30)

    assert child.returncode == 0, narrated
    assert _holder(live_cluster) == ""


def test_the_command_refuses_to_speak_for_another_node(kubeconfig):
    command = [sys.executable, "-m", "stoker", "reporter", "--node", OTHER, "--cloud", "none"]
    done = subprocess.run(
        [*command, "--kubeconfig", str(kubeconfig)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert f"{OTHER} is not {OWN}" in done.stderr


def _holder(cluster):
    try:
        status = cluster.get(state(OWN)).get("status") or {}
    except NotFound:
        return ""
    return (status.get("reporter") or {}).get("holder", "")

"""The real control plane and the rig around it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from stoker.clock import SystemClock
from stoker.engine import in_flight, serves_token
from stoker.errors import Stalled
from stoker.kube.client import Client
from stoker.kube.errors import Forbidden
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.controlplane import ControlPlane
from stoker.sim.controlplane_binary import Programs
from stoker.sim.dev_cluster import DevCluster
from stoker.sim.kubelet import Kubelet
from stoker.sim.kubelet_engines import Engines
from stoker.sim.nodes import create_node, node_manifest
from stoker.sim.start_times import StartTimes

pytestmark = pytest.mark.live

CLOCK = SystemClock()


def until(claim, what, seconds=30.0):
    deadline = CLOCK.monotonic() + seconds
    while True:
        found = claim()
        if found:
            return found
        assert CLOCK.monotonic() < deadline, f"it never happened: {what}"
        CLOCK.wait(0.1)


def model_deployment(name, image="registry.example/vllm:1", **container):
    engine = {
        "name": "engine",
        "image": image,
        "command": ["vllm", "serve"],
        "args": ["o/model-1b", "--served-model-name", "m", "--shutdown-timeout=5"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "startupProbe": {"exec": {"command": ["token"]}},
        **container,
    }
    labels = {names.SERVICE_LABEL: name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeSelector": {"pool": name}, "containers": [engine]},
            },
        },
    }


@pytest.fixture
def kubelet(live_cluster, live_transport):
    """A kubelet with real engines, running on its thread."""
    made = Kubelet(
        live_cluster,
        CLOCK,
        live_transport,
        engines=Engines(),
        times=StartTimes(init_seconds=1, capture_seconds=0),
        speed=20,
    )
    stop = threading.Event()
    thread = threading.Thread(target=made.run, args=(stop,), daemon=True)
    thread.start()
    yield made
    stop.set()
    thread.join(10)


def test_a_deployment_gets_ready_on_simulated_nodes(live_cluster, kubelet):
    """The real scheduler binds, the simulated kubelet starts real engines."""
    for number in (1, 2):
        create_node(live_cluster, node_manifest(f"ready-{number}", labels={"pool": "llm"}))
    live_cluster.apply(model_deployment("llm"), manager="test")
    ref = ObjectRef("apps", "Deployment", "default", "llm")

    def available():
        return (live_cluster.get(ref).get("status") or {}).get("availableReplicas") == 2

    until(available, "both replicas are available")
    label = f"{names.SERVICE_LABEL}=llm"
    pods = live_cluster.list("", "Pod", "default", label_selector=label).items
    addresses = [pod["metadata"]["annotations"][names.ADDRESS] for pod in pods]

    assert ["ready-1", "ready-2"] == sorted(pod["spec"]["nodeName"] for pod in pods)
    assert all(serves_token(address, 2.0).ok for address in addresses)
    assert [0, 0] == [in_flight(address, 2.0) for address in addresses]
    assert all(not pod["status"]["podIP"].startswith("127.") for pod in pods)

    live_cluster.patch(ref, "merge", {"spec": {"replicas": 0}}, manager="test")
    until(
        lambda: not live_cluster.list("", "Pod", "default", label_selector=label).items,
        "the pods are gone",
    )
    assert [None, None] == [in_flight(address, 0.3) for address in addresses]


def test_a_request_in_flight_survives_the_deletion_of_its_pod(live_cluster, kubelet):
    """SIGTERM with --shutdown-timeout refuses new requests and finishes old ones."""
    create_node(live_cluster, node_manifest("drain-1", labels={"pool": "drain"}))
    manifest = model_deployment("drain")
    manifest["spec"]["replicas"] = 1
    live_cluster.apply(manifest, manager="test")
    label = f"{names.SERVICE_LABEL}=drain"

    def ready_pod():
        pods = live_cluster.list("", "Pod", "default", label_selector=label).items
        return [p for p in pods if names.ADDRESS in (p["metadata"].get("annotations") or {})]

    pod = until(ready_pod, "the pod has an address")[0]
    address = pod["metadata"]["annotations"][names.ADDRESS]
    until(lambda: serves_token(address, 1.0).ok, "it serves")
    answers = []
    body = {"prompt": "x", "max_tokens": 100}
    caller = threading.Thread(
        target=lambda: answers.append(
            httpx.post(f"http://{address}/v1/completions", json=body, timeout=20).status_code
        )
    )
    caller.start()
    until(lambda: in_flight(address, 1.0), "it is in flight")
    live_cluster.delete(ObjectRef("apps", "Deployment", "default", "drain"))
    caller.join(20)

    assert [200] == answers
    until(
        lambda: not live_cluster.list("", "Pod", "default", label_selector=label).items,
        "the pod is gone",
    )


def test_the_certificate_is_verified_and_the_audit_log_written(control_plane, live_cluster):
    live_cluster.get(ObjectRef("", "Namespace", "", "default"))
    events = [json.loads(line) for line in control_plane.audit_log.read_text().splitlines()]

    assert any(e["objectRef"].get("name") == "default" for e in events if e.get("objectRef"))
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{control_plane.url}/readyz")


def test_a_service_account_has_no_rights_of_its_own(control_plane):
    """Benchmarks use it, since system:masters never meets priority and fairness."""
    transport = HttpsTransport.from_kubeconfig(control_plane.kubeconfig_for())
    with pytest.raises(Forbidden, match="system:serviceaccount:stoker-system:stoker"):
        Client(transport).list("", "Node")
    transport.close()


@pytest.fixture
def small(tmp_path, control_plane):
    """Only etcd and API server, as benchmarks start them; gives it before the start."""
    return ControlPlane(
        tmp_path, components=("etcd", "kube-apiserver"), programs=control_plane._programs
    )


def test_a_crashed_api_server_comes_back_with_its_objects(small):
    with small:
        transport = HttpsTransport.from_kubeconfig(small.kubeconfig_path)
        cluster = Client(transport)
        before = cluster.server().cluster_uid
        small.kill("kube-apiserver")
        small.restart("kube-apiserver")

        assert before == Client(transport).server().cluster_uid
        transport.close()


def test_nothing_is_left_behind(small, tmp_path):
    with small:
        pids = [child.pid for child in small._children.values()]
        assert small.kubeconfig_path.exists()

    assert [] == sorted(tmp_path.iterdir())
    assert [] == [pid for pid in pids if Path(f"/proc/{pid}").exists()]


OWNER = """
import subprocess, threading
from stoker.sim.child import die_with_parent
child = subprocess.Popen(["sleep", "60"], preexec_fn=die_with_parent)
print(child.pid, flush=True)
threading.Event().wait()
"""


def test_children_die_with_a_killed_owner():
    """A killed test run or demo leaves no control plane behind."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    child = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    owner.stdout.close()

    def ended():
        path = Path(f"/proc/{child}/stat")
        return not path.exists() or path.read_text().split()[2] == "Z"

    until(ended, "the child is dead", 5.0)


def test_a_component_that_cannot_start_is_told_with_its_words(tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    broken.chmod(0o755)
    programs = Programs(origin="test", program=broken)
    with pytest.raises(Stalled, match="ended at its start: no such luck"):
        ControlPlane(tmp_path / "state", programs=programs).start()


def stoker(*arguments, folder):
    command = [sys.executable, "-m", "stoker", "dev", "cluster", "--folder", str(folder)]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=90, check=True
    )


def test_a_cluster_in_the_background_stays_until_it_is_stopped(control_plane, tmp_path):
    """What `make cluster` does; starting it again finds the one that runs."""
    pools = ("--nodes", "2", "--pool", "h100=1x8:spot")
    try:
        started = stoker("--background", *pools, folder=tmp_path)
        again = stoker("--background", *pools, folder=tmp_path)
        transport = HttpsTransport.from_kubeconfig(started.stdout.strip())
        nodes = Client(transport).list("", "Node").items
        transport.close()
        gpus = {n["metadata"]["name"]: n["status"]["allocatable"]["nvidia.com/gpu"] for n in nodes}

        assert started.stdout == again.stdout
        assert {"gpu-1": "1", "gpu-2": "1", "h100-1": "8"} == gpus
    finally:
        stopped = stoker("--stop", folder=tmp_path)

    assert "stopped" in stopped.stderr
    assert "no cluster" in stoker("--stop", folder=tmp_path).stderr
    assert not DevCluster(tmp_path).kubeconfig_path.exists()

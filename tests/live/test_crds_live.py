"""The CRDs and mirrors on the real API server: what unit tests can only believe."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
import yaml

from stoker.clock import SystemClock
from stoker.errors import StokerError
from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects.health import health_of
from stoker.report import MirrorWriter, ReportInputs, report
from stoker.report.definitions import definition_manifests
from stoker.report.install import InstallSettings, install_manifests
from stoker.report.install_key import DeployKey
from unit.report.report_builders import (
    IDENTITY,
    QWEN,
    decision,
    desired,
    inputs,
    next_pass,
    plan,
    ready_on,
    service,
    snapshot,
)

pytestmark = pytest.mark.live

NAMESPACE = "crds-live"
SERVICE = ObjectRef("stoker.dev", "ModelService", NAMESPACE, "qwen-7b", "v1alpha1")
FLEET = ObjectRef("stoker.dev", "Fleet", NAMESPACE, "prod-eu", "v1alpha1")
SECONDS = 20


@pytest.fixture(scope="module")
def cluster(live_cluster: Client) -> Client:
    """The API server with our CRDs and a namespace."""
    for manifest in definition_manifests():
        live_cluster.apply(manifest, manager="stoker-install")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    live_cluster.apply(namespace, manager="stoker-install")
    for manifest in definition_manifests():
        name = manifest["metadata"]["name"]
        ref = ObjectRef("apiextensions.k8s.io", "CustomResourceDefinition", "", name)
        until(lambda r=ref: health_of(live_cluster.get(r)).reason == "Established")
    live_cluster.forget_discovery()
    until(lambda: bool(live_cluster.list("stoker.dev", "ModelService").resource_version))
    return live_cluster


def until(condition: Any) -> None:
    """Wait for the server's own controllers; fails after 20 seconds."""
    end = time.perf_counter() + SECONDS
    while True:
        try:
            if condition():
                return
        except StokerError:
            if time.perf_counter() > end:
                raise
        assert time.perf_counter() < end, "the API server did not get there"
        SystemClock().wait(0.05)


def a_pass(want: int = 4, ready: int = 4, **changes: Any) -> ReportInputs:
    ref = UnitRef("ModelService", NAMESPACE, "qwen-7b")
    settings: dict[str, Any] = {
        "identity": replace(IDENTITY, namespace=NAMESPACE),
        "desired": desired(service(ref, replicas=want)),
        "snapshot": snapshot(ready_on(ref, ready)),
        "plan": plan(decision(ref, want=want, ready=ready)),
        "changes": None,
        **changes,
    }
    return inputs(**settings)


@pytest.fixture
def writer(cluster: Client) -> MirrorWriter:
    return MirrorWriter(cluster, SystemClock(), "c0ffee01")


def columns(transport: HttpsTransport, plural: str) -> dict[str, Any]:
    """What `kubectl get` prints: names of the columns and the cells of the first row."""
    answer = transport.send(
        Request(
            "GET",
            f"/apis/stoker.dev/v1alpha1/namespaces/{NAMESPACE}/{plural}",
            accept="application/json;as=Table;g=meta.k8s.io;v=v1",
        )
    )
    table = json.loads(answer.body)
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


def scale(transport: HttpsTransport, method: str = "GET", count: int = 0) -> dict[str, Any]:
    path = f"/apis/stoker.dev/v1alpha1/namespaces/{NAMESPACE}/modelservices/qwen-7b/scale"
    body = json.dumps({"spec": {"replicas": count}}).encode() if method == "PATCH" else b""
    answer = transport.send(
        Request(method, path, body=body, content_type="application/merge-patch+json")
    )
    assert answer.status == 200, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


def test_mirrors_are_accepted_as_they_are_made(cluster, writer):
    done = writer.write(report(a_pass()))

    assert () == done.findings
    live = cluster.get(SERVICE)
    assert 4 == live["spec"]["replicas"]
    assert 4 == live["status"]["readyReplicas"]
    assert "ownerReferences" not in live["metadata"]
    assert "Fleet" == cluster.get(FLEET)["kind"]


def test_a_mirror_that_stands_is_recognised_after_a_restart(cluster, writer):
    writer.write(report(a_pass()))
    before = cluster.get(SERVICE)["metadata"]["resourceVersion"]
    done = MirrorWriter(cluster, SystemClock(), "c0ffee01").write(report(a_pass()))

    assert 0 == done.written
    assert before == cluster.get(SERVICE)["metadata"]["resourceVersion"]


def test_kubectl_shows_the_columns_of_the_published_layout(writer, live_transport):
    writer.write(report(a_pass(want=4, ready=3)))

    shown = columns(live_transport, "modelservices")
    assert ["Name", "Ready", "Warming", "Want", "Model", "Sync", "Health", "Reason"] == list(shown)
    assert (3, 0, 4, "bb46c15") == (shown["Ready"], shown["Warming"], shown["Want"], shown["Model"])
    fleet = columns(live_transport, "fleets")
    assert ["Name", "Sync", "Health", "Revision", "Ready", "Message"] == list(fleet)
    assert "main@9be0a17" == fleet["Revision"]


def test_an_autoscaler_can_read_and_write_the_count(cluster, writer, live_transport):
    writer.write(report(a_pass()))

    read = scale(live_transport)
    assert (4, 4) == (read["spec"]["replicas"], read["status"]["replicas"])
    assert "stoker.dev/service=qwen-7b" == read["status"]["selector"]
    scale(live_transport, "PATCH", 6)
    assert 6 == cluster.get(SERVICE)["spec"]["replicas"]
    writer.write(report(a_pass(want=5)))
    assert 5 == cluster.get(SERVICE)["spec"]["replicas"], "Git owns the count and takes it back"


def test_a_count_scaled_to_zero_by_its_owner_stays_zero(cluster, writer, live_transport):
    """ssa-facts 41: nobody owns it then, and a plain apply would silently restore it."""
    writer.write(report(a_pass(want=4)))
    scale(live_transport, "PATCH", 0)
    first = report(a_pass(want=4))
    external = replace(
        first,
        mirrors=tuple(
            replace(m, count_external=m.kind == "ModelService", digest=f"{m.digest}x")
            for m in first.mirrors
        ),
    )

    assert () == writer.write(external).findings
    assert 0 == cluster.get(SERVICE)["spec"]["replicas"]


def test_a_hand_applied_service_is_told_that_it_is_not_in_git(cluster, writer):
    """A whole file of the repository is accepted; nothing is done for it."""
    mine = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": "ModelService",
        "metadata": {"name": "mine", "namespace": NAMESPACE},
        "spec": {"replicas": 1, "gpu": {"count": 1}, "engine": {"type": "vllm"}},
    }
    cluster.create(mine, manager="kubectl-create")
    ref = replace(SERVICE, name="mine")
    writer.write(report(a_pass()))
    told = cluster.get(ref)
    cluster.delete(ref)

    assert "NotInGit" == told["status"]["conditions"][0]["reason"]
    assert {"count": 1} == told["spec"]["gpu"]


def test_deleting_a_mirror_deletes_nothing_else(cluster, writer):
    """No owner references: [tried] with them the workload is gone in half a second."""
    writer.write(report(a_pass()))
    workload = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "workload", "namespace": NAMESPACE},
    }
    cluster.apply(workload, manager="stoker-c0ffee01")
    cluster.delete(SERVICE)
    SystemClock().wait(1.0)

    assert cluster.get(ObjectRef("", "ConfigMap", NAMESPACE, "workload"))
    with pytest.raises(NotFound):
        cluster.get(SERVICE)


def test_the_mirror_of_a_service_that_left_git_is_removed(cluster, writer):
    first = report(a_pass())
    writer.write(first)
    gone = next_pass(a_pass(), first.memory, desired=desired(), plan=plan())
    done = writer.write(report(gone))

    assert () == done.findings
    with pytest.raises(NotFound):
        cluster.get(SERVICE)


def test_an_absent_namespace_is_waited_for(writer):
    ref = replace(QWEN, namespace="not-there-yet")
    now = a_pass(desired=desired(service(ref)), plan=plan(decision(ref)))

    assert () == writer.write(report(now)).findings


@pytest.mark.parametrize(
    "status",
    [
        {"notice": {"kind": "SpotNotice", "at": "2026-11-29T03:02:41Z"}},
        {"cache": [{"uri": "hf://a/b", "revision": "1", "complete": True, "bytes": 7}]},
        {"gpuUtilization": 0.5, "warmth": "Warm", "spot": {"isSpotInstance": True}},
    ],
    ids=["notice", "cache", "signals"],
)
def test_each_writer_of_a_node_state_may_send_its_part_alone(cluster, status):
    ref = ObjectRef("stoker.dev", "NodeState", "", "gpu-1.example.internal", "v1alpha1")
    body = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": "NodeState",
        "metadata": {"name": ref.name},
    }
    cluster.apply(body, manager="stoker-reporter")
    cluster.patch(ref, "merge", {"status": status}, manager="reporter", subresource="status")

    assert status.items() <= cluster.get(ref)["status"].items()


def test_the_output_of_install_is_accepted_whole(cluster):
    """A dry run of every object, as `kubectl apply` would send it."""
    settings = InstallSettings(
        image="registry.invalid/stoker@sha256:00",
        repo="git@forge.invalid:acme/fleet.git",
        fleet="clusters/prod-eu/fleet.yaml",
        namespace=NAMESPACE,
        namespaces=(NAMESPACE,),
        deploy_key=DeployKey("private", "public"),
    )
    objects = list(yaml.safe_load_all(install_manifests(settings)))

    for manifest in objects:
        assert cluster.apply(manifest, manager="kubectl", dry_run=True, force=True)
    assert 15 == len(objects)

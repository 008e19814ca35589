"""Health on the real API server: what it makes by itself, and a custom kind with a health file."""

from __future__ import annotations

import queue
import uuid
from typing import Any

import pytest

from stoker.cel import Cel
from stoker.clock import SystemClock
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.health_file import HealthCheck
from stoker.model.outcome import Health
from stoker.model.refs import ref_from_manifest
from stoker.objects.health import health_of
from stoker.objects.health_rules import HealthRules
from stoker.observe import ObjectEvent, Observer, WatchKey
from stoker.source import shipped_checks
from unit.observe.observe_builders import FLEET, marked

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]

SECONDS = 20.0
BY_THEMSELVES = (
    ("", "Namespace", "v1"),
    ("", "Service", "v1"),
    ("", "ConfigMap", "v1"),
    ("", "ServiceAccount", "v1"),
    ("apiregistration.k8s.io", "APIService", "v1"),
    ("rbac.authorization.k8s.io", "ClusterRole", "v1"),
    ("scheduling.k8s.io", "PriorityClass", "v1"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", "v1"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "v1"),
    ("networking.k8s.io", "ServiceCIDR", "v1"),
)
"""Kinds of which a new cluster has objects."""


@pytest.mark.parametrize(("group", "kind", "version"), BY_THEMSELVES, ids=lambda part: str(part))
def test_what_a_new_cluster_holds_is_healthy(live_cluster, group, kind, version):
    """A rule that calls the API server's own objects unwell would call everybody's so."""
    rules = HealthRules(Cel(), (), shipped_checks)
    found = live_cluster.list(group, kind, version=version).items
    api = f"{group}/{version}" if group else version

    verdicts = {
        item["metadata"]["name"]: health_of({**item, "apiVersion": api, "kind": kind}, rules)
        for item in found
        if not item["metadata"].get("deletionTimestamp")
    }

    assert verdicts
    assert {n: v for n, v in verdicts.items() if v.status is not Health.HEALTHY} == {}


@pytest.fixture
def widgets(live_cluster):
    """A custom kind with a status of its own; gives its group."""
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    body: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version],
        },
    }
    made = live_cluster.create(body, manager="test")
    clock = SystemClock()
    until = clock.monotonic() + SECONDS
    while health_of(made).reason != "Established" and clock.monotonic() < until:
        clock.wait(0.2)
        made = live_cluster.get(ref_from_manifest(body))
    live_cluster.forget_discovery()
    yield group
    live_cluster.delete(ref_from_manifest(body))


def test_a_status_that_only_a_health_file_reads_is_told_at_once(control_plane, widgets):
    """The watch delivers it; the event goes out because the file's verdict changed."""
    transport = HttpsTransport.from_kubeconfig(control_plane.kubeconfig_path)
    cluster = Client(transport)
    key = WatchKey(widgets, "Widget", "v1")
    check = HealthCheck(
        widgets, "Widget", "w.yaml", current="status.phase == 'Up'", failed="status.phase == 'Down'"
    )
    body: dict[str, Any] = {
        "apiVersion": f"{widgets}/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"a": 1},
    }
    ref = ref_from_manifest(body)
    cluster.apply(marked(body), manager=f"stoker-{FLEET}")
    events: queue.Queue[ObjectEvent] = queue.Queue()
    observer = Observer(cluster, SystemClock(), fleet_id=FLEET, on_event=events.put)
    observer.health_rules = HealthRules(Cel(), [check])
    observer.ensure([key])
    observer.start()

    def say(phase: str, **more: Any) -> None:
        status = {"status": {"phase": phase, **more}}
        cluster.patch(ref, "merge", status, manager="its-controller", subresource="status")

    say("Up")
    assert events.get(timeout=SECONDS).ref == ref
    say("Up", seen=12)
    say("Down")

    assert events.get(timeout=SECONDS).ref == ref
    live = observer.live().get(ref)
    assert live is not None
    assert health_of(live.body, observer.health_rules).status is Health.DEGRADED
    assert events.empty(), "a figure that changes no verdict woke nobody"
    transport.close()
    observer.stop(5)

"""Observe against the real API server: watches, lost rights, compacted versions, discovery."""

from __future__ import annotations

import queue
import threading
import uuid
from typing import Any

import pytest

from stoker.clock import SystemClock
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import UnitRef, ref_from_manifest
from stoker.objects import names
from stoker.objects.quantity import quantities_equal
from stoker.observe import ObjectEvent, Observer, WatchKey, observe
from stoker.observe.keys import CRDS, NODES, PODS
from unit.observe.observe_builders import LLAMA, desired, marked

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]

Manifest = dict[str, Any]
FLEET = "0a1b2c3d"
MANAGER = names.manager_of(FLEET)
SECONDS = 20.0
"""How long anything may take on a machine that builds beside it."""


@pytest.fixture
def cluster(control_plane):
    """A connection of its own: closing it ends this test's watches."""
    transport = HttpsTransport.from_kubeconfig(control_plane.kubeconfig_path)
    yield Client(transport)
    transport.close()


@pytest.fixture
def namespace(live_cluster):
    name = f"observe-{uuid.uuid4().hex[:8]}"
    body: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    live_cluster.create(body, manager="test")
    yield name
    live_cluster.delete(ref_from_manifest(body))


@pytest.fixture
def watching(cluster):
    """Make an observer with threads; gives it and the queue of its events."""
    made = []

    def start(*keys):
        events: queue.Queue[ObjectEvent] = queue.Queue()
        observer = Observer(cluster, SystemClock(), fleet_id=FLEET, on_event=events.put)
        observer.ensure(keys)
        observer.start()
        made.append(observer)
        return observer, events

    yield start
    cluster.close()
    for observer in made:
        observer.stop(5)


@pytest.fixture
def definition(live_cluster):
    """The definition of a cluster-scoped kind of this test's own, not yet created."""
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    body: Manifest = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "versions": [version],
        },
    }
    yield body
    live_cluster.delete(ref_from_manifest(body))


def config(namespace, name="a", **data):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(namespace, replicas):
    ref = UnitRef("ModelService", namespace, "llama")
    labels = {names.SERVICE_LABEL: "llama", names.PLACEMENT_LABEL: "x-1"}
    metadata = {"name": "llama-x", "namespace": namespace, "labels": labels}
    template = {
        "metadata": {"labels": {**labels, names.TRAFFIC_LABEL: "true"}},
        "spec": {"containers": [{"name": "engine", "image": "registry.invalid/engine:1"}]},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {names.PLACEMENT_LABEL: "x-1"}},
            "template": template,
        },
    }
    return marked(body, ref), ref


def wait_for(condition):
    clock = SystemClock()
    due = clock.monotonic() + SECONDS
    while not condition():
        assert clock.monotonic() < due, "it did not happen in time"
        clock.wait(0.05)


def test_a_snapshot_shows_what_really_stands(cluster, namespace):
    body, ref = deployment(namespace, 1)
    cluster.apply(body, manager=MANAGER)
    observer = Observer(cluster, SystemClock(), fleet_id=FLEET)
    unit = desired().units[0]
    wanted = desired(type(unit)(ref, unit.spec, unit.location, unit.digest))

    def pods():
        observer.refresh()
        service = observe(observer, wanted, 0).snapshot.service(ref)
        return [pod for place in service.placements for pod in place.pods]

    wait_for(pods)
    seen = observe(observer, wanted, 0)

    live = seen.live.get(ref_from_manifest(body))
    assert seen.snapshot.unknown == ()
    assert seen.snapshot.cluster_uid == cluster.server().cluster_uid
    assert live is not None
    assert any(entry["manager"] == MANAGER for entry in live.body["metadata"]["managedFields"])
    assert seen.live.namespace_phase(namespace) == "Active"
    assert ref_from_manifest(body) in {found.ref for found in seen.live.owned(FLEET)}


def test_changes_arrive_and_own_writes_are_seen_without_waiting(watching, live_cluster, namespace):
    key = WatchKey("", "ConfigMap", "v1", namespace)
    observer, events = watching(key)
    written = live_cluster.apply(marked(config(namespace, k="1")), manager=MANAGER)

    observer.fold(written)
    at_once = observer.live().get(ref_from_manifest(written))
    live_cluster.apply(marked(config(namespace, k="2")), manager=MANAGER)
    told = events.get(timeout=SECONDS)
    while told.ref.name == "kube-root-ca.crt":  # the server puts it into a new namespace, late
        told = events.get(timeout=SECONDS)

    assert at_once is not None
    assert at_once.body["data"] == {"k": "1"}
    assert (told.ref.name, told.unit) == ("a", LLAMA)
    wait_for(lambda: observer.live().get(told.ref).body["data"] == {"k": "2"})


def test_deletes_arrive_and_settle_the_object(watching, live_cluster, namespace):
    stored = live_cluster.apply(marked(config(namespace, k="1")), manager=MANAGER)
    observer, _ = watching(WatchKey("", "ConfigMap", "v1", namespace))
    ref = ref_from_manifest(stored)
    live_cluster.delete(ref)

    observer.fold_deleted(ref, stored["metadata"]["uid"])

    wait_for(lambda: observer.live().known(ref) and observer.live().get(ref) is None)


def test_a_version_too_old_to_watch_from_is_healed_by_one_list(cluster, definition):
    """reliability-security c.2 row 24: a real 410, for the kind is younger than version 1."""
    key = WatchKey(definition["spec"]["group"], "Gadget", "v1")
    cluster.create(definition, manager="test")
    observer = Observer(cluster, SystemClock(), fleet_id=FLEET)
    reflector = observer._add(key)
    wait_for(lambda: reflector.relist() is not None)
    gadget = {"apiVersion": f"{key.group}/v1", "kind": "Gadget", "metadata": {"name": "late"}}
    cluster.create(gadget, manager="test")
    reflector._position = "1"

    reflector.step()
    listing = reflector._must_list
    reflector.step()

    assert listing
    assert observer.live().get(key.ref("", "late")) is not None


def test_closing_the_connection_ends_quiet_watches_at_once(control_plane):
    transport = HttpsTransport.from_kubeconfig(control_plane.kubeconfig_path)
    observer = Observer(Client(transport), SystemClock(), fleet_id=FLEET)
    observer.ensure([CRDS])
    observer.start()
    threads = list(observer._threads.values())
    wait_for(lambda: transport._open)

    transport.close()
    observer.stop(5)

    assert not any(thread.is_alive() for thread in threads)


def test_without_rights_everything_is_unknown_and_rights_heal_it(control_plane, live_cluster):
    """reliability-security c.2 row 53, with a real service account."""
    transport = HttpsTransport.from_kubeconfig(control_plane.kubeconfig_for())
    observer = Observer(Client(transport), SystemClock(), fleet_id=FLEET)
    observer.ensure([NODES, PODS])
    before = [status.why_unknown.partition(":")[0] for status in observer.status()]
    name = f"observe-{uuid.uuid4().hex[:8]}"
    rule = {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}
    role: Manifest = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": [rule]}  # fmt: skip
    binding: Manifest = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": "stoker-system", "name": "stoker"}],
    }
    for body in (role, binding):
        live_cluster.create(body, manager="test")

    def healed():
        observer.refresh()
        return not any(status.why_unknown for status in observer.status())

    wait_for(healed)
    for body in (binding, role):
        live_cluster.delete(ref_from_manifest(body))
    transport.close()

    assert before == ["forbidden", "forbidden"]


def test_a_kind_is_watched_soon_after_its_definition_comes(watching, live_cluster, definition):
    """Design section 6: a unit that needs an absent kind wakes on its event."""
    key = WatchKey(definition["spec"]["group"], "Gadget", "v1")
    observer, _ = watching(CRDS, key)
    ref = key.ref("", "one")
    before = observer.live().why_unknown(ref)

    live_cluster.create(definition, manager="test")
    wait_for(lambda: observer.live().known(ref))

    after = observer.live()
    assert before == "no such kind"
    assert after.has_kind(ref)
    assert not after.is_namespaced(ref)


def test_many_threads_share_the_connections(live_cluster, control_plane, namespace):
    transport = HttpsTransport.from_kubeconfig(control_plane.kubeconfig_path)
    client = Client(transport)
    failures = []

    def work(number):
        try:
            for round_ in range(10):
                body = config(namespace, f"m{number}", k=str(round_))
                client.apply(body, manager=MANAGER)
                client.get(ref_from_manifest(body))
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    page = client.list("", "ConfigMap", namespace)
    transport.close()

    assert failures == []
    ours = [item for item in page.items if item["metadata"]["name"].startswith("m")]
    assert {item["data"]["k"] for item in ours} == {"9"}


def test_quantities_mean_what_the_server_takes_them_for(live_cluster, namespace):
    asked = {"requests.cpu": "1.5", "requests.memory": "1.5Gi", "pods": "1e1", "services": "2k"}
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": namespace},
        "spec": {"hard": asked},
    }

    stored = live_cluster.create(body, manager="test")["spec"]["hard"]

    assert stored != asked
    assert all(quantities_equal(asked[name], stored[name]) for name in asked)

"""Engines found by their pods: those of this node, in named namespaces, and unknown is not none."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.kube.client import Client
from stoker.node.engine_pods import MOST, EnginePods, FoundEngines
from stoker.node.notice import NodeNotice, NoticeKind, Told
from stoker.sim.engine import Engine
from unit.node.reporter_builders import NODE, Cloud, World
from unit.node.test_reporter import generate, reporter

NOTICE = NodeNotice(NoticeKind.SPOT, "azure", "id-1", 1, 2)


@pytest.fixture
def world():
    made = World()
    for name in ("llm", "other"):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        made.cluster.create(space, manager="test")
    return made


def a_pod(world, name="p", *, node=NODE, namespace="llm", phase="Running", ip="10.0.0.1",
          service="qwen", ports: Any = None, address=""):  # fmt: skip
    container: dict[str, Any] = {"name": "engine", "image": "i"}
    if ports is not None:
        container["ports"] = ports
    labels = {"stoker.dev/service": service} if service else {}
    annotations = {"stoker.dev/address": address} if address else {}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels, "annotations": annotations
        },
        "spec": {"nodeName": node, "containers": [container]},
    }  # fmt: skip
    made = world.cluster.create(body, manager="test")
    status = {"phase": phase, **({"podIP": ip} if ip else {})}
    patched = {**made, "status": status}
    world.cluster.apply(
        {k: patched[k] for k in ("apiVersion", "kind", "status")}
        | {"metadata": {"name": name, "namespace": namespace}},
        manager="kubelet",
        subresource="status",
    )


def found(world, *namespaces):
    return EnginePods(world.cluster, NODE, namespaces or ("llm",)).find()


def test_running_pods_of_services_on_this_node_are_engines(world):
    a_pod(world, "here")
    a_pod(world, "elsewhere", node="another", ip="10.0.0.2")
    a_pod(world, "stranger", service="", ip="10.0.0.3")
    a_pod(world, "pending", phase="Pending", ip="10.0.0.4")
    a_pod(world, "ended", phase="Succeeded", ip="10.0.0.5")
    a_pod(world, "no-address", ip="")
    a_pod(world, "not-named", namespace="other", ip="10.0.0.6")

    assert FoundEngines(("10.0.0.1:8000",)) == found(world)
    assert ("10.0.0.1:8000", "10.0.0.6:8000") == found(world, "llm", "other").addresses


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"ip": "fd00::1"}, "[fd00::1]:8000"),
        ({"ports": [{"containerPort": 9}, {"name": "http", "containerPort": 81}]}, "10.0.0.1:81"),
        ({"ports": [{"containerPort": 9}]}, "10.0.0.1:9"),
        ({"address": "127.0.0.1:4567"}, "127.0.0.1:4567"),
    ],
)
def test_an_address_is_that_of_the_engines_port(world, fields, address):
    a_pod(world, **fields)

    assert (address,) == found(world).addresses


def test_only_this_node_and_our_label_are_asked_for(world):
    """Least privilege: the right is a namespace's, the question is the node's."""
    asked = []

    class Lister:
        def list(self, group, kind, namespace="", *, label_selector, field_selector):
            asked.append((kind, namespace, label_selector, field_selector))
            return world.cluster.list(group, kind, namespace)

    EnginePods(Lister(), NODE, ("llm",)).find()

    assert [("Pod", "llm", "stoker.dev/service", f"spec.nodeName={NODE}")] == asked


def test_pods_that_cannot_be_listed_are_unknown_engines(world):
    a_pod(world)
    world.wire.cut = True

    answer = found(world)

    assert () == answer.addresses
    assert answer.why.startswith("pods of llm: ")


def test_more_engines_than_a_node_has_are_unknown(world):
    for number in range(MOST + 1):
        a_pod(world, f"p{number}", ip=f"10.0.1.{number}")

    assert f"{MOST + 1} engines" in found(world).why


def test_what_engines_do_reaches_the_node_state_without_their_addresses(world):
    with Engine() as engine:
        a_pod(world, address=engine.address)
        working = reporter(world, pods=EnginePods(world.cluster, NODE, ("llm",)))
        working.round()
        generate(engine, 8)
        world.clock.advance(15_000)
        working.round()

    assert 0 == world.status()["requestsRunning"]
    assert "answered" == working.parts()[1]["engines"]


def test_a_round_without_the_list_measures_nothing_and_says_why(world):
    class Refusing:
        def list(self, *_arguments, **_options):
            world.wire.cut = True
            try:
                return Client(world.wire).list("", "Pod", "llm")
            finally:
                world.wire.cut = False

    working = reporter(world, pods=EnginePods(Refusing(), NODE, ("llm",)))
    working.round()

    assert "requestsRunning" not in world.status()
    assert "pods" in working.parts()[1]["engines"]


def test_a_cloud_is_told_to_go_on_once_pods_that_ran_here_are_gone(world):
    """And not while it is unknown whether they are."""
    cloud = Cloud(Told(NOTICE))
    pods = EnginePods(world.cluster, NODE, ("llm",))
    with Engine() as engine:
        a_pod(world, address=engine.address)
        working = reporter(world, cloud=cloud, pods=pods)
        working.notices.look()
        working.round()
        assert [] == cloud.acknowledged
    world.cluster.delete(
        next(_ref(pod) for pod in world.cluster.list("", "Pod", "llm").items),
        uid=world.cluster.list("", "Pod", "llm").items[0]["metadata"]["uid"],
        propagation="Background",
    )
    working.round()

    assert [NOTICE] == cloud.acknowledged


def _ref(pod):
    from stoker.model.refs import ref_from_manifest

    return ref_from_manifest(pod)

"""kube.client over both servers: the port that all stages use, request by request."""

from __future__ import annotations

import pytest

from contract.api import BAD_UID
from stoker.kube.client import Client
from stoker.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    KindNotFound,
    NotFound,
)
from stoker.model.refs import ObjectRef


@pytest.fixture
def client(server):
    return Client(server.transport)


@pytest.fixture
def config_map(server):
    """A ConfigMap of the test's namespace, as a function of its data."""

    def made(name="c", **data):
        metadata = {"name": name, "namespace": server.ns}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    return made


@pytest.fixture
def ref(server):
    return ObjectRef("", "ConfigMap", server.ns, "c")


def test_who_the_server_is(client, server):
    info = client.server()

    assert info.version == "v1.37.2"
    assert info.cluster_uid == server.get("Namespace", "kube-system").uid


@pytest.mark.parametrize(
    ("group", "kind", "plural", "namespaced"),
    [
        ("", "ConfigMap", "configmaps", True),
        ("", "Node", "nodes", False),
        ("apps", "Deployment", "deployments", True),
        ("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True),
        ("stoker.dev", "Gizmo", "gizmos", True),
    ],
)
def test_discovery(client, group, kind, plural, namespaced):
    found = client.resource(group, kind)

    assert (found.plural, found.namespaced) == (plural, namespaced)


@pytest.mark.parametrize(
    ("group", "kind", "version"),
    [
        ("nope.dev", "X", ""),
        ("nope.dev", "X", "v1"),
        ("apps", "X", ""),
        ("apps", "Deployment", "v9"),
    ],
)
def test_kinds_that_are_not_served(client, group, kind, version):
    with pytest.raises(KindNotFound):
        client.resource(group, kind, version)


def test_the_life_of_an_object(client, config_map, ref):
    made = client.apply(config_map(a="1"), manager="stoker")
    assert client.get(ref) == made
    with pytest.raises(AlreadyExists):
        client.create(config_map(a="1"), manager="stoker")
    patched = client.patch(ref, "merge", {"data": {"b": "1"}}, manager="ed")
    assert client.update({**patched, "data": {"c": "1"}}, manager="ed")["data"] == {"c": "1"}

    with pytest.raises(Conflict):
        client.delete(ref, uid=BAD_UID)
    client.delete(ref, uid=made["metadata"]["uid"], dry_run=True)
    assert client.get(ref)["metadata"]["uid"] == made["metadata"]["uid"]
    client.delete(ref, uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        client.get(ref)
    with pytest.raises(NotFound):
        client.delete(ref)


def test_the_three_meanings_of_conflict(client, config_map):
    client.apply(config_map(a="1"), manager="a")
    with pytest.raises(Conflict) as field:
        client.apply(config_map(a="2"), manager="b")
    assert field.value.is_field_conflict

    stale = config_map(a="1")
    stale["metadata"]["resourceVersion"] = "1"
    absent = config_map("d", a="1")
    absent["metadata"]["uid"] = BAD_UID
    for body in (stale, absent):
        with pytest.raises(Conflict) as other:
            client.apply(body, manager="a")
        assert not other.value.is_field_conflict


def test_bad_input_is_told_from_faults(client, config_map):
    with pytest.raises(Invalid, match="field not declared in schema"):
        client.apply({**config_map(a="1"), "nope": 1}, manager="a")
    with pytest.raises(Invalid):
        client.apply(config_map("Bad_Name"), manager="a")


def test_a_dying_namespace_is_forbidden(client, config_map, server):
    client.delete(ObjectRef("", "Namespace", "", server.ns))

    with pytest.raises(Forbidden) as refused:
        client.apply(config_map(a="1"), manager="a")
    assert refused.value.is_terminating_namespace


def test_lists_and_watches(client, config_map, server):
    client.apply(config_map("a"), manager="a")
    page = client.list("", "ConfigMap", server.ns)
    assert [(i["kind"], i["metadata"]["name"]) for i in page.items] == [("ConfigMap", "a")]
    (bare,) = client.list("", "ConfigMap", server.ns, metadata_only=True).items
    assert "data" not in bare

    changed = client.apply(config_map("b"), manager="a")
    events = list(
        client.watch(
            "",
            "ConfigMap",
            server.ns,
            resource_version=page.resource_version,
            timeout_seconds=1,
        )
    )
    assert [(e.type, e.object) for e in events if e.type != "BOOKMARK"] == [("ADDED", changed)]

"""Which kinds are served: all at once where the server can, else group by group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from stoker.kube.client import Client
from stoker.kube.errors import KindNotFound, ServerFailure
from stoker.kube.memory import MemoryServer
from stoker.kube.requests import ACCEPT_DISCOVERY
from stoker.kube.transport import Request, Response
from stoker.sim.clock import VirtualClock

GIZMOS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gizmos.stoker.dev"},
    "spec": {
        "group": "stoker.dev",
        "names": {"kind": "Gizmo", "plural": "gizmos"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


@pytest.fixture
def server():
    return MemoryServer(VirtualClock())


@pytest.fixture
def client(server):
    return Client(server, user_agent="stoker/test")


class Documents:
    """A transport that answers by path; the rest is not there. `asked` lists the paths."""

    url = "https://127.0.0.1:1"

    def __init__(self, documents: dict[str, Any], **refused: int) -> None:
        self.documents = documents
        self.refused = {f"/{path}": code for path, code in refused.items()}
        self.asked: list[str] = []

    def send(self, request: Request) -> Response:
        self.asked.append(request.path)
        headers = (("content-type", "application/json"),)
        if request.accept == ACCEPT_DISCOVERY and request.path in self.refused:
            return Response(self.refused[request.path], b'{"kind": "Status"}', headers)
        if request.path not in self.documents:
            return Response(404, b"404 page not found", (("content-type", "text/plain"),))
        return Response(200, json.dumps(self.documents[request.path]).encode(), headers)

    def stream(self, request: Request) -> Iterator[bytes]:
        raise AssertionError(f"{request.path}: discovery watches nothing")

    def close(self) -> None:
        self.documents.clear()


def a_root(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": list(groups)}


def a_group(name: str, **versions: Any) -> dict[str, Any]:
    """A group of an aggregated answer: version -> its resources, or None for a Stale one."""
    told = [
        {
            "version": version,
            "resources": resources or [],
            "freshness": "Current" if resources is not None else "Stale",
        }
        for version, resources in versions.items()
    ]
    return {"metadata": {"name": name}, "versions": told}


def told(plural: str, kind: str, *below: str) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"kind": kind},
        "scope": "Namespaced",
        "subresources": [{"subresource": name} for name in below],
    }


def listed(plural: str, kind: str) -> dict[str, Any]:
    return {"resources": [{"name": plural, "kind": kind, "namespaced": True}]}


def a_list_of_groups(name: str, *versions: str) -> dict[str, Any]:
    given = [{"version": version} for version in versions]
    return {"groups": [{"name": name, "preferredVersion": given[0], "versions": given}]}


def test_all_kinds_are_read_at_once(client, server):
    """One request for /api and one for /apis, however many groups are asked about."""
    for group, kind in (
        ("", "ConfigMap"),
        ("", "Node"),
        ("apps", "Deployment"),
        ("batch", "Job"),
        ("autoscaling", "HorizontalPodAutoscaler"),
    ):
        client.resource(group, kind)

    assert ["/api", "/apis"] == [entry.path for entry in server.audit]


def test_kinds_are_read_again_after_forgetting(client, server):
    client.resource("apps", "Deployment")
    client.forget_discovery()
    client.resource("apps", "Deployment")

    assert ["/apis", "/apis"] == [entry.path for entry in server.audit]


def test_what_one_client_discovers_another_learns(client, server):
    """The lease has a connection of its own; kinds are read once for both."""
    client.resource("", "Namespace")
    other = Client(server)
    other.learn(client)
    for one in (client, other):
        assert "deployments" == one.resource("apps", "Deployment").plural
        assert "pods" == one.resource("", "Pod").plural

    assert ["/api", "/apis"] == [entry.path for entry in server.audit]


def test_a_resource_has_its_plural_scope_and_subresources(client):
    found = client.resource("apps", "Deployment")

    assert ("deployments", "v1", True) == (found.plural, found.version, found.namespaced)
    assert ("scale", "status") == found.subresources
    assert not client.resource("", "Node").namespaced


@pytest.mark.parametrize(
    ("group", "kind", "version"),
    [
        ("nope.dev", "X", ""),
        ("nope.dev", "X", "v1"),
        ("apps", "X", ""),
        ("apps", "Deployment", "v9"),
        ("", "X", ""),
    ],
)
def test_a_kind_that_is_not_served_is_kind_not_found(client, group, kind, version):
    with pytest.raises(KindNotFound):
        client.resource(group, kind, version)


@pytest.mark.parametrize("version", ["", "v1"])
def test_a_missing_kind_is_asked_for_again(client, version):
    """A CRD may have come since: absence is never cached (reliability-security c.2 row 37)."""
    with pytest.raises(KindNotFound):
        client.resource("stoker.dev", "Gizmo", version)
    client.apply(GIZMOS, manager="stoker")

    assert "gizmos" == client.resource("stoker.dev", "Gizmo", version).plural


def test_the_first_version_of_a_group_is_the_preferred_one():
    group = a_group("a.dev", v1=[told("news", "New")], v1beta1=[told("olds", "Old", "status")])
    transport = Documents({"/apis": a_root(group), "/apis/a.dev/v1": listed("news", "New")})
    client = Client(transport)

    assert "v1" == client.resource("a.dev", "New").version
    found = client.resource("a.dev", "Old")
    assert ("v1beta1", "olds", ("status",)) == (found.version, found.plural, found.subresources)


def test_a_resource_without_a_kind_has_no_objects():
    """The server lists parents of subresources that it does not serve themselves."""
    bare = {"resource": "reviews", "scope": "Namespaced", "subresources": []}
    group = a_group("a.dev", v1=[bare, told("news", "New")])
    client = Client(Documents({"/apis": a_root(group)}))

    assert "news" == client.resource("a.dev", "New").plural


def test_stale_discovery_proves_no_absence():
    """An extension server that does not answer is asked itself, and its error is told."""
    transport = Documents({"/apis": a_root(a_group("a.dev", v1=None))})
    client = Client(transport)
    transport.documents["/apis/a.dev/v1"] = listed("news", "New")

    assert "news" == client.resource("a.dev", "New").plural
    assert ["/apis", "/apis/a.dev/v1"] == transport.asked


def test_a_server_without_aggregated_discovery_is_asked_group_by_group():
    """Before 1.30 the same request is answered with the groups alone."""
    transport = Documents(
        {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/api/v1": listed("configmaps", "ConfigMap"),
            "/apis": a_list_of_groups("a.dev", "v1", "v1beta1"),
            "/apis/a.dev/v1": {"resources": []},
            "/apis/a.dev/v1beta1": listed("olds", "Old"),
        }
    )
    client = Client(transport)

    assert "configmaps" == client.resource("", "ConfigMap").plural
    assert "v1beta1" == client.resource("a.dev", "Old").version
    asked = ["/api", "/api/v1", "/apis", "/apis/a.dev/v1", "/apis/a.dev/v1beta1"]
    assert asked == transport.asked
    client.resource("a.dev", "Old", "v1beta1")
    assert asked == transport.asked


@pytest.mark.parametrize("code", [403, 404, 406])
def test_a_refused_root_leaves_the_groups_to_be_asked(code):
    """Rights or a proxy may keep the one answer back and let the single ones through."""
    transport = Documents(
        {"/apis": a_list_of_groups("a.dev", "v1"), "/apis/a.dev/v1": listed("news", "New")},
        apis=code,
    )

    assert "news" == Client(transport).resource("a.dev", "New").plural


@pytest.mark.parametrize("group", ["", "apps"])
def test_discovery_that_fails_proves_no_absence(group):
    """Unknown is not empty, and the next call asks again."""
    root = "apis" if group else "api"
    transport = Documents({}, **{root: 503})
    client = Client(transport)

    for _ in range(2):
        with pytest.raises(ServerFailure):
            client.resource(group, "X")
    assert [f"/{root}"] * 2 == transport.asked

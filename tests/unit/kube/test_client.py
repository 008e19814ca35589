"""The Cluster port over a transport: paths, paging, preconditions, errors of the tree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.errors import Unreachable
from stoker.kube.answers import StreamRefused
from stoker.kube.client import PAGE_SIZE, Client
from stoker.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerFailure,
    TooManyRequests,
)
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Request, Response
from stoker.model.refs import ObjectRef
from stoker.sim.clock import VirtualClock

JSON = (("content-type", "application/json"),)
CM = ObjectRef("", "ConfigMap", "default", "c")
DEPLOYMENT = ObjectRef("apps", "Deployment", "default", "d")


def config_map(**data):
    metadata = {"name": "c", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(replicas=1):
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "x:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    metadata = {"name": "d", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


@pytest.fixture
def server():
    return MemoryServer(VirtualClock())


@pytest.fixture
def client(server):
    return Client(server, user_agent="stoker/test")


class Scripted:
    """A transport that gives prepared answers and remembers what it was asked."""

    url = "https://127.0.0.1:1"

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    def send(self, request: Request) -> Response:
        self.requests.append(request)
        return self.answers.pop(0)

    def stream(self, request: Request) -> Any:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if answer.status != 200:
            raise StreamRefused(answer)
        yield from answer.body.splitlines()

    def close(self) -> None:
        self.answers.clear()


KINDS = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "configmaps",
                            "responseKind": {"kind": "ConfigMap"},
                            "scope": "Namespaced",
                        }
                    ],
                }
            ],
        }
    ],
}
"""All kinds of a small server: aggregated discovery of /api."""


def answer(status: int, body: Any, headers: tuple[tuple[str, str], ...] = JSON) -> Response:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, raw, headers)


def scripted(*answers: Response) -> tuple[Scripted, Client]:
    transport = Scripted(answer(200, KINDS), *answers)
    return transport, Client(transport)


# --------------------------------------------------------------------------- server


def test_the_server_is_known_by_version_and_the_uid_of_kube_system(client, server):
    info = client.server()
    uid = client.get(ObjectRef("", "Namespace", "", "kube-system"))["metadata"]["uid"]

    assert (info.version, info.cluster_uid, info.url) == ("v1.37.2", uid, "memory://cluster")
    before = len(server.audit)
    assert client.server() is info
    assert len(server.audit) == before


# -------------------------------------------------------------------------- writing


def test_an_unforced_apply_says_so(client, server):
    """Audit logs count applies by the parameter `force`."""
    client.apply(config_map(a="1"), manager="stoker-1")
    client.apply(config_map(a="1"), manager="stoker-1", force=True, dry_run=True)

    first, second = server.audit[-2:]
    assert first.query == (("fieldManager", "stoker-1"), ("force", "false"))
    assert second.query[1:] == (("force", "true"), ("dryRun", "All"))
    assert (first.method, first.user_agent) == ("PATCH", "stoker/test")


def test_objects_come_back_as_stored(client):
    applied = client.apply(config_map(a="1"), manager="stoker")
    assert client.get(CM) == applied

    patched = client.patch(CM, "merge", {"data": {"b": "1"}}, manager="ed")
    assert patched["data"] == {"a": "1", "b": "1"}
    replaced = client.update({**patched, "data": {"c": "1"}}, manager="ed")
    assert replaced["data"] == {"c": "1"}
    client.delete(CM)
    with pytest.raises(NotFound):
        client.get(CM)


def test_a_dry_run_changes_nothing(client):
    shown = client.create(config_map(a="1"), manager="stoker", dry_run=True)
    assert shown["data"] == {"a": "1"}
    with pytest.raises(NotFound):
        client.get(CM)

    client.create(config_map(a="1"), manager="stoker")
    client.delete(CM, dry_run=True)
    assert client.patch(CM, "merge", {"data": {"a": "2"}}, manager="ed", dry_run=True)
    assert client.get(CM)["data"] == {"a": "1"}


def test_a_dry_run_of_a_delete_stands_in_the_body():
    """Beside a body the real server ignores the query and deletes (seen 2026-11-29)."""
    transport, client = scripted(answer(200, {"kind": "Status"}))
    client.delete(CM, dry_run=True, uid="u")

    sent = transport.requests[-1]
    assert sent.query == ()
    assert json.loads(sent.body)["dryRun"] == ["All"]


def test_scale_and_status_are_subresources(client):
    client.apply(deployment(2), manager="stoker")
    scale = client.get(DEPLOYMENT, subresource="scale")
    assert scale["spec"] == {"replicas": 2}

    body = {"spec": {"replicas": 5}, "metadata": {"uid": scale["metadata"]["uid"]}}
    assert client.patch(DEPLOYMENT, "merge", body, manager="s", subresource="scale")
    status = {**client.get(DEPLOYMENT), "status": {"replicas": 5}}
    client.update(status, manager="s", subresource="status")
    live = client.get(DEPLOYMENT)
    assert (live["spec"]["replicas"], live["status"]["replicas"]) == (5, 5)
    applied = {**deployment(), "status": {"readyReplicas": 1}}
    client.apply(applied, manager="t", subresource="status")
    assert client.get(DEPLOYMENT)["status"]["readyReplicas"] == 1


def test_preconditions_of_a_delete(client):
    live = client.apply(config_map(a="1"), manager="stoker")
    with pytest.raises(Conflict) as wrong:
        client.delete(CM, uid="00000000-0000-0000-0000-000000000000")
    assert not wrong.value.is_field_conflict
    with pytest.raises(Conflict):
        client.delete(CM, resource_version="1")

    metadata = live["metadata"]
    client.delete(CM, uid=metadata["uid"], resource_version=metadata["resourceVersion"])
    with pytest.raises(NotFound):
        client.delete(CM)


def test_propagation_is_passed_on(client):
    client.apply(deployment(), manager="stoker")
    client.delete(DEPLOYMENT, propagation="Foreground")

    assert client.get(DEPLOYMENT)["metadata"]["finalizers"] == ["foregroundDeletion"]


# --------------------------------------------------------------------------- errors


def test_a_field_conflict_is_told_from_the_others(client):
    client.apply(config_map(a="1"), manager="a")
    with pytest.raises(Conflict) as refused:
        client.apply(config_map(a="2"), manager="b")

    assert refused.value.is_field_conflict
    assert [cause.field for cause in refused.value.status.causes] == [".data.a"]
    stale = config_map(a="1")
    stale["metadata"]["resourceVersion"] = "1"
    with pytest.raises(Conflict) as stale_one:
        client.apply(stale, manager="a")
    assert not stale_one.value.is_field_conflict


def test_bad_input_is_invalid_whatever_its_status(client):
    """The server answers 500 to unknown fields of an apply: no fault to retry."""
    with pytest.raises(Invalid, match="field not declared in schema"):
        client.apply({**config_map(a="1"), "nope": 1}, manager="a")
    long = config_map(a="1")
    long["metadata"]["name"] = "a" * 254
    with pytest.raises(Invalid, match="must be no more than 253 characters"):
        client.apply(long, manager="a")


def test_a_name_that_is_taken(client):
    client.create(config_map(a="1"), manager="a")

    with pytest.raises(AlreadyExists):
        client.create(config_map(a="1"), manager="a")


def test_a_missing_namespace_is_not_found_and_a_dying_one_forbidden(client):
    absent = config_map(a="1")
    absent["metadata"]["namespace"] = "nope"
    with pytest.raises(NotFound):
        client.apply(absent, manager="a")

    client.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nope"}}, manager="a"
    )
    client.delete(ObjectRef("", "Namespace", "", "nope"))
    with pytest.raises(Forbidden) as refused:
        client.apply(absent, manager="a")
    assert refused.value.is_terminating_namespace


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (answer(401, {"reason": "Unauthorized"}), Forbidden),
        (answer(410, {"reason": "Expired"}), Gone),
        (
            answer(429, {"reason": "TooManyRequests"}, (*JSON, ("retry-after", "7"))),
            TooManyRequests,
        ),
        (answer(503, b"no healthy upstream", (("content-type", "text/plain"),)), ServerFailure),
        (answer(200, b"<html>login</html>", (("content-type", "text/html"),)), ServerFailure),
        (answer(200, b"{", JSON), ServerFailure),
        (answer(200, b"[]", JSON), ServerFailure),
    ],
    ids=["401", "410", "429", "503", "HTML", "half JSON", "a list"],
)
def test_answers_become_errors_of_the_tree(response, error):
    _, client = scripted(response)

    with pytest.raises(error, match="get ConfigMap default/c"):
        client.get(CM)


def test_the_server_says_how_long_to_wait():
    _, client = scripted(answer(429, {}, (*JSON, ("retry-after", "7"))))
    with pytest.raises(TooManyRequests) as refused:
        client.get(CM)

    assert refused.value.after_ms == 7000


def test_errors_are_told_without_what_is_to_be_hidden():
    """Message, causes and status alike, before the message is cut: half a secret hides from all."""
    secret = "canary-5f1d"
    cause = {"reason": "FieldValueInvalid", "field": "spec.x", "message": f'got "{secret}"'}
    body = {"reason": "Invalid", "message": "y" * 4090 + secret, "details": {"causes": [cause]}}
    _, client = scripted(answer(422, body))
    client.hide_in_errors(lambda text: text.replace(secret, "***"))

    with pytest.raises(Invalid) as refused:
        client.get(CM)

    status = refused.value.status
    assert status.message == "y" * 4090 + "***"
    assert [c.message for c in status.causes] == ['got "***"']
    assert secret[:6] not in str(refused.value)


def test_a_watch_is_refused_without_what_is_to_be_hidden():
    line = json.dumps({"type": "ERROR", "object": {"code": 500, "message": "a canary"}}).encode()
    _, client = scripted(Response(200, line), answer(500, {"message": "a canary"}))
    client.hide_in_errors(lambda text: text.replace("canary", "***"))

    for _ in range(2):
        with pytest.raises(ServerFailure, match=r"a \*\*\*$"):
            list(client.watch("", "ConfigMap", resource_version="1"))


# ------------------------------------------------------------------------- list, watch


def test_a_list_joins_its_pages(client, server):
    for number in range(PAGE_SIZE + 2):
        body = config_map(a="1")
        body["metadata"]["name"] = f"c{number:04}"
        client.apply(body, manager="a")
    page = client.list("", "ConfigMap", "default")

    assert len(page.items) == PAGE_SIZE + 2
    assert page.resource_version == str(server.resource_version)
    assert {(item["apiVersion"], item["kind"]) for item in page.items} == {("v1", "ConfigMap")}


def test_a_page_that_is_refused_fails_the_whole_list():
    """a.5 W3: A partial list would look like deleted objects (reliability-security c.2 row 29)."""
    first = {"metadata": {"continue": "t", "resourceVersion": "5"}, "items": [{"metadata": {}}]}
    _, client = scripted(answer(200, first), answer(410, {"reason": "Expired"}))

    with pytest.raises(Gone):
        client.list("", "ConfigMap")


def test_a_metadata_list_asks_for_metadata(client):
    client.apply(config_map(a="1"), manager="a")
    (item,) = client.list("", "ConfigMap", "default", metadata_only=True).items

    assert item["kind"] == "PartialObjectMetadata"
    assert item["metadata"]["managedFields"]


def test_lists_of_all_namespaces_and_by_label(client):
    body = config_map(a="1")
    body["metadata"]["labels"] = {"x": "1"}
    client.apply(body, manager="a")
    body["metadata"] |= {"namespace": "kube-public", "labels": {"x": "2"}}
    client.apply(body, manager="a")

    assert len(client.list("", "ConfigMap").items) == 2
    (found,) = client.list("", "ConfigMap", label_selector="x=2").items
    assert found["metadata"]["namespace"] == "kube-public"


def test_a_watch_gives_events_and_keeps_blank_lines_to_itself():
    event = {"type": "ADDED", "object": {"metadata": {"name": "c"}}}
    lines = json.dumps(event).encode() + b"\n\n"
    transport, client = scripted(answer(200, lines))
    (seen,) = client.watch("", "ConfigMap", "default", resource_version="5", label_selector="x=1")

    assert (seen.type, seen.object) == ("ADDED", event["object"])
    sent = dict(transport.requests[-1].query)
    assert sent == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
        "labelSelector": "x=1",
    }
    assert transport.requests[-1].timeout_seconds == 300


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (answer(410, {"reason": "Expired"}), Gone),
        (answer(200, {"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}), Gone),
        (answer(200, {"type": "ERROR", "object": {}}), ServerFailure),
        (answer(403, {"reason": "Forbidden"}), Forbidden),
        (answer(200, b"<html>"), ServerFailure),
    ],
    ids=["410", "event", "strange event", "403", "HTML"],
)
def test_a_watch_that_fails_says_why(response, error):
    _, client = scripted(response)

    with pytest.raises(error, match="watch ConfigMap"):
        list(client.watch("", "ConfigMap", resource_version="1"))


def test_after_closing_nothing_is_reachable(client):
    client.close()

    with pytest.raises(Unreachable):
        client.get(CM)

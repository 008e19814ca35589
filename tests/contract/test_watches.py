"""Watches: what they start with, what they show, how they end."""

from __future__ import annotations

import json

import pytest

from contract.api import METADATA, data
from stoker.kube.answers import StreamRefused
from stoker.kube.transport import Request


def seen(events):
    return [
        (event["type"], event["object"]["metadata"].get("name"))
        for event in events
        if event["type"] != "BOOKMARK"
    ]


def test_a_watch_gives_what_happened_after_a_version(server):
    start = server.apply("ConfigMap", "a", data(a="1")).rv
    server.apply("ConfigMap", "b", data(a="1"))
    changed = server.apply("ConfigMap", "a", data(a="2"))
    server.delete("ConfigMap", "b")

    events = server.watch("ConfigMap", resourceVersion=start)
    assert seen(events) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert events[1]["object"] == changed.body
    last = events[2]["object"]
    assert int(last["metadata"]["resourceVersion"]) > int(changed.rv)


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_without_version_starts_with_what_is_there(server, version):
    server.apply("ConfigMap", "a", data(a="1"))
    query = {"resourceVersion": version} if version else {}

    assert seen(server.watch("ConfigMap", **query)) == [("ADDED", "a")]


def test_a_watch_with_a_selector_sees_objects_come_and_go(server):
    start = server.apply("ConfigMap", "a", {"metadata": {"labels": {"x": "0"}}}).rv
    for value in ("1", "1", "0"):
        body = {
            "metadata": {"labels": {"x": value}},
            "data": {"v": server.get("ConfigMap", "a").rv},
        }
        server.apply("ConfigMap", "a", body)

    events = server.watch("ConfigMap", resourceVersion=start, labelSelector="x=1")
    assert seen(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_a_watch_ends_with_a_bookmark_when_asked(server):
    last = server.apply("ConfigMap", "a", data(a="1")).rv
    events = server.watch("ConfigMap", seconds=3, allowWatchBookmarks="true")

    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert int(events[-1]["object"]["metadata"]["resourceVersion"]) >= int(last)
    assert server.watch("ConfigMap", resourceVersion=last) == []


def test_a_watch_of_metadata_only(server):
    server.apply("ConfigMap", "a", data(a="1"))
    request = Request(
        "GET",
        server.path("ConfigMap"),
        (("watch", "true"), ("timeoutSeconds", "1")),
        accept=METADATA.replace("MetadataList", "Metadata"),
    )

    lines = list(server.transport.stream(request))
    event = json.loads(lines[0])
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]


def test_a_watch_of_an_unknown_kind_is_refused(server):
    request = Request("GET", "/apis/nope.dev/v1/xs", (("watch", "true"),))
    with pytest.raises(StreamRefused) as refused:
        list(server.transport.stream(request))

    assert refused.value.response.status == 404


def test_a_watch_from_a_bad_version_is_refused(server):
    with pytest.raises(StreamRefused) as refused:
        server.watch("ConfigMap", resourceVersion="abc")

    assert refused.value.response.status == 500


def test_a_watch_over_compacted_history_gets_a_410_event(memory):
    """The real server sends the same event with status 200 once its window has moved on."""
    start = memory.apply("ConfigMap", "a", data(a="1")).rv
    memory.apply("ConfigMap", "a", data(a="2"))
    memory.transport.compact()

    (event,) = memory.watch("ConfigMap", resourceVersion=start)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )

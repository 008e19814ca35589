"""A client that need not ask again gives what asking would."""

from __future__ import annotations

from stoker.kube.memory import MemoryServer
from stoker.model.refs import ObjectRef
from stoker.sim.clock import VirtualClock
from stoker.sim.recalling import Recalling


def a_config_map(name: str, value: str = "v") -> dict[str, object]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": value}}


def test_only_a_kind_that_was_written_is_asked_for_again():
    server = MemoryServer(VirtualClock())
    client = Recalling(server, server.version_of)
    client.create(a_config_map("a"), manager="test")
    first = client.list("", "ConfigMap")
    asked = len(server.audit)

    assert first is client.list("", "ConfigMap")
    assert asked == len(server.audit)
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}, manager="t")
    assert first is client.list("", "ConfigMap")
    client.patch(
        ObjectRef("", "ConfigMap", "default", "a"), "merge", {"data": {"k": "w"}}, manager="t"
    )
    assert ["w"] == [item["data"]["k"] for item in client.list("", "ConfigMap").items]
    client.delete(ObjectRef("", "ConfigMap", "default", "a"))
    assert () == client.list("", "ConfigMap").items


def test_other_questions_are_other_lists():
    server = MemoryServer(VirtualClock())
    client = Recalling(server, server.version_of)
    client.create(a_config_map("a"), manager="test")

    assert 1 == len(client.list("", "ConfigMap").items)
    assert () == client.list("", "ConfigMap", "kube-system").items
    assert () == client.list("", "ConfigMap", label_selector="team=none").items

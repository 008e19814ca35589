"""The in-memory API server beyond the contract: hooks, audit, threads, virtual time.

What it answers is held against the real server in tests/contract.
"""

from __future__ import annotations

import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.errors import Unreachable
from stoker.kube.client import Client
from stoker.kube.errors import Conflict, NotFound
from stoker.kube.memory import MemoryServer
from stoker.kube.memory_quantity import canonical_quantity
from stoker.kube.transport import Request
from stoker.model.refs import ObjectRef
from stoker.objects.quantity import parse_quantity
from stoker.sim.clock import VirtualClock

CM = ObjectRef("", "ConfigMap", "default", "c")


def config_map(name="c", **data):
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def server(clock):
    return MemoryServer(clock)


@pytest.fixture
def client(server):
    return Client(server)


def test_a_fresh_server_has_the_namespaces_of_a_cluster(client):
    names = [item["metadata"]["name"] for item in client.list("", "Namespace").items]

    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert client.server().cluster_uid


def test_a_request_refused_before_never_arrives(server, client):
    """The crash point before a write: the object is untouched."""
    client.resource("", "ConfigMap")

    def lost(request: Request) -> None:
        raise Unreachable(f"no route for {request.method}")

    server.before = lost
    with pytest.raises(Unreachable):
        client.apply(config_map(a="1"), manager="a")
    server.before = None
    with pytest.raises(NotFound):
        client.get(CM)
    assert not [entry for entry in server.audit if entry.method == "PATCH"]


def test_an_answer_lost_after_a_write_leaves_the_write(server, client):
    """The crash point after a write: it happened, and nobody was told."""
    client.resource("", "ConfigMap")

    def lost(_request: Request, _response: object) -> None:
        raise Unreachable("the answer was lost")

    server.after = lost
    with pytest.raises(Unreachable):
        client.apply(config_map(a="1"), manager="a")
    server.after = None
    assert client.get(CM)["data"] == {"a": "1"}


def test_the_audit_lists_what_arrived(server, client):
    client.apply(config_map(a="1"), manager="a")
    with pytest.raises(NotFound):
        client.get(ObjectRef("", "ConfigMap", "default", "nope"))

    seen = [(entry.method, entry.path, entry.status) for entry in server.audit[-2:]]
    assert seen == [
        ("PATCH", "/api/v1/namespaces/default/configmaps/c", 201),
        ("GET", "/api/v1/namespaces/default/configmaps/nope", 404),
    ]


def test_times_come_from_the_clock(clock, client):
    client.apply(config_map(a="1"), manager="a")
    clock.advance(3_600_000)
    changed = client.apply(config_map(a="2"), manager="a")

    assert changed["metadata"]["creationTimestamp"] == "2026-11-29T00:00:00Z"
    assert changed["metadata"]["managedFields"][0]["time"] == "2026-11-29T01:00:00Z"


def test_two_servers_make_the_same_uids_unless_seeded(clock):
    def uid(seed):
        client = Client(MemoryServer(clock, seed=seed))
        return client.server().cluster_uid

    assert uid("") == uid("")
    assert uid("a") != uid("b")


def test_versions_count_writes_only(server, client):
    client.apply(config_map(a="1"), manager="a")
    before = server.resource_version
    client.apply(config_map(a="1"), manager="a")
    client.list("", "ConfigMap")
    client.apply(config_map(a="2"), manager="a", dry_run=True)

    assert server.resource_version == before


def test_a_watch_sees_what_another_thread_writes(server, client):
    seen: list[str] = []
    started = threading.Event()

    def watch() -> None:
        for event in client.watch("", "ConfigMap", resource_version="1"):
            seen.append(f"{event.type} {event.object['metadata'].get('name')}")
            started.set()

    client.apply(config_map("first"), manager="a")
    thread = threading.Thread(target=watch)
    thread.start()
    assert started.wait(5)
    client.apply(config_map("second"), manager="a")
    for _ in range(500):
        if len(seen) == 2:
            break
        threading.Event().wait(0.01)
    server.close()
    thread.join(5)

    assert not thread.is_alive()
    assert seen == ["ADDED first", "ADDED second"]


def test_a_watch_ends_when_its_virtual_time_is_over(clock, client):
    events = client.watch("", "ConfigMap", resource_version="1", timeout_seconds=60)
    clock.advance(1)
    ended = threading.Event()

    def drain() -> None:
        list(events)
        ended.set()

    thread = threading.Thread(target=drain)
    thread.start()
    assert not ended.wait(0.05)
    for _ in range(50):
        clock.advance(60_000)
        if ended.wait(0.1):
            break
    thread.join(5)

    assert ended.is_set()


def test_a_closed_server_is_unreachable_for_watches_too(server, client):
    client.resource("", "ConfigMap")
    server.close()

    with pytest.raises(Unreachable):
        list(client.watch("", "ConfigMap", resource_version="1"))


def test_many_threads_may_write(client):
    def write(number: int) -> None:
        for step in range(20):
            client.apply(config_map(f"c{number}", step=str(step)), manager=f"m{number}")
            client.apply(config_map("shared", **{f"k{number}": str(step)}), manager=f"m{number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    shared = client.get(ObjectRef("", "ConfigMap", "default", "shared"))
    assert shared["data"] == {f"k{number}": "19" for number in range(6)}
    assert len(client.list("", "ConfigMap").items) == 7


def test_a_stored_object_cannot_be_changed_from_outside(client):
    got = client.get(ObjectRef("", "Namespace", "", "default"))
    got["metadata"]["labels"]["x"] = "changed"

    again = client.get(ObjectRef("", "Namespace", "", "default"))
    assert "x" not in again["metadata"]["labels"]


def test_a_second_stoker_meets_a_conflict(client):
    """ssa-facts row 5."""
    ours = config_map(a="1")
    ours["metadata"]["annotations"] = {"stoker.dev/owner": "A"}
    theirs = config_map(b="1")
    theirs["metadata"]["annotations"] = {"stoker.dev/owner": "B"}
    client.apply(ours, manager="stoker-a")

    with pytest.raises(Conflict) as refused:
        client.apply(theirs, manager="stoker-b")
    assert refused.value.is_field_conflict


def test_a_page_token_may_be_used_by_many_lists(server):
    client = Client(server)
    for name in "abc":
        client.apply(config_map(name), manager="a")
    path = "/api/v1/namespaces/default/configmaps"

    def page(**query: str) -> dict[str, object]:
        request = Request("GET", path, tuple((k.rstrip("_"), v) for k, v in query.items()))
        body: dict[str, object] = json.loads(server.send(request).body)
        return body

    token = str(page(limit="1")["metadata"]["continue"])  # type: ignore[index]
    first, second = (page(limit="2", continue_=token)["items"] for _ in range(2))
    assert first == second


# ------------------------------------------------------------------------ properties

VALUES = st.dictionaries(
    st.sampled_from("abcd"), st.sampled_from(["1", "2"]), min_size=1, max_size=3
)
"""Never empty: two owners of an empty map conflict, equal or not (ssa-facts row 27)."""
STEPS = st.lists(
    st.tuples(st.sampled_from(["apply", "force", "merge"]), st.sampled_from("xyz"), VALUES),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_whatever_was_written_before_a_second_apply_of_the_same_changes_nothing(steps):
    client = Client(MemoryServer(VirtualClock()))
    for way, manager, values in steps:
        try:
            if way == "merge":
                client.patch(CM, "merge", {"data": values}, manager=manager)
            else:
                client.apply(config_map(**values), manager=manager, force=way == "force")
        except (Conflict, NotFound):
            continue
        if way != "merge":
            first = client.get(CM)
            again = client.apply(config_map(**values), manager=manager)
            if first["metadata"].get("managedFields"):
                assert first == again


@given(
    st.decimals(min_value="0.000001", max_value="1000000000", places=3, allow_nan=False),
    st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]),
)
def test_a_canonical_quantity_has_the_same_value_and_is_its_own_canonical_form(number, suffix):
    text = f"{number:f}{suffix}"
    canonical = canonical_quantity(text)

    assert parse_quantity(canonical) == parse_quantity(text)
    assert canonical_quantity(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5", "500m"),
        ("1500", "1500"),
        ("1000", "1k"),
        ("100M", "100M"),
        ("1e3", "1e3"),
        ("512", "512"),
        ("0", "0"),
        (1, "1"),
        (0.5, "500m"),
    ],
)
def test_quantities_are_printed_as_the_server_prints_them(text, canonical):
    assert canonical_quantity(text) == canonical

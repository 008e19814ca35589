"""One look at the cluster: everything, or only what changed since the last look."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.kube.client import Client
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Request, Response
from stoker.model.refs import ObjectRef
from stoker.sim.clock import VirtualClock
from stoker.sim.view import KINDS, Kind, View
from stoker.sim.workloads import Workloads

CONFIG, SECRET = Kind("", "ConfigMap"), Kind("", "Secret")


class Counting:
    """Hands requests on and counts the lists."""

    def __init__(self, server: MemoryServer) -> None:
        self.server = server
        self.url = server.url
        self.lists = 0

    def send(self, request: Request) -> Response:
        self.lists += request.method == "GET"
        return self.server.send(request)

    def stream(self, request: Request):
        return self.server.stream(request)

    def close(self) -> None:
        self.server.close()


def body(kind: str, name: str, value: str) -> dict:
    data = {"data": {"v": value}} if kind == "ConfigMap" else {"stringData": {"v": value}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **data}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "delete", "look"]),
            st.sampled_from(["ConfigMap", "Secret"]),
            st.sampled_from("ab"),
        ),
        max_size=12,
    )
)
def test_a_look_at_what_changed_shows_what_a_whole_look_shows(steps):
    server = MemoryServer(VirtualClock())
    cluster = Client(server)
    seen: View | None = None
    versions: dict[Kind, int] = {}
    for number, (what, kind, name) in enumerate(steps):
        if what == "put":
            cluster.apply(body(kind, name, str(number)), manager="test")
        if what == "delete" and any(
            item["metadata"]["name"] == name for item in cluster.list("", kind, "default").items
        ):
            cluster.delete(ObjectRef("", kind, "default", name, "v1"))
        if what == "look":
            now = {k: server.version_of(k.group, k.kind) for k in (CONFIG, SECRET)}
            changed = frozenset(k for k in now if versions.get(k) != now[k])
            seen = View.read(cluster, (CONFIG, SECRET), before=seen, changed=changed)
            versions = now
            assert View.read(cluster, (CONFIG, SECRET)) == seen


def test_a_round_in_which_nothing_changed_lists_nothing():
    counting = Counting(MemoryServer(VirtualClock()))
    workloads = Workloads(Client(counting), counting.server, version_of=counting.server.version_of)
    workloads.settle(0)
    before = counting.lists
    workloads.step(0)

    assert (before > 0, before) == (True, counting.lists)


@pytest.mark.parametrize("kind", [Kind("", "Pod"), Kind("stoker.dev", "Fleet", "v1alpha1")])
def test_a_kind_without_objects_has_no_version(kind):
    """One that is not served may come: then it is listed."""
    server = MemoryServer(VirtualClock())

    assert server.version_of(kind.group, kind.kind) == (0 if kind.kind == "Pod" else -1)
    assert kind in KINDS

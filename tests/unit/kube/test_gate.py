"""The gate before writes: none starts without leave, none outlasts its bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from stoker.errors import Retryable
from stoker.kube.client import Client
from stoker.kube.gate import Gated, WriteGate
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Request, Response, Transport
from stoker.model.refs import ObjectRef
from stoker.sim.clock import VirtualClock

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}}
REF = ObjectRef("", "ConfigMap", "default", "m", "v1")


@dataclass
class Seen:
    """Passes requests on and remembers them."""

    inner: Transport
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    def send(self, request: Request) -> Response:
        self.requests.append(request)
        return self.inner.send(request)

    def stream(self, request: Request) -> Iterator[bytes]:
        return self.inner.stream(request)

    def close(self) -> None:
        self.inner.close()


class Setting:
    """A client behind a gate that is open as long as `open` says so."""

    def __init__(self) -> None:
        self.open = True
        self.gate = WriteGate()
        self.seen = Seen(MemoryServer(VirtualClock()))
        self.client = Client(Gated(self.seen, self.gate))

    def admit(self) -> None:
        if not self.open:
            raise Retryable("not now", code="lease-lost")


@pytest.fixture
def setting() -> Setting:
    made = Setting()
    made.client.create(MAP, manager="m")
    made.gate.guard(made.admit, 4.0)
    made.open = False
    made.seen.requests.clear()
    return made


WRITES = {
    "apply": lambda client: client.apply(MAP, manager="m"),
    "create": lambda client: client.create(MAP, manager="m"),
    "update": lambda client: client.update(MAP, manager="m"),
    "patch": lambda client: client.patch(REF, "merge", {}, manager="m"),
    "delete": lambda client: client.delete(REF),
    "status": lambda client: client.patch(REF, "merge", {}, manager="m", subresource="status"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_no_write_starts_while_the_gate_is_shut(setting, write):
    with pytest.raises(Retryable, match="not now"):
        write(setting.client)

    assert [] == setting.seen.requests


def test_reads_and_dry_runs_go_on(setting):
    """A follower warms its caches and compares; nothing of that changes anything."""
    setting.client.get(REF)
    setting.client.list("", "ConfigMap", "default")
    setting.client.apply(MAP, manager="m", dry_run=True)

    assert 3 == len(setting.seen.requests)


def test_a_dry_run_of_a_delete_counts_as_a_write(setting):
    """It stands in the body, where the gate does not look."""
    with pytest.raises(Retryable, match="not now"):
        setting.client.delete(REF, dry_run=True)


def test_a_write_has_ended_or_is_given_up_before_another_may_lead(setting):
    """a.6 L3: on both sides: the server is told the bound."""
    setting.open = True
    setting.client.patch(REF, "merge", {"data": {"k": "v"}}, manager="m")
    (sent,) = setting.seen.requests

    assert 4.0 == sent.timeout_seconds
    assert ("timeout", "4000ms") in sent.query
    assert sent.before_bytes is not None
    setting.open = False
    with pytest.raises(Retryable, match="not now"):
        sent.before_bytes()


def test_a_gate_that_nobody_guards_is_open():
    made = Setting()
    made.client.create(MAP, manager="m")

    assert all(request.before_bytes is None for request in made.seen.requests)
    assert 30.0 == made.seen.requests[-1].timeout_seconds

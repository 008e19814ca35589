"""Commands that write once hold the fleet's lease meanwhile, or leave it to who renews it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stoker.cli.session import Session, Target
from stoker.cli.single import lease_name, writing_alone
from stoker.errors import Retryable, Stalled
from stoker.kube.client import Client
from stoker.kube.gate import Gated
from stoker.kube.memory import MemoryServer
from stoker.loop.lease import Lease, LeaseTiming
from stoker.model.refs import ObjectRef
from stoker.sim.clock import VirtualClock

REF = ObjectRef("coordination.k8s.io", "Lease", "stoker-system", lease_name("f1"), "v1")
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}}


class Living(VirtualClock):
    """Waiting lets another process live."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile = lambda: None

    def wait(self, seconds: float) -> None:
        super().wait(seconds)
        self.meanwhile()


class AnySession(Session):
    """Talks to an in-memory server instead of the one that flags name."""

    def aside(self, timeout_seconds: float) -> Client:
        assert timeout_seconds <= 5.0
        return Client(self.server)  # type: ignore[attr-defined]

    def expected_caller(self) -> str:
        return ""


@dataclass
class Setting:
    """A session of a command, and another controller."""

    clock: Living = field(default_factory=Living)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = MemoryServer(self.clock)
        self.session = AnySession(None, Target(), clock=self.clock)  # type: ignore[arg-type]
        self.session.server = self.server  # type: ignore[attr-defined]
        self.writer = Client(Gated(self.server, self.session.gate))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "stoker-system"}}
        self.client = Client(self.server)
        self.client.create(namespace, manager="m")
        self.other = Lease(
            self.client,
            self.clock,
            namespace="stoker-system",
            name=lease_name("f1"),
            holder="other",
        )

    def alone(self):
        return writing_alone(self.session, "f1", LeaseTiming(), self.told.append)

    def holder(self) -> str:
        return self.client.get(REF)["spec"]["holderIdentity"]


@pytest.fixture
def setting():
    return Setting()


def test_a_command_writes_under_the_lease_and_gives_it_back(setting):
    with setting.alone():
        assert setting.holder()
        assert not setting.other.renew()
        setting.writer.create(MAP, manager="m")

    assert "" == setting.holder()
    with pytest.raises(Retryable):
        setting.writer.apply(MAP, manager="m")
    assert setting.other.renew()
    assert [] == setting.told


def test_a_command_refuses_while_a_controller_renews(setting):
    """Two that write the same fleet undo each other's work."""
    setting.other.renew()
    setting.clock.meanwhile = setting.other.renew
    with pytest.raises(Stalled) as caught, setting.alone():
        raise AssertionError("it went on")

    assert "lease-held" == caught.value.code
    assert "other" in caught.value.message
    assert setting.clock.monotonic() <= 2
    assert "other" == setting.holder()


def test_a_lease_that_a_dead_controller_left_is_watched_and_then_taken(setting):
    setting.other.renew()
    with setting.alone():
        assert 15 <= setting.clock.monotonic() <= 16
        setting.writer.create(MAP, manager="m")

    assert 1 == len(setting.told)


def test_a_command_that_fails_gives_the_lease_back_too(setting):
    with pytest.raises(ZeroDivisionError), setting.alone():
        raise ZeroDivisionError

    assert "" == setting.holder()

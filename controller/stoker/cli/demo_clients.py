"""The clients of the demo: requests to one service, each of them counted by what came of it.

In memory engines and clients are those of rehearsals on virtual time; on a control plane the
engines are the stand-ins on loopback and requests go over HTTP. Used by demo_stage.
"""

from __future__ import annotations

from stoker.model.ports import Clock, Cluster
from stoker.rehearse.http_load import HttpLoad, token_seconds
from stoker.rehearse.record import Outcome, Recording, Request
from stoker.rehearse.schema import LoadBlock
from stoker.rehearse.virtual import VirtualEngines, VirtualLoad
from stoker.rehearse.watch import Watcher
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.kubelet_engines import Engines

__all__ = ["NAMESPACE", "RATE_PER_SECOND", "Clients", "DemoEngines"]

NAMESPACE = "llm"
RATE_PER_SECOND = 20
_SEED = 1
_LOAD = LoadBlock.model_validate(
    {
        "ratePerSecond": RATE_PER_SECOND,
        "output": {"p50": "2s", "p99": "6s", "tail": {"perMille": 0}},
        "lags": ["0s", "1s"],
        "sticky": 1,
    }
)
"""Answers of 2 s, at times 6; half of the clients choose from a list that is a second old."""


class DemoEngines:
    """Who makes engines, and who asks them for their load, on either kind of cluster."""

    def __init__(self, *, real: bool) -> None:
        self._real = real
        self._virtual: VirtualEngines | None = None

    def made(self, clock: Clock) -> VirtualEngines | Engines:
        """Called once by the world, with its clock."""
        if self._real:
            batch = BatchProfile(max_sequences=_LOAD.seats, step_seconds=token_seconds(1.0))
            return Engines(batch=batch)
        self._virtual = VirtualEngines(clock, _LOAD)
        return self._virtual

    def load_of(self, address: str) -> int | None:
        """Requests in flight there, in memory."""
        return None if self._virtual is None else self._virtual.load_of(address)

    def clients(self, service: str, clock: Clock) -> VirtualLoad | HttpLoad:
        """Clients of that service."""
        if self._virtual is None:
            return HttpLoad(_LOAD, (service,), _SEED, clock)
        return VirtualLoad(_LOAD, (service,), _SEED, self._virtual)


class Clients:
    """`begin`, `turn` several times a second, `end`; then `answered` and `failed` are final."""

    def __init__(self, cluster: Cluster, clock: Clock, engines: DemoEngines, service: str) -> None:
        self._clock = clock
        self._load: VirtualLoad | HttpLoad = engines.clients(service, clock)
        seen = Recording(_SEED, "demo")
        self._watcher = Watcher(cluster, NAMESPACE, (service,), seen, self._load.note_endpoints)

    def begin(self) -> None:
        """Requests come from now on."""
        now_ms = self._clock.now_ms()
        self._watcher.look(now_ms)
        self._load.begin(now_ms)

    def turn(self) -> None:
        """Send what is due, and see which endpoints there are."""
        now_ms = self._clock.now_ms()
        if isinstance(self._load, VirtualLoad):
            self._load.advance(now_ms)
        self._watcher.look(now_ms)

    def end(self) -> None:
        """No further requests; those without an answer yet are not counted."""
        self._load.stop()

    @property
    def requests(self) -> list[Request]:
        """Every request so far."""
        return list(self._load.requests)

    @property
    def answered(self) -> int:
        """Requests that came to an end, well or not."""
        return sum(request.outcome is not Outcome.OPEN for request in self.requests)

    @property
    def failed(self) -> int:
        """Of those, requests whose client got less than the whole answer."""
        return sum(request.failed for request in self.requests)

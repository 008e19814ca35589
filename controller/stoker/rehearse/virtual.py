"""Engines and clients without threads or sockets, on virtual time: for the in-memory cluster.

`VirtualEngines` takes the place of `sim.kubelet_engines.Engines`; `VirtualLoad` sends the
scenario's requests to them. An engine answers `seats` requests at a time, first come first
served; told to stop it refuses new ones and ends what it has, within its time.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from stoker.model.ports import Clock
from stoker.rehearse.load import (
    Endpoint,
    EndpointHistory,
    Sizes,
    arrivals,
    sticky_clients,
)
from stoker.rehearse.record import Outcome, Request
from stoker.rehearse.schema import LoadBlock
from stoker.sim.view import uid_of

__all__ = ["VirtualEngine", "VirtualEngines", "VirtualLoad"]

STICKY_PAUSE_MS = 1_000
"""Between the answers of a client that keeps its connection."""


class VirtualEngine:
    """One engine; `sim.kubelet_run.RunningEngine` to the kubelet."""

    def __init__(self, clock: Clock, address: str, ready_ms: int | None, load: LoadBlock) -> None:
        self._clock = clock
        self._load = load
        self._ready_ms = ready_ms
        self._seats: list[int] = []
        self._open: list[Request] = []
        self._until_ms: int | None = None
        self._stopped = False
        self.address = address

    @property
    def loaded(self) -> bool:
        """Whether it can serve a token."""
        return self._ready_ms is not None and self._clock.now_ms() >= self._ready_ms

    @property
    def in_flight(self) -> int:
        """Requests running and waiting."""
        return len(self._settled(self._clock.now_ms()))

    @property
    def stopped(self) -> bool:
        """Whether it no longer listens; an engine that stops does so once it is idle."""
        now_ms = self._clock.now_ms()
        if not self._stopped and self._until_ms is not None:
            left = self._settled(min(now_ms, self._until_ms))
            if not left or now_ms >= self._until_ms:
                self._break_off(self._until_ms if left else now_ms, "the engine shut down")
        return self._stopped

    @property
    def takes_requests(self) -> bool:
        """Whether a new request is answered."""
        return self.loaded and self._until_ms is None and not self.stopped

    def begin_shutdown(self, timeout_seconds: float = 0.0) -> None:
        """SIGTERM."""
        if self._until_ms is None:
            self._until_ms = self._clock.now_ms() + round(timeout_seconds * 1000)

    def crash(self) -> None:
        """SIGKILL."""
        if not self.stopped:
            self._break_off(self._clock.now_ms(), "the engine died")

    def take(self, request: Request) -> None:
        """Answer a request that came at its `at_ms`."""
        start_ms = request.at_ms
        if len(self._seats) >= self._load.seats:
            start_ms = max(start_ms, heapq.heappop(self._seats))
        request.first_ms = start_ms + self._load.ttft
        request.ends_ms = request.first_ms + request.output_ms
        heapq.heappush(self._seats, request.ends_ms)
        self._open.append(request)

    def settle(self) -> None:
        """Close the books on what has ended by now."""
        if not self.stopped:
            self._settled(self._clock.now_ms())

    def _settled(self, now_ms: int) -> list[Request]:
        """What is under way, after what has ended is marked so."""
        left = []
        for request in self._open:
            if request.ends_ms is not None and request.ends_ms <= now_ms:
                request.outcome, request.ended_ms = Outcome.OK, request.ends_ms
            else:
                left.append(request)
        self._open = left
        return left

    def _break_off(self, at_ms: int, why: str) -> None:
        for request in self._settled(at_ms):
            begun = request.first_ms is not None and request.first_ms <= at_ms
            request.outcome = Outcome.TRUNCATED if begun else Outcome.REFUSED
            request.ended_ms, request.why = at_ms, why
        self._open = []
        self._stopped = True


class VirtualEngines:
    """Starts engines for the simulated kubelet, and finds them by address or pod."""

    def __init__(self, clock: Clock, load: LoadBlock) -> None:
        self._clock = clock
        self._load = load
        self._numbers = itertools.count(1)
        self._by_address: dict[str, VirtualEngine] = {}
        self._by_pod: dict[str, VirtualEngine] = {}

    def start(
        self, pod: dict[str, Any], load_seconds: float, *, stuck: bool = False
    ) -> VirtualEngine:
        """An engine that answers after that time, never if `stuck`."""
        ready_ms = None if stuck else self._clock.now_ms() + round(load_seconds * 1000)
        address = f"engine.invalid:{next(self._numbers)}"
        made = VirtualEngine(self._clock, address, ready_ms, self._load)
        self._by_address[address] = self._by_pod[uid_of(pod)] = made
        return made

    def passes(self, pod: dict[str, Any], engine: VirtualEngine) -> bool:
        """Whether the pod's probes pass: it can serve a token."""
        del pod
        return engine.loaded and not engine.stopped

    def of_pod(self, uid: str) -> VirtualEngine | None:
        """The engine of that pod, the newest if it restarted."""
        return self._by_pod.get(uid)

    def load_of(self, address: str) -> int | None:
        """Running and waiting requests, as the controller's drain asks; None for no answer."""
        engine = self._by_address.get(address)
        return None if engine is None or engine.stopped else engine.in_flight

    def settle(self) -> None:
        """Close the books of all engines."""
        for engine in self._by_pod.values():
            engine.settle()


class VirtualLoad:
    """All clients of all services; `advance` plays them up to the clock's time."""

    def __init__(
        self, load: LoadBlock, services: Iterable[str], seed: int, engines: VirtualEngines
    ) -> None:
        self._load = load
        self._services = tuple(services)
        self._seed = seed
        self._engines = engines
        self._endpoints = {service: EndpointHistory() for service in self._services}
        self._queues: dict[str, Iterator[tuple[int, str, int, int]]] = {}
        self._next: dict[str, tuple[int, str, int, int]] = {}
        self._random = Random(f"{seed}/choice")  # noqa: S311 - a simulation
        self._sticky = [
            _Sticky(service, client, Sizes(load.output, f"{seed}/{service}/{client}"))
            for service in self._services
            for client in sticky_clients(load)
        ]
        self._began_ms: int | None = None
        self.requests: list[Request] = []

    def note_endpoints(self, at_ms: int, service: str, endpoints: tuple[Endpoint, ...]) -> None:
        """What the cluster says of a service's endpoints from now on."""
        self._endpoints[service].note(at_ms, endpoints)

    def begin(self, at_ms: int) -> None:
        """Requests come from now on."""
        self._began_ms = at_ms
        for service in self._services:
            self._queues[service] = arrivals(self._load, service, self._seed)
            self._next[service] = next(self._queues[service])
        for client in self._sticky:
            client.next_ms = at_ms

    def advance(self, now_ms: int) -> None:
        """Send what was due before now."""
        if self._began_ms is None:
            return
        for service in self._services:
            while (due_ms := self._began_ms + self._next[service][0]) < now_ms:
                _, client, lag, output_ms = self._next[service]
                self._next[service] = next(self._queues[service])
                request = Request(service, client, due_ms, output_ms)
                seen = self._endpoints[service].seen(due_ms, lag)
                self._send(request, self._random.choice(seen) if seen else None)
        for sticky in self._sticky:
            self._go_on(sticky, now_ms)

    def stop(self) -> None:
        """No further requests; those under way stay open."""
        self._began_ms = None
        self._engines.settle()

    def _send(self, request: Request, endpoint: Endpoint | None) -> None:
        self.requests.append(request)
        engine = self._engines.of_pod(endpoint.pod) if endpoint is not None else None
        if endpoint is None:
            request.why = "no endpoint"
        else:
            request.pod, request.node = endpoint.pod, endpoint.node
        if engine is None or not engine.takes_requests:
            request.outcome, request.ended_ms = Outcome.REFUSED, request.at_ms
            request.why = request.why or "the engine takes no request"
            return
        engine.take(request)

    def _go_on(self, sticky: _Sticky, now_ms: int) -> None:
        self._engines.settle()
        while True:
            last = sticky.request
            if last is not None:
                if last.outcome is Outcome.OPEN:
                    return
                sticky.next_ms = (last.ended_ms or last.at_ms) + STICKY_PAUSE_MS
                sticky.request = None
            if sticky.next_ms >= now_ms:
                return
            self._send_sticky(sticky)

    def _send_sticky(self, sticky: _Sticky) -> None:
        """On the connection it has; one that its server closed is opened anew, elsewhere."""
        kept = sticky.endpoint
        engine = self._engines.of_pod(kept.pod) if kept is not None else None
        if engine is None or engine.stopped:
            seen = self._endpoints[sticky.service].seen(sticky.next_ms, 0)
            sticky.endpoint = self._random.choice(seen) if seen else None
        request = Request(sticky.service, sticky.client, sticky.next_ms, sticky.sizes.draw())
        self._send(request, sticky.endpoint)
        sticky.request = request
        if request.failed:
            sticky.endpoint = None


class _Sticky:
    """A client that keeps its connection."""

    __slots__ = ("client", "endpoint", "next_ms", "request", "service", "sizes")

    def __init__(self, service: str, client: str, sizes: Sizes) -> None:
        self.service, self.client, self.sizes = service, client, sizes
        self.next_ms = 0
        self.endpoint: Endpoint | None = None
        self.request: Request | None = None

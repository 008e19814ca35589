"""The requests of a scenario, drawn from a seed: pure, the same for every ground.

In: a load block, services, a seed. Out: the arrivals in order, each with its client and the
length of its answer; and what a client sees of the endpoints, which may be old.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from stoker.rehearse.schema import LoadBlock, OutputBlock
from stoker.source.durations import duration_text

__all__ = ["Endpoint", "EndpointHistory", "Sizes", "arrivals", "lag_clients", "sticky_clients"]

_Z99 = 2.3263478740408408
"""The 99th percentile of the standard normal distribution."""


class Sizes:
    """Lengths of answers in milliseconds: log-normal by P50 and P99, and the tail."""

    def __init__(self, output: OutputBlock, seed: str) -> None:
        self._output = output
        self._random = Random(seed)  # noqa: S311 - a simulation
        self._mu = math.log(max(1, output.p50))
        self._sigma = max(0.0, math.log(max(1, output.p99)) - self._mu) / _Z99

    def draw(self) -> int:
        """The next one, at least 1."""
        tail = self._output.tail
        if self._random.randrange(1000) < tail.per_mille:
            return round(tail.over * (1 + self._random.random() / 2)) + 1
        most = max(tail.over, self._output.p99) if tail.per_mille else None
        drawn = max(1, round(self._random.lognormvariate(self._mu, self._sigma)))
        return drawn if most is None else min(drawn, most)


def lag_clients(load: LoadBlock) -> tuple[tuple[str, int], ...]:
    """The clients of the open loop, each with the age of its endpoint list."""
    return tuple((f"lag-{duration_text(lag)}", lag) for lag in load.lags)


def sticky_clients(load: LoadBlock) -> tuple[str, ...]:
    """The clients that keep a connection."""
    return tuple(f"sticky-{number}" for number in range(1, load.sticky + 1))


def arrivals(load: LoadBlock, service: str, seed: int) -> Iterator[tuple[int, str, int, int]]:
    """Milliseconds from the begin of the load, client, its lag, length of the answer; endless.

    Clients take turns, so that each has the same share.
    """
    sizes = Sizes(load.output, f"{seed}/{service}")
    clients = lag_clients(load)
    number = 0
    while True:
        client, lag = clients[number % len(clients)]
        yield number * 1000 // load.rate_per_second, client, lag, sizes.draw()
        number += 1


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """A pod that an endpoint list names. `address` is where a real engine listens, if any."""

    pod: str
    node: str = ""
    address: str = ""


@dataclass(slots=True)
class EndpointHistory:
    """The endpoint lists of one service, oldest first, so that a client can be behind."""

    _lists: list[tuple[int, tuple[Endpoint, ...]]] = field(default_factory=list)

    def note(self, at_ms: int, endpoints: tuple[Endpoint, ...]) -> None:
        """The list as it is from now on."""
        if not self._lists or self._lists[-1][1] != endpoints:
            self._lists.append((at_ms, endpoints))

    def seen(self, at_ms: int, lag_ms: int) -> tuple[Endpoint, ...]:
        """What a client sees whose list is that old; it is never older than the first one."""
        found = self._lists[0][1] if self._lists else ()
        for since_ms, endpoints in reversed(self._lists):
            if since_ms <= at_ms - lag_ms:
                return endpoints
        return found

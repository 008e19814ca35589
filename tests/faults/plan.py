"""What goes wrong in one run, and when: drawn from a seed, so that a run can be repeated.

A seed and a length come in; windows of faults for the API server and the Git host, and things
that happen to processes and to the fleet, go out. Instants are seconds from the start.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["API", "ApiFault", "Happening", "Kind", "Plan", "Window", "plan_of"]


class Kind(StrEnum):
    """What a fault proxy does to a request."""

    DELAY = "delay"
    """Hold it back for `seconds` before it goes on."""
    DROP = "drop"
    """Close the connection; the API server never sees it."""
    LOSE = "lose"
    """Let it happen, and close the connection without an answer."""
    CUT = "cut"
    """Answer with half of a body."""
    HANG = "hang"
    """Answer nothing for `seconds`, then close; it never happens."""
    STATUS = "status"
    """Answer with `status` instead of the API server."""
    WATCH_HANG = "watch-hang"
    """A watch goes silent without an end."""
    WATCH_END = "watch-end"
    """A watch ends soon after it began."""


@dataclass(frozen=True, slots=True)
class ApiFault:
    """One way to treat a request; `share` of the requests that it fits are treated so."""

    kind: Kind
    share: float = 1.0
    seconds: float = 0.0
    status: int = 0
    retry_after: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """A fault from one instant to another; `victim` is the controller it meets, empty for both."""

    start: float
    end: float
    fault: ApiFault
    victim: str = ""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something at an instant. `what`: commit, drift, remove, note, kill, stop, api-*, git-*.

    `seconds` says how long it lasts, where it does.
    """

    at: float
    what: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run. After `seconds` nothing is wrong any more."""

    seed: int
    seconds: float
    windows: tuple[Window, ...]
    happenings: tuple[Happening, ...]

    @property
    def summary(self) -> str:
        """One line for people."""
        kinds = sorted({f"{w.fault.kind}{w.fault.status or ''}" for w in self.windows})
        rest = sorted({h.what for h in self.happenings})
        return f"{', '.join(kinds)}; {', '.join(rest)}"


API: tuple[Callable[[random.Random], ApiFault], ...] = (
    lambda draw: ApiFault(Kind.DELAY, 0.5, draw.uniform(0.2, 6.0)),
    lambda draw: ApiFault(Kind.DROP, draw.uniform(0.3, 1.0)),
    lambda _: ApiFault(Kind.LOSE, 0.5),
    lambda _: ApiFault(Kind.CUT, 0.4),
    lambda draw: ApiFault(Kind.HANG, 0.4, draw.uniform(2.0, 8.0)),
    lambda draw: ApiFault(Kind.STATUS, 0.5, status=draw.choice((500, 502, 503, 504))),
    lambda draw: ApiFault(
        Kind.STATUS, 0.5, status=429, retry_after=draw.choice(("", "1", "2", "body"))
    ),
    lambda _: ApiFault(Kind.STATUS, 0.3, status=401),
    lambda _: ApiFault(Kind.STATUS, 0.3, status=410),
    lambda _: ApiFault(Kind.WATCH_HANG),
    lambda _: ApiFault(Kind.WATCH_END),
)
"""Every fault of the API server that is drawn from."""
GIT = ("git-401", "git-503", "git-truncate", "git-hang", "git-dead", "git-race")
PROCESS = ("kill", "stop", "api-restart", "api-freeze", "etcd-freeze")


def plan_of(seed: int, seconds: float) -> Plan:
    """At least three kinds of faults at the API server, one of Git's, and work to do all along."""
    draw = random.Random(seed)
    windows = []
    for make in draw.sample(API, k=draw.randint(3, 5)):
        for _ in range(max(1, round(seconds / 20))):
            start = draw.uniform(0, seconds * 0.8)
            end = min(seconds, start + draw.uniform(2.0, 8.0))
            windows.append(Window(start, end, make(draw), draw.choice(("", "", "one", "two"))))
    happenings = [Happening(at, "commit") for at in _instants(draw, seconds, 6.0)]
    happenings += [Happening(at, "drift") for at in _instants(draw, seconds, 3.0)]
    happenings += [Happening(at, "note") for at in _instants(draw, seconds, 12.0)]
    happenings.append(Happening(draw.uniform(0.3, 0.9) * seconds, "remove"))
    for what in draw.sample(GIT, k=2):
        happenings.append(Happening(draw.uniform(0, 0.8) * seconds, what, draw.uniform(2.0, 6.0)))
    for what in draw.sample(PROCESS, k=draw.randint(0, 2)):
        happenings.append(Happening(draw.uniform(0, 0.7) * seconds, what, draw.uniform(3.0, 8.0)))
    windows.sort(key=lambda window: window.start)
    happenings.sort(key=lambda happening: happening.at)
    return Plan(seed, seconds, tuple(windows), tuple(happenings))


def _instants(draw: random.Random, seconds: float, about: float) -> list[float]:
    found, at = [], 0.0
    while (at := at + draw.uniform(0.5, 1.5) * about) < seconds:
        found.append(at)
    return found

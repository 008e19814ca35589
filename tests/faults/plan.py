"""What goes wrong in one run, and when: drawn from a seed, so that a run can be repeated.

A seed and a length come in; windows of faults for the API server and the Git host, and things
that happen to processes and to the fleet, go out. Instants are seconds from the start. Each
fault names the rows of research part c that it stands for (tests/shape/test_fault_rows.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

__all__ = [
    "API",
    "GIT",
    "PROCESS",
    "ApiFault",
    "Happening",
    "Kind",
    "Only",
    "Plan",
    "Window",
    "plan_of",
]


class Kind(StrEnum):
    """What a fault proxy does to a request."""

    DELAY = "delay"
    """Hold it back for `seconds` before it goes on (c.2 rows 19 and 42)."""
    DROP = "drop"
    """Close the connection; the API server never sees it (c.2 row 18)."""
    LOSE = "lose"
    """Let it happen, and close the connection without an answer (c.2 row 20)."""
    CUT = "cut"
    """Answer with half of a body."""
    HANG = "hang"
    """Answer nothing for `seconds`, then close; it never happens (c.2 row 19)."""
    STATUS = "status"
    """Answer with `status` instead of the API server (c.2 rows 21 to 24, 31, 37, 38 and 53)."""
    PAGE = "page"
    """Answer 200 with a web page, as a proxy on the way does (c.2 row 55)."""
    STALE = "stale"
    """Answer a list with what the same list said earlier (c.2 rows 28 and 30)."""
    WATCH_HANG = "watch-hang"
    """A watch goes silent without an end (c.2 row 25)."""
    WATCH_END = "watch-end"
    """A watch ends soon after it began (c.2 row 26)."""
    WATCH_REPEAT = "watch-repeat"
    """A watch tells each event twice, and old ones again later (c.2 row 27)."""


WATCH_KINDS = frozenset({Kind.WATCH_HANG, Kind.WATCH_END, Kind.WATCH_REPEAT})
ANY_KINDS = frozenset({Kind.DROP, Kind.STATUS})
"""They meet watches and other requests alike."""


class Only(StrEnum):
    """Which requests a fault fits."""

    ANY = "any"
    LISTS = "lists"
    """Lists and watches."""
    WRITES = "writes"
    """Everything that changes something, dry runs too; not who-am-I."""
    DELETES = "deletes"
    DISCOVERY = "discovery"

    def fits(self, method: str, path: str) -> bool:
        """Whether a request is one of these; `path` with its query."""
        match self:
            case Only.ANY:
                return True
            case Only.LISTS:
                return method == "GET" and ("limit=" in path or "watch=true" in path)
            case Only.WRITES:
                return method != "GET" and "selfsubjectreviews" not in path
            case Only.DELETES:
                return method == "DELETE"
            case Only.DISCOVERY:
                parts = urlsplit(path).path.strip("/").split("/")
                return method == "GET" and len(parts) <= {"api": 2, "apis": 3}.get(parts[0], 0)


@dataclass(frozen=True, slots=True)
class ApiFault:
    """One way to treat a request; `share` of the requests that it fits are treated so."""

    kind: Kind
    share: float = 1.0
    seconds: float = 0.0
    status: int = 0
    retry_after: str = ""
    only: Only = Only.ANY
    message: str = "the fault proxy says so"

    def fits(self, method: str, path: str) -> bool:
        """Whether a request may be treated so."""
        watch = "watch=true" in path
        if self.kind not in ANY_KINDS and (self.kind in WATCH_KINDS) != watch:
            return False
        return self.only.fits(method, path)

    def __str__(self) -> str:
        rest = "" if self.only is Only.ANY else f"-{self.only}"
        return f"{self.kind}{self.status or ''}{rest}"


@dataclass(frozen=True, slots=True)
class Window:
    """A fault from one instant to another; `victim` is the controller it meets, empty for both."""

    start: float
    end: float
    fault: ApiFault
    victim: str = ""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something at an instant. `what`: commit, drift, remove, note, scale, or of GIT and PROCESS.

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
        kinds = sorted({str(window.fault) for window in self.windows})
        rest = sorted({h.what for h in self.happenings})
        return f"{', '.join(kinds)}; {', '.join(rest)}"


NO_SPACE = "etcdserver: mvcc: database space exceeded"

API: tuple[Callable[[random.Random], ApiFault], ...] = (
    lambda draw: ApiFault(Kind.DELAY, 0.5, draw.uniform(0.2, 6.0)),
    lambda draw: ApiFault(Kind.DELAY, 0.8, draw.uniform(1.0, 9.0), only=Only.WRITES),
    lambda draw: ApiFault(Kind.DROP, draw.uniform(0.3, 1.0)),
    lambda _: ApiFault(Kind.LOSE, 0.5),
    lambda _: ApiFault(Kind.LOSE, 0.7, only=Only.WRITES),
    lambda _: ApiFault(Kind.CUT, 0.4),
    lambda draw: ApiFault(Kind.HANG, 0.4, draw.uniform(2.0, 8.0)),
    lambda draw: ApiFault(Kind.STATUS, 0.5, status=draw.choice((500, 502, 503, 504))),
    lambda draw: ApiFault(
        Kind.STATUS, 0.5, status=429, retry_after=draw.choice(("", "1", "2", "body"))
    ),
    lambda _: ApiFault(Kind.STATUS, 0.3, status=401),
    lambda draw: ApiFault(
        Kind.STATUS, 1.0, status=403, only=draw.choice((Only.LISTS, Only.WRITES, Only.DELETES))
    ),
    lambda draw: ApiFault(Kind.STATUS, 0.8, status=draw.choice((404, 503)), only=Only.DISCOVERY),
    lambda _: ApiFault(Kind.STATUS, 0.6, status=409, only=Only.WRITES),
    lambda _: ApiFault(Kind.STATUS, 0.3, status=410),
    lambda _: ApiFault(Kind.STATUS, 1.0, status=500, only=Only.WRITES, message=NO_SPACE),
    lambda _: ApiFault(Kind.PAGE, 0.4),
    lambda _: ApiFault(Kind.STALE, 0.5, only=Only.LISTS),
    lambda _: ApiFault(Kind.WATCH_HANG),
    lambda _: ApiFault(Kind.WATCH_END),
    lambda _: ApiFault(Kind.WATCH_REPEAT),
)
"""Every fault of the API server that is drawn from."""

GIT = {
    "git-401": "the host lets nobody in (c.3 row 56)",
    "git-404": "the host has no such repository (c.3 row 56)",
    "git-503": "the host is overloaded (c.3 row 56)",
    "git-truncate": "packs end early (c.3 row 58)",
    "git-hang": "nothing is answered (c.3 row 57)",
    "git-slow": "answers come byte by byte (c.3 row 57)",
    "git-dead": "connections are closed (c.3 row 56)",
    "git-race": "somebody pushes to the status branch just then (c.3 row 68)",
    "git-full": "the host's disk is full (c.1 row 10)",
    "git-protected": "the host refuses the status branch (c.3 row 69)",
    "git-rewrite": "the newest commit is replaced by force (c.3 row 60)",
    "git-gone": "the branch is deleted for a while (c.3 row 61)",
    "git-litter": "the status file is broken by hand (c.3 row 71)",
}
"""What may happen to the Git host, and to the branches in it."""
PROCESS = {
    "kill": "SIGKILL of the leader (c.1 rows 1 and 2)",
    "term": "SIGTERM of the leader (c.1 row 6)",
    "stop": "SIGSTOP and SIGCONT of the leader (c.1 row 7)",
    "crash-loop": "SIGKILL of the leader again and again (c.1 row 8)",
    "few-files": "the leader can open no further file or socket (c.1 row 12)",
    "disk-full": "neither the mirror nor the log takes a byte (c.1 row 10)",
    "api-restart": "SIGKILL of the API server (c.2 row 17)",
    "api-freeze": "SIGSTOP of the API server (c.2 row 18)",
    "etcd-freeze": "SIGSTOP of etcd (c.2 row 19)",
    "etcd-restart": "SIGKILL of etcd (c.2 row 17)",
}
"""What may happen to a process."""


def plan_of(seed: int, seconds: float) -> Plan:
    """At least three kinds of faults at the API server, two of Git's, and work to do all along."""
    draw = random.Random(seed)
    windows = []
    for make in draw.sample(API, k=draw.randint(3, 5)):
        for _ in range(max(1, round(seconds / 20))):
            start = draw.uniform(0, seconds * 0.8)
            end = min(seconds, start + draw.uniform(2.0, 8.0))
            windows.append(Window(start, end, make(draw), draw.choice(("", "", "one", "two"))))
    happenings = [Happening(at, "commit") for at in _instants(draw, seconds, 6.0)]
    happenings += [Happening(at, "drift") for at in _instants(draw, seconds, 3.0)]
    happenings += [Happening(at, "scale") for at in _instants(draw, seconds, 4.0)]
    happenings += [Happening(at, "note") for at in _instants(draw, seconds, 12.0)]
    happenings.append(Happening(draw.uniform(0.3, 0.9) * seconds, "remove"))
    for what in draw.sample(sorted(GIT), k=2):
        happenings.append(Happening(draw.uniform(0, 0.8) * seconds, what, draw.uniform(2.0, 6.0)))
    for what in draw.sample(sorted(PROCESS), k=draw.randint(0, 2)):
        happenings.append(Happening(draw.uniform(0, 0.7) * seconds, what, draw.uniform(3.0, 8.0)))
    windows.sort(key=lambda window: window.start)
    happenings.sort(key=lambda happening: happening.at)
    return Plan(seed, seconds, tuple(windows), tuple(happenings))


def _instants(draw: random.Random, seconds: float, about: float) -> list[float]:
    found, at = [], 0.0
    while (at := at + draw.uniform(0.5, 1.5) * about) < seconds:
        found.append(at)
    return found

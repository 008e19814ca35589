"""What a rehearsal saw: each request, each pod, each event. Plain data.

Filled by the loads and by watch.py, read by judge.py and by who draws pictures. Times are
milliseconds of the ground's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "Ending",
    "Happening",
    "NodeEnd",
    "Outcome",
    "PodLife",
    "PodState",
    "Recording",
    "Request",
]


class Outcome(StrEnum):
    """What came of a request."""

    OPEN = "Open"
    """Under way, nothing wrong."""
    OK = "Ok"
    REFUSED = "Refused"
    """No byte of an answer: no endpoint, no connection, or an engine that takes none."""
    TRUNCATED = "Truncated"
    """The answer began and broke off."""


@dataclass(slots=True, eq=False)
class Request:
    """One request. `client` is `lag-0s`, `sticky-1` and so on; `pod` is a UID, empty for none.

    `ends_ms` is when its last token comes if nothing happens; None where that is not known yet.
    """

    service: str
    client: str
    at_ms: int
    output_ms: int
    outcome: Outcome = Outcome.OPEN
    pod: str = ""
    node: str = ""
    first_ms: int | None = None
    ends_ms: int | None = None
    ended_ms: int | None = None
    why: str = ""

    @property
    def failed(self) -> bool:
        """Whether its client got less than the whole answer."""
        return self.outcome in {Outcome.REFUSED, Outcome.TRUNCATED}


class PodState(StrEnum):
    """What a pod does, as far as its own object says."""

    PENDING = "Pending"
    STARTING = "Starting"
    READY = "Ready"
    DRAINING = "Draining"
    """Ready without traffic, or told to stop."""
    FAILING = "Failing"
    """It crashed, or its image does not come, and it is not Ready."""
    GONE = "Gone"


@dataclass(slots=True, eq=False)
class PodLife:
    """A pod of a service: its states with the time each began, oldest first."""

    uid: str
    name: str
    service: str
    node: str = ""
    gpus: int = 0
    states: list[tuple[int, PodState]] = field(default_factory=list)

    @property
    def ever_ready(self) -> bool:
        """Whether it served at any time."""
        return any(state is PodState.READY for _, state in self.states)

    @property
    def last(self) -> PodState:
        """Its newest state."""
        return self.states[-1][1] if self.states else PodState.PENDING

    def bound_ms(self) -> int | None:
        """When a node took it, as far as it was seen."""
        began = [at for at, state in self.states if state is not PodState.PENDING]
        return began[0] if began and self.node else None


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that the scenario did."""

    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """A node that goes away: when that was said (the end itself for no notice), and its end."""

    node: str
    said_ms: int
    end_ms: int


class Ending(StrEnum):
    """How a rehearsal came to its end."""

    PLAYED = "Played"
    NEVER_BEGAN = "NeverBegan"
    """The services were not Ready before the load was to begin."""


@dataclass(slots=True)
class Recording:
    """Everything seen. `ready` by service: (time, Ready replicas with traffic) at each change.

    `double_booked` is the most GPUs of one node that were asked for beyond what it has.
    """

    seed: int
    ground: str
    time_scale: float = 1.0
    ending: Ending = Ending.PLAYED
    why: str = ""
    load_ms: int = 0
    """When the load began."""
    zero_ms: int = 0
    """When the warm-up ended: events are counted from here."""
    end_ms: int = 0
    wanted: dict[str, int] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    pods: dict[str, PodLife] = field(default_factory=dict)
    ready: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    happenings: list[Happening] = field(default_factory=list)
    ends: list[NodeEnd] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    double_booked: int = 0

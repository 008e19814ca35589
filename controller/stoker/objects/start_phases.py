"""The phases of one start of an engine's pod, from the instants at which they ended.

In: an instant for each milestone that is known, milliseconds since the epoch. Out: the
spans between them, in order. A milestone that nobody saw leaves the phases before and
after it unknown: they share a span, and how they divide it is not guessed. Called by
start_facts and by decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Milestone", "Phase", "Span", "chain", "spans_of"]


class Milestone(StrEnum):
    """What a start passes, in this order."""

    CREATED = "Created"
    """The pod exists."""
    NOMINATED = "Nominated"
    """A node autoscaler asked for a node for it."""
    SCHEDULED = "Scheduled"
    """It is bound to a node."""
    PREPARING = "Preparing"
    """Its first init container runs."""
    PULLING = "Pulling"
    """The engine's image is being pulled."""
    PULLED = "Pulled"
    """The engine's image is on the node."""
    STARTED = "Started"
    """The engine's container runs."""
    RESTARTED = "Restarted"
    """It runs again, after it failed."""
    IMPORTED = "Imported"
    """The engine's program is loaded."""
    CONFIGURED = "Configured"
    """Its configuration is known."""
    LOADING = "Loading"
    """It begins to load the model."""
    DOWNLOADED = "Downloaded"
    """The weights are on the node."""
    LOADED = "Loaded"
    """The weights are in the GPU."""
    COMPILED = "Compiled"
    """Kernels are compiled."""
    CAPTURED = "Captured"
    """CUDA graphs are captured."""
    SERVING = "Serving"
    """Its HTTP server answers."""
    READY = "Ready"
    """The pod is Ready."""


class Phase(StrEnum):
    """What a start does between two milestones."""

    QUEUE = "Queue"
    """Until a node is asked for."""
    NODE = "Node"
    """The node is launched, joins and shows its GPUs."""
    SCHEDULE = "Schedule"
    """Until it is bound to a node that stands."""
    SETUP = "Setup"
    """Sandbox, network and volumes."""
    INIT_CONTAINERS = "InitContainers"
    """Init containers run."""
    IMAGE_PULL = "ImagePull"
    """The engine's image is pulled."""
    CONTAINER_START = "ContainerStart"
    """The container is made and started."""
    CRASHES = "Crashes"
    """Runs of the engine that failed, and the waits between them."""
    PROCESS = "Process"
    """The program is loaded."""
    CONFIG = "Config"
    """Configuration and tokenizer are read."""
    DEVICE = "Device"
    """CUDA contexts are made, workers find each other."""
    DOWNLOAD = "Download"
    """Weights come to the node."""
    WEIGHTS = "Weights"
    """Weights go into the GPU."""
    COMPILE = "Compile"
    """Kernels are compiled."""
    GRAPHS = "Graphs"
    """CUDA graphs are captured."""
    ENGINE_INIT = "EngineInit"
    """The KV cache is made and the engine warmed up."""
    PROBE = "Probe"
    """The startup probe finds it ready."""


OPTIONAL = frozenset(
    {
        Milestone.NOMINATED,
        Milestone.PREPARING,
        Milestone.RESTARTED,
        Milestone.IMPORTED,
        Milestone.CONFIGURED,
        Milestone.DOWNLOADED,
        Milestone.COMPILED,
        Milestone.CAPTURED,
    }
)
"""Milestones that many starts do not have: unseen, their phase is none rather than unknown."""

_ENDS = {
    Milestone.NOMINATED: Phase.QUEUE,
    Milestone.SCHEDULED: Phase.SCHEDULE,
    Milestone.PREPARING: Phase.SETUP,
    Milestone.PULLING: Phase.SETUP,
    Milestone.PULLED: Phase.IMAGE_PULL,
    Milestone.STARTED: Phase.CONTAINER_START,
    Milestone.RESTARTED: Phase.CRASHES,
    Milestone.IMPORTED: Phase.PROCESS,
    Milestone.CONFIGURED: Phase.CONFIG,
    Milestone.LOADING: Phase.DEVICE,
    Milestone.DOWNLOADED: Phase.DOWNLOAD,
    Milestone.LOADED: Phase.WEIGHTS,
    Milestone.COMPILED: Phase.COMPILE,
    Milestone.CAPTURED: Phase.GRAPHS,
    Milestone.SERVING: Phase.ENGINE_INIT,
    Milestone.READY: Phase.PROBE,
}
"""The phase that a milestone ends, where nothing unusual came before it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Phases that follow each other, and when the first began and the last ended.

    One phase alone is known exactly. Of several only the sum is. An end that is None was
    not seen: the phases before the first and after the last known instant have such spans.
    """

    phases: tuple[Phase, ...]
    begin_ms: int | None
    end_ms: int | None

    @property
    def took_ms(self) -> int | None:
        """Milliseconds of all its phases together, None when an end is unknown."""
        if self.begin_ms is None or self.end_ms is None:
            return None
        return self.end_ms - self.begin_ms


def chain(known: Mapping[Milestone, int]) -> tuple[Milestone, ...]:
    """The milestones that this start must have passed, in order."""
    return tuple(each for each in Milestone if each not in OPTIONAL or each in known)


def spans_of(instants: Mapping[Milestone, int]) -> tuple[Span, ...]:
    """All phases of a start as spans that follow each other without gap or overlap.

    Instants that contradict the others (clocks of nodes differ) count as unknown; within
    one second they are put in order, for Kubernetes writes whole seconds.
    """
    known = _in_order(instants)
    spans: list[Span] = []
    waiting: list[Phase] = []
    begin_ms: int | None = None
    passed: list[Milestone] = []
    for milestone in chain(known):
        if passed:
            waiting.append(_phase(milestone, passed))
        passed.append(milestone)
        if milestone in known:
            if waiting:
                spans.append(Span(tuple(waiting), begin_ms, known[milestone]))
            waiting, begin_ms = [], known[milestone]
    if waiting:
        spans.append(Span(tuple(waiting), begin_ms, None))
    return tuple(spans)


def _phase(milestone: Milestone, passed: list[Milestone]) -> Phase:
    """The phase that ends here; what came before it may give it another name."""
    before = set(passed)
    match milestone:
        case Milestone.SCHEDULED if Milestone.NOMINATED in before:
            return Phase.NODE
        case Milestone.PULLING if Milestone.PREPARING in before:
            return Phase.INIT_CONTAINERS
        case Milestone.CONFIGURED if Milestone.IMPORTED not in before:
            return Phase.PROCESS
        case Milestone.LOADING if not before & {Milestone.IMPORTED, Milestone.CONFIGURED}:
            return Phase.PROCESS
        case _:
            return _ENDS[milestone]


def _in_order(instants: Mapping[Milestone, int]) -> dict[Milestone, int]:
    """The largest set of instants that does not run backwards; the earliest milestones win
    a tie.
    """
    found = [(each, instants[each]) for each in Milestone if each in instants]
    best: list[tuple[int, int]] = []  # length of the longest run that ends here, its predecessor
    for place, (_, ms) in enumerate(found):
        runs = [
            (best[before][0], -before)
            for before in range(place)
            if found[before][1] // 1_000 <= ms // 1_000
        ]
        length, before = max(runs, default=(0, 1))
        best.append((length + 1, -before))
    place = max(range(len(best)), key=lambda at: (best[at][0], -at), default=-1)
    kept: list[tuple[Milestone, int]] = []
    while place >= 0:
        kept.append(found[place])
        place = best[place][1]
    ordered: dict[Milestone, int] = {}
    latest = 0
    for milestone, ms in reversed(kept):
        latest = max(latest, ms)
        ordered[milestone] = latest
    return ordered

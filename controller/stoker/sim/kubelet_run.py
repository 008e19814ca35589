"""One pod on a simulated node: where it is in its start, and what its containers say.

In: time, durations, faults. Out: stages and `ContainerState`s. Pure; `sim.kubelet` owns the
cluster, the addresses and the engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from stoker.model.refs import ObjectRef
from stoker.sim.pod_status import ContainerState

__all__ = [
    "EngineMaker",
    "FaultKind",
    "PodFault",
    "PodRun",
    "RunningEngine",
    "Stage",
    "back_off_ms",
]

FIRST_BACK_OFF_MS = 10_000
LONGEST_BACK_OFF_MS = 300_000
"""Ten seconds, doubling, to five minutes: the kubelet's own back-off for crashes and pulls."""


class Stage(StrEnum):
    """What the pod does until its `until_ms`."""

    PULLING = "Pulling"
    PULL_BACK_OFF = "PullBackOff"
    LOADING = "Loading"
    INIT = "Init"
    PROBING = "Probing"
    READY = "Ready"
    CRASH_BACK_OFF = "CrashBackOff"
    STOPPING = "Stopping"


class FaultKind(StrEnum):
    """How a start goes wrong."""

    IMAGE_PULL = "ImagePull"
    CRASH_LOOP = "CrashLoop"
    STUCK_START = "StuckStart"
    REFUSED = "Refused"
    """As a kubelet whose device plugin allocates nothing: the pod is over at once."""


@dataclass(frozen=True, slots=True)
class PodFault:
    """One fault for all pods that match every filled field; names and images by beginning."""

    kind: FaultKind
    node: str = ""
    pod: str = ""
    image: str = ""

    def hits(self, pod: dict[str, Any], image: str) -> bool:
        """Whether it concerns that pod."""
        return (
            self.node in {"", pod["spec"].get("nodeName")}
            and pod["metadata"]["name"].startswith(self.pod)
            and image.startswith(self.image)
        )


class RunningEngine(Protocol):
    """A real engine of a pod; `sim.engine.Engine` is one."""

    @property
    def address(self) -> str:
        """`127.0.0.1:port`."""
        ...

    @property
    def in_flight(self) -> int:
        """Requests running and waiting."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether it no longer listens."""
        ...

    def begin_shutdown(self, timeout_seconds: float = 0.0) -> None:
        """SIGTERM."""
        ...

    def crash(self) -> None:
        """SIGKILL."""
        ...


class EngineMaker(Protocol):
    """Starts engines and asks their probes; `sim.kubelet_engines.Engines` is one."""

    def start(
        self, pod: dict[str, Any], load_seconds: float, *, stuck: bool = False
    ) -> RunningEngine:
        """An engine that answers after `load_seconds`, never if `stuck`."""
        ...

    def passes(self, pod: dict[str, Any], engine: Any) -> bool:
        """Whether the pod's probes pass against an engine that was started here."""
        ...


@dataclass(slots=True, eq=False)
class PodRun:
    """What the kubelet remembers of a pod. Times in ms; `until_ms` None = nothing is due."""

    ref: ObjectRef
    uid: str
    node: str
    stage: Stage
    until_ms: int | None
    ip: str = ""
    restarts: int = 0
    pull_failures: int = 0
    running_since_ms: int = 0
    exit_code: int | None = None
    ended_ms: int = 0
    message: str = ""
    engine: RunningEngine | None = None
    stop_sent: bool = False
    drain_until_ms: int = 0
    deadline_ms: int = 0

    def state(self) -> ContainerState:
        """What the containers say in this stage."""
        waiting = {
            Stage.PULLING: "ContainerCreating",
            Stage.PULL_BACK_OFF: "ImagePullBackOff",
            Stage.CRASH_BACK_OFF: "CrashLoopBackOff",
        }.get(self.stage, "")
        serving = self.stage is Stage.READY
        return ContainerState(
            waiting=waiting,
            message=self.message if waiting else "",
            running_since_ms=0 if waiting else self.running_since_ms,
            started=serving,
            ready=serving,
            restarts=self.restarts,
            exit_code=self.exit_code,
            ended_ms=self.ended_ms,
        )


def back_off_ms(failures: int) -> int:
    """How long to wait after so many failures in a row (at least 1)."""
    return min(LONGEST_BACK_OFF_MS, FIRST_BACK_OFF_MS << min(failures - 1, 10))

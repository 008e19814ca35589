"""One start of an engine's pod: what the pod, its events and its log say of it.

In: the raw pod, the raw events that concern it, the log of the engine's present run. Each
may be missing. Out: a `Start` with its phases. Pure; called by the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker.model.log_profile import LogProfile
from stoker.model.times import instant_of
from stoker.objects.health_fields import condition, integer, items, mapping, text
from stoker.objects.start_log import read_log
from stoker.objects.start_phases import Milestone, Span, spans_of

__all__ = ["ENGINE_CONTAINER", "Pull", "Start", "concerns", "start_from"]

ENGINE_CONTAINER = "engine"
"""The main container of our templates; the only one of anybody else's."""

_NOMINATIONS = frozenset({"Nominated", "TriggeredScaleUp"})
"""Events of Karpenter and of the cluster autoscaler: a node was asked for."""
_GO_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")
_PULLED_IN = re.compile(r" in (\S+)(?: \((\S+) including waiting\))?")
_IMAGE_SIZE = re.compile(r"Image size: (\d{1,15}) bytes")
_PRESENT = "already present on machine"


@dataclass(frozen=True, slots=True)
class Pull:
    """What the kubelet says of the pull. `waited_ms` is time behind other pulls of the node.

    None is unknown. `present` says that nothing was pulled.
    """

    size_bytes: int | None = None
    waited_ms: int | None = None
    present: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """One start. `begin_ms` and `end_ms` are the first and last known instant, None for none.

    `why` says what keeps the engine's own phases unknown, empty when they are known.
    """

    namespace: str = ""
    name: str = ""
    node: str = ""
    image: str = ""
    engine: str = ""
    version: str = ""
    ready: bool = False
    restarts: int = 0
    pull: Pull = field(default_factory=Pull)
    spans: tuple[Span, ...] = ()
    why: str = ""

    @property
    def begin_ms(self) -> int | None:
        """The first instant that is known."""
        return next((span.begin_ms for span in self.spans if span.begin_ms is not None), None)

    @property
    def end_ms(self) -> int | None:
        """The last instant that is known."""
        ends = (span.end_ms for span in reversed(self.spans) if span.end_ms is not None)
        return next(ends, None)

    @property
    def took_ms(self) -> int | None:
        """All of it, as far as it is known; None when no two instants are."""
        if self.begin_ms is None or self.end_ms is None:
            return None
        return self.end_ms - self.begin_ms


@dataclass(frozen=True, slots=True)
class _Event:
    reason: str
    message: str
    first_ms: int | None
    last_ms: int | None
    field_path: str


def concerns(event: dict[str, Any], namespace: str, name: str, uid: str = "") -> bool:
    """Whether an event (core/v1 or events.k8s.io/v1) is about that pod; no UID fits any."""
    about = mapping(event, "involvedObject") or mapping(event, "regarding")
    told = text(about, "uid")
    return (
        text(about, "kind", "Pod") == "Pod"
        and text(about, "name") == name
        and text(about, "namespace", namespace) == namespace
        and (not uid or not told or told == uid)
    )


def start_from(
    pod: dict[str, Any],
    events: Iterable[dict[str, Any]] = (),
    log: Sequence[str] = (),
    profiles: Iterable[LogProfile] = (),
) -> Start:
    """Read one start. An empty pod is one that was not recorded; `events` are its own only."""
    raw_events = tuple(events)
    facts = tuple(_event(each) for each in raw_events)
    metadata, spec, status = mapping(pod, "metadata"), mapping(pod, "spec"), mapping(pod, "status")
    containers = items(spec, "containers")
    engine = _engine(containers)
    name = text(engine, "name")
    mine = [each for each in facts if _of_engine(each, name)]
    state = _engine_state(status, name)
    instants = _pod_instants(metadata, spec, status, state)
    pull = _add_events(instants, mine)
    restarts = integer(state, "restartCount", 0)
    _add_restarts(instants, mine, restarts)
    image = text(engine, "image") or _pulled_image(mine)
    read = read_log(log, image, profiles)
    for milestone, ms in read.instants:
        instants.setdefault(milestone, ms)
    about = _about(raw_events)
    return Start(
        namespace=text(metadata, "namespace") or about[0],
        name=text(metadata, "name") or about[1],
        node=text(spec, "nodeName"),
        image=image,
        engine=read.engine,
        version=read.version,
        ready=Milestone.READY in instants,
        restarts=restarts,
        pull=pull,
        spans=spans_of(instants) if instants else (),
        why=read.why,
    )


def _engine(containers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    named = (each for each in containers if each.get("name") == ENGINE_CONTAINER)
    return next(named, containers[0] if containers else {})


def _engine_state(status: dict[str, Any], name: str) -> dict[str, Any]:
    states = items(status, "containerStatuses")
    return next((each for each in states if each.get("name") == name), {})


def _event(raw: dict[str, Any]) -> _Event:
    """Of a series the first and the last; an event that happened once has one instant."""
    about = mapping(raw, "involvedObject") or mapping(raw, "regarding")
    series = mapping(raw, "series")
    firsts = ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    lasts = ("lastTimestamp", "deprecatedLastTimestamp", "eventTime")
    first = next((ms for key in firsts if (ms := instant_of(raw.get(key))) is not None), None)
    last = instant_of(series.get("lastObservedTime"))
    if last is None:
        last = next((ms for key in lasts if (ms := instant_of(raw.get(key))) is not None), None)
    return _Event(
        reason=text(raw, "reason"),
        message=text(raw, "message") or text(raw, "note"),
        first_ms=first if first is not None else last,
        last_ms=last if last is not None else first,
        field_path=text(about, "fieldPath"),
    )


def _of_engine(event: _Event, name: str) -> bool:
    """Not of another container; where the pod was not recorded, of any but init containers."""
    if not event.field_path:
        return True
    if not name:
        return not event.field_path.startswith("spec.initContainers")
    return event.field_path == f"spec.containers{{{name}}}"


def _about(events: Sequence[dict[str, Any]]) -> tuple[str, str]:
    for event in events:
        about = mapping(event, "involvedObject") or mapping(event, "regarding")
        if text(about, "name"):
            return text(about, "namespace"), text(about, "name")
    return "", ""


def _pod_instants(
    metadata: dict[str, Any], spec: dict[str, Any], status: dict[str, Any], state: dict[str, Any]
) -> dict[Milestone, int]:
    """What the pod itself holds; conditions outlast events."""
    whole = {"status": status}
    found: dict[Milestone, int | None] = {
        Milestone.CREATED: instant_of(metadata.get("creationTimestamp")),
        Milestone.STARTED: instant_of(mapping(mapping(state, "state"), "running").get("startedAt")),
    }
    for kind, milestone in (("PodScheduled", Milestone.SCHEDULED), ("Ready", Milestone.READY)):
        entry = condition(whole, kind)
        if entry.get("status") == "True":
            found[milestone] = instant_of(entry.get("lastTransitionTime"))
    if items(spec, "initContainers"):
        found[Milestone.PREPARING] = _first_init(status)
    return {milestone: ms for milestone, ms in found.items() if ms is not None}


def _first_init(status: dict[str, Any]) -> int | None:
    starts = [
        instant_of(mapping(mapping(each, "state"), word).get("startedAt"))
        for each in items(status, "initContainerStatuses")
        for word in ("running", "terminated")
    ]
    return min((ms for ms in starts if ms is not None), default=None)


def _add_events(instants: dict[Milestone, int], events: Sequence[_Event]) -> Pull:
    """Fill in what events tell and the pod does not; the pull is told by events alone."""
    for event in events:
        if event.first_ms is None or event.last_ms is None:
            continue
        if event.reason in _NOMINATIONS:
            instants[Milestone.NOMINATED] = min(
                event.first_ms, instants.get(Milestone.NOMINATED, event.first_ms)
            )
        elif event.reason == "Scheduled":
            instants.setdefault(Milestone.SCHEDULED, event.first_ms)
        elif event.reason == "Started":
            instants.setdefault(Milestone.STARTED, event.last_ms)
        elif event.reason == "Pulling":
            instants[Milestone.PULLING] = min(
                event.first_ms, instants.get(Milestone.PULLING, event.first_ms)
            )
    return _add_pulled(instants, events)


def _add_pulled(instants: dict[Milestone, int], events: Sequence[_Event]) -> Pull:
    """The first pull that succeeded; later ones are of a container that restarted."""
    pulled = [each for each in events if each.reason == "Pulled" and each.first_ms is not None]
    if not pulled:
        return Pull()
    event = min(pulled, key=lambda each: each.first_ms or 0)
    done_ms = event.first_ms or 0
    instants[Milestone.PULLED] = done_ms
    if _PRESENT in event.message:
        instants.setdefault(Milestone.PULLING, done_ms)
        return Pull(present=True, waited_ms=0)
    told = _PULLED_IN.search(event.message)
    took_ms = _go_duration_ms(told[1]) if told else None
    whole_ms = _go_duration_ms(told[2]) if told and told[2] else None
    in_all_ms = whole_ms if whole_ms is not None else took_ms
    if in_all_ms is not None:
        instants.setdefault(Milestone.PULLING, done_ms - in_all_ms)
    waited_ms = None
    if whole_ms is not None and took_ms is not None:
        waited_ms = max(0, whole_ms - took_ms)
    size = _IMAGE_SIZE.search(event.message)
    return Pull(size_bytes=int(size[1]) if size else None, waited_ms=waited_ms)


def _add_restarts(instants: dict[Milestone, int], events: Sequence[_Event], restarts: int) -> None:
    """After a restart the container's own instant is of its present run."""
    if not restarts:
        return
    now_runs_ms = instants.pop(Milestone.STARTED, None)
    if now_runs_ms is not None:
        instants[Milestone.RESTARTED] = now_runs_ms
    firsts = [each.first_ms for each in events if each.reason == "Started" and each.first_ms]
    if firsts and (now_runs_ms is None or min(firsts) < now_runs_ms):
        instants[Milestone.STARTED] = min(firsts)


def _pulled_image(events: Iterable[_Event]) -> str:
    for event in events:
        if event.reason in {"Pulling", "Pulled"}:
            quoted = event.message.split('"')
            if len(quoted) >= 3:
                return quoted[1]
    return ""


def _go_duration_ms(written: str) -> int | None:
    """`3m44s` or `890ms` in milliseconds; None for what Go would not have printed."""
    found = _GO_DURATION.fullmatch(written.rstrip("."))
    if not found or not any(found.groups()):
        return None
    hours, minutes, seconds, millis = found.groups()
    whole = int(hours or 0) * 3_600_000 + int(minutes or 0) * 60_000 + int(millis or 0)
    return whole + round(float(seconds or 0) * 1_000)

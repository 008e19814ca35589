"""What the simulated controllers read from a pod: alive, ready, for how long, how large."""

from __future__ import annotations

from typing import Any

from stoker.model.shape import Resources
from stoker.model.times import to_milliseconds
from stoker.objects.quantity import bytes_of, cpu_millis, parse_quantity
from stoker.sim.view import is_dying

__all__ = [
    "condition",
    "is_active",
    "is_available",
    "is_over",
    "is_ready",
    "phase_of",
    "ready_since_ms",
    "requests_of",
    "resources_from_map",
    "restarts_of",
]


def phase_of(pod: dict[str, Any]) -> str:
    """Its phase; a pod without status is Pending."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_over(pod: dict[str, Any]) -> bool:
    """Whether its containers ended for good."""
    return phase_of(pod) in {"Succeeded", "Failed"}


def is_active(pod: dict[str, Any]) -> bool:
    """Whether it counts as a replica: neither over nor on its way out."""
    return not is_over(pod) and not is_dying(pod)


def condition(body: dict[str, Any], kind: str) -> dict[str, Any] | None:
    """The status condition of that type, if it has one."""
    for each in (body.get("status") or {}).get("conditions") or ():
        if each.get("type") == kind:
            found: dict[str, Any] = each
            return found
    return None


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether its Ready condition is True."""
    found = condition(pod, "Ready")
    return found is not None and found.get("status") == "True"


def ready_since_ms(pod: dict[str, Any]) -> int:
    """When it last became Ready, 0 when it doesn't say."""
    found = condition(pod, "Ready") or {}
    text = found.get("lastTransitionTime")
    return to_milliseconds(text) if text else 0


def is_available(pod: dict[str, Any], min_ready_seconds: int, now_ms: int) -> bool:
    """Whether it is Ready, and has been for that long."""
    if not is_ready(pod):
        return False
    return now_ms - ready_since_ms(pod) >= min_ready_seconds * 1000


def restarts_of(pod: dict[str, Any]) -> int:
    """The highest restart count among its containers."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(s.get("restartCount") or 0) for s in statuses), default=0)


def requests_of(pod: dict[str, Any]) -> Resources:
    """What it takes from a node: containers in sum, or the largest init container; one pod."""
    spec = pod.get("spec") or {}
    main = Resources()
    for container in spec.get("containers") or ():
        main = main.plus(_requests(container))
    for container in spec.get("initContainers") or ():
        main = _larger(main, _requests(container))
    overhead = resources_from_map(spec.get("overhead") or {})
    total = main.plus(overhead)
    return Resources(total.cpu_millis, total.memory_bytes, 1, total.extended)


def resources_from_map(amounts: dict[str, Any]) -> Resources:
    """A requests, limits, capacity or allocatable map as integers."""
    extended = []
    for name, amount in sorted(amounts.items()):
        if name not in {"cpu", "memory", "pods"} and not name.startswith("ephemeral-storage"):
            extended.append((name, int(parse_quantity(amount))))
    return Resources(
        cpu_millis=cpu_millis(amounts.get("cpu", 0)),
        memory_bytes=bytes_of(amounts.get("memory", 0)),
        pods=int(parse_quantity(amounts.get("pods", 0))),
        extended=tuple(extended),
    )


def _requests(container: dict[str, Any]) -> Resources:
    """Requests, which default to the limits one by one."""
    resources = container.get("resources") or {}
    return resources_from_map(
        {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    )


def _larger(one: Resources, other: Resources) -> Resources:
    names = sorted({name for name, _ in one.extended} | {name for name, _ in other.extended})
    return Resources(
        max(one.cpu_millis, other.cpu_millis),
        max(one.memory_bytes, other.memory_bytes),
        0,
        tuple((name, max(one.device(name), other.device(name))) for name in names),
    )

"""A start as the cluster tells it: the newest pod of a service, or one pod by name.

Reads pods, events and one log; writes nothing. Called by coldstart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.cli.coldstart_recorded import Recorded
from stoker.errors import Stalled, StokerError
from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.model.log_profile import LogProfile
from stoker.model.refs import ObjectRef
from stoker.objects.health_fields import items, mapping, text
from stoker.objects.names import SERVICE_LABEL
from stoker.objects.start_facts import ENGINE_CONTAINER, Start, concerns, start_from

__all__ = ["Found", "live_start", "read_live_start"]

LOG_BYTES = 16 * 2**20
"""Of the log, from the start of the container's run: a start has said all long before."""


@dataclass(frozen=True, slots=True)
class Found:
    """A start, the names of the service's other pods, and what could not be read."""

    start: Recorded
    others: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def live_start(
    client: Client, name: str, namespace: str, profiles: Iterable[LogProfile]
) -> tuple[Start, tuple[str, ...]]:
    """The start that a person means, and what to tell on the side. Raises as read_live_start."""
    found = read_live_start(client, name, namespace)
    notes = [f"not read: {text}" for text in found.unread]
    if found.others:
        notes.append(f"{len(found.others)} older pods of it: {', '.join(found.others[:5])}")
    pod, events, log = found.start.pod, found.start.events, found.start.log
    return start_from(pod, events, log, profiles), tuple(notes)


def read_live_start(client: Client, name: str, namespace: str = "") -> Found:
    """The start of the pod that a person means. Raises Stalled where there is none.

    A service's newest pod is meant by the service's name. Events and log may be out of
    reach; then their phases are unknown, and `unread` says why.
    """
    space, _, short = name.rpartition("/")
    space = space or namespace
    pods = _pods(client, space, short)
    pod = pods[0]
    metadata = mapping(pod, "metadata")
    where = (text(metadata, "namespace"), text(metadata, "name"), text(metadata, "uid"))
    unread: list[str] = []
    events: Iterable[dict[str, Any]] = ()
    try:
        selector = f"involvedObject.kind=Pod,involvedObject.name={where[1]}"
        events = client.list("", "Event", where[0], field_selector=selector).items
    except StokerError as error:
        unread.append(f"events: {error.message}")
    lines: tuple[str, ...] = ()
    container = _engine(pod)
    try:
        if container:
            ref = ObjectRef("", "Pod", where[0], where[1])
            lines = tuple(client.log(ref, container, limit_bytes=LOG_BYTES).splitlines())
    except StokerError as error:
        unread.append(f"log: {error.message}")
    mine = tuple(event for event in events if concerns(event, *where))
    others = tuple(text(mapping(each, "metadata"), "name") for each in pods[1:])
    return Found(Recorded(pod, mine, lines), others, tuple(unread))


def _pods(client: Client, namespace: str, name: str) -> list[dict[str, Any]]:
    """Pods of the service, newest first; else the pod of that name, in the first namespace."""
    selector = f"{SERVICE_LABEL}={name}"
    found = list(client.list("", "Pod", namespace, label_selector=selector).items)
    if not found and namespace:
        try:
            found = [client.get(ObjectRef("", "Pod", namespace, name))]
        except NotFound:
            found = []
    elif not found:
        every = client.list("", "Pod", field_selector=f"metadata.name={name}").items
        found = list(every)
    if not found:
        where = f" in namespace {namespace}" if namespace else ""
        raise Stalled(
            f"no service and no pod {name!r}{where}, and no folder of that name",
            code="no-such-pod",
            hint="kubectl get pods -A -l stoker.dev/service",
        )
    return sorted(found, key=_newest_first, reverse=True)


def _newest_first(pod: dict[str, Any]) -> tuple[str, str]:
    metadata = mapping(pod, "metadata")
    return text(metadata, "creationTimestamp"), text(metadata, "name")


def _engine(pod: dict[str, Any]) -> str:
    names = [text(each, "name") for each in items(mapping(pod, "spec"), "containers")]
    return ENGINE_CONTAINER if ENGINE_CONTAINER in names else next(iter(names), "")

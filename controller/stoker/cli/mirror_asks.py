"""What suspend, resume, override and reconcile share: find a mirror, and ask for something on it.

People's annotations stand beside ours on the mirrors; the controller reads them within a
second and its own writes leave them alone. Asking needs a right to patch the mirror, no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.cli.connect import connect, context_name
from stoker.cli.session import usage
from stoker.cli.style import narrate
from stoker.errors import Stalled, StokerError
from stoker.kube.client import Client
from stoker.kube.errors import KindNotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.objects.health_fields import items, mapping, text
from stoker.objects.names import FLEET_ID, FLEET_LABEL, GROUP, VERSION
from stoker.source.durations import duration_ms

__all__ = [
    "Asked",
    "Login",
    "annotate",
    "annotate_all",
    "check_override",
    "check_reason",
    "check_when_full",
    "find_fleet",
    "find_mirror",
    "is_suspended",
    "logged_in",
    "milliseconds",
    "narrate_place",
    "request_token",
]

MANAGER = "stoker-cli"
"""Field manager of people's annotations; never the controller's, which would take them off."""
LONGEST_MS = 31 * 86_400_000
"""What is to last longer belongs into Git."""


@dataclass(frozen=True, slots=True)
class Login:
    """Which cluster, as whom."""

    kubeconfig: Path | None = None
    context: str = ""
    as_user: str = ""
    timeout_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A mirror as it was read."""

    ref: ObjectRef
    live: dict[str, Any]

    @property
    def fleet(self) -> str:
        """The fleet that writes it."""
        return text(mapping(mapping(self.live, "metadata"), "labels"), FLEET_LABEL)

    @property
    def annotations(self) -> dict[str, Any]:
        """Its annotations."""
        return mapping(mapping(self.live, "metadata"), "annotations")

    @property
    def status(self) -> dict[str, Any]:
        """What the controller last said."""
        return mapping(self.live, "status")


def logged_in(login: Login) -> Client:
    """A client; the caller closes it."""
    return connect(
        login.kubeconfig,
        login.context,
        timeout_seconds=login.timeout_seconds,
        as_user=login.as_user,
    )


def find_mirror(cluster: Cluster, name: str, namespace: str, *, fleets: bool) -> Asked:
    """The mirror that a person means by NAME, NAMESPACE/NAME or fleet/NAME.

    Raises BadInput when there is none or more than one. Bundles have no mirror.
    """
    kind, _, rest = name.rpartition("fleet/")
    if rest != name and not kind:
        return find_fleet(cluster, rest)
    place, _, short = name.rpartition("/")
    place = place.removeprefix("ModelService/") or namespace
    services = _mirrors(cluster, "ModelService", place)
    found = [each for each in services if each.ref.name == short]
    if not found and fleets and not place:
        found = [each for each in _mirrors(cluster, "Fleet") if each.ref.name == short]
    if len(found) == 1:
        return found[0]
    if found:
        where = ", ".join(f"{each.ref.namespace}/{each.ref.name}" for each in found)
        raise usage(f"{len(found)} ModelServices are called {short}: {where}", "name one of them")
    what = "ModelService or Fleet" if fleets else "ModelService"
    raise usage(
        f"no {what} {name} has a mirror in this cluster",
        "a Bundle has none: commit the change to its file instead (spec.suspend, for instance)",
    )


def find_fleet(cluster: Cluster, name: str = "") -> Asked:
    """The mirror of a fleet by its name or Fleet file; without a name, of the only one."""
    fleets = _mirrors(cluster, "Fleet")
    found = [
        each
        for each in fleets
        if name in {"", each.ref.name}
        or name.lstrip("/") == text(mapping(mapping(each.live, "spec"), "source"), "path")
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.ref.name for each in fleets) or "none"
    if name and not found:
        raise usage(f"no fleet {name} has a mirror in this cluster", f"fleets: {names}")
    raise usage(f"{len(found)} fleets in this cluster: {names}", "name one of them")


def annotate(cluster: Cluster, asked: Asked, key: str, value: str | None) -> dict[str, Any]:
    """Set an annotation on exactly the mirror that was read, or take it off (None)."""
    return annotate_all(cluster, asked, {key: value})


def annotate_all(
    cluster: Cluster, asked: Asked, annotations: Mapping[str, str | None]
) -> dict[str, Any]:
    """The same of several, all in one write."""
    uid = text(mapping(asked.live, "metadata"), "uid")
    body = {"metadata": {"uid": uid, "annotations": dict(annotations)}}
    return cluster.patch(asked.ref, "merge", body, manager=MANAGER)


def narrate_place(login: Login, cluster: Cluster, asked: Asked) -> None:
    """The first line of a live command: context, cluster and fleet."""
    try:
        uid = cluster.server().cluster_uid[:8]
    except StokerError:
        uid = "?"
    context = context_name(login.kubeconfig, login.context)
    where = f"context {context}, " if context else ""
    narrate(f"fleet {asked.fleet} ({where}cluster {uid}…)")


def request_token(now_ms: int) -> str:
    """A value that no earlier request had: the instant, to the millisecond."""
    return f"{rfc3339(now_ms)[:-1]}.{now_ms % 1000:03d}Z"


def is_suspended(asked: Asked) -> bool:
    """Whether the controller says that it is suspended."""
    return any(text(c, "type") == "Suspended" for c in items(asked.status, "conditions"))


def check_reason(reason: str) -> None:
    """A reason is a line that says something."""
    if not reason.strip() or not reason.isprintable():
        raise usage("--reason: one line that says why", 'for instance --reason "vendor outage"')


def check_override(asked: Asked, replicas: int, *, below_floor: bool) -> None:
    """Refuse what the controller would not obey, and what costs more than one may think."""
    source = text(asked.status, "countSource", "Git")
    if source not in {"Git", "Override"}:
        raise usage(
            f"{source} owns the count of {asked.ref}", "change its limits there, or end it first"
        )
    floor = asked.status.get("floor")
    if isinstance(floor, int) and replicas < floor and not below_floor:
        raise usage(
            f"{replicas} is below the floor of {asked.ref}: {floor} must stay Ready "
            "(disruption.minReady)",
            "--below-floor does it all the same",
        )


def check_when_full(asked: Asked) -> None:
    """Refuse where nobody may ask for a node."""
    if text(mapping(mapping(asked.live, "spec"), "placement"), "mode") == "Scheduler":
        raise usage(
            f"{asked.ref} has placement.mode Scheduler, which leaves nodes to Kubernetes",
            "a Pending pod of it asks for a node by itself",
        )


def milliseconds(option: str, value: str) -> int:
    """A duration that a person typed, above zero and at most 31 days."""
    try:
        found = duration_ms(value)
    except ValueError as error:
        raise usage(f"{option}: {error}", "for instance 30m or 2h") from error
    if not 0 < found <= LONGEST_MS:
        raise usage(f"{option}: {value} is not above 0 and at most 744h", "commit it instead")
    return found


def _mirrors(cluster: Cluster, kind: str, namespace: str = "") -> list[Asked]:
    """Mirrors that a controller of ours writes, sorted."""
    try:
        page = cluster.list(GROUP, kind, namespace, version=VERSION)
    except KindNotFound as error:
        raise Stalled(
            "the CRDs of stoker.dev are not installed in this cluster",
            code="crd-missing",
            hint="stoker install prints them",
        ) from error
    found = []
    for live in page.items:
        metadata = mapping(live, "metadata")
        if mapping(metadata, "annotations").get(FLEET_ID):
            ref = ObjectRef(
                GROUP, kind, text(metadata, "namespace"), text(metadata, "name"), VERSION
            )
            found.append(Asked(ref, live))
    return sorted(found, key=lambda each: each.ref)

"""What stories look at: status files as people read them, live objects as a cluster holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from stoker.cli.world import World
from stoker.objects import names
from stoker.reconcile import Pass

CLEAN = {"Ready": "True", "Reconciling": "False", "Stalled": "False", "Healthy": "True"}
"""What the conditions of a fleet or unit say that needs nobody."""
SCALING = {"ScalingActive", "MetricsAvailable", "ScalingLimited", "Held"}
"""Further ones of a count that follows load; none of them asks for anybody."""


# ------------------------------------------------------------------------ status
def fleet_status(world: World, fleet: str = "local") -> dict[str, Any]:
    """status.yaml of the status branch; empty when there is none."""
    return _loaded(world.status_file("status.yaml", f"stoker-status/{fleet}"))


def unit_status(world: World, unit: str, fleet: str = "local") -> dict[str, Any]:
    """A unit's file on the status branch by `Kind/namespace/name`; empty when there is none."""
    kind, namespace, name = unit.split("/")
    path = f"units/{kind.lower()}.{namespace}.{name}.yaml"
    return _loaded(world.status_file(path, f"stoker-status/{fleet}"))


def _loaded(text: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.load(text, yaml.CSafeLoader) or {}
    return data


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    return {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", ())}


def message(status: dict[str, Any], kind: str) -> str:
    """The message of one condition."""
    found: str = next(c["message"] for c in status["conditions"] if c["type"] == kind)
    return found


def errors(status: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Code, path and line of each error."""
    return [(e["code"], e["path"], e["line"]) for e in status["errors"]]


def is_clean(world: World, fleet: str = "local") -> bool:
    """Whether fleet and units want nothing of anybody, as the status branch tells it."""
    status = fleet_status(world, fleet)
    return (
        _is_clean(status)
        and not status["attention"]
        and status["lastAttemptedRevision"] == status["lastAppliedRevision"]
        and all(_is_clean(unit) and not unit.get("notes") for unit in units(world, fleet))
    )


def _is_clean(status: dict[str, Any]) -> bool:
    found = {kind: told[0] for kind, told in conditions(status).items() if kind not in SCALING}
    return found == CLEAN and not status["errors"]


def units(world: World, fleet: str = "local") -> list[dict[str, Any]]:
    """Every unit file that the newest status speaks of."""
    assert world.work is not None
    refs = sorted(world.work.state.previous.units)
    return [unit_status(world, str(ref), fleet) for ref in refs]


# ----------------------------------------------------------------------- cluster
def deployments(world: World, service: str = "tiny") -> list[dict[str, Any]]:
    """The Deployments of a service, sorted by name."""
    return [
        found
        for found in world.objects("apps", "Deployment", "llm")
        if (found["metadata"].get("labels") or {}).get(names.SERVICE_LABEL) == service
    ]


def counts_by_node(world: World, service: str = "tiny") -> dict[str, int]:
    """Wanted replicas by node, of Deployments that are not on their way out."""
    return {
        found["metadata"]["annotations"][names.NODE]: found["spec"]["replicas"]
        for found in deployments(world, service)
        if not found["metadata"].get("deletionTimestamp")
    }


def serving(world: World, service: str = "tiny") -> list[dict[str, Any]]:
    """Ready pods of a service that its Service sends requests to."""
    return [
        pod
        for pod in world.ready_pods()
        if pod["metadata"]["labels"].get(names.SERVICE_LABEL) == service
        and pod["metadata"]["labels"].get(names.TRAFFIC_LABEL) == "true"
        and not pod["metadata"].get("deletionTimestamp")
    ]


def revisions(world: World, service: str = "tiny") -> set[str]:
    """The model revisions that serve, as their pods are labelled."""
    return {p["metadata"]["labels"][names.MODEL_REVISION_LABEL] for p in serving(world, service)}


def pod_uids(world: World, namespace: str = "llm") -> set[str]:
    """UIDs of all pods: a restart shows as a new one."""
    return {pod["metadata"]["uid"] for pod in world.objects("", "Pod", namespace)}


def uids(world: World, *kinds: tuple[str, str], namespace: str = "llm") -> dict[str, str]:
    """UID by `Kind/name`."""
    return {
        f"{kind}/{found['metadata']['name']}": found["metadata"]["uid"]
        for group, kind in kinds
        for found in world.objects(group, kind, namespace)
    }


OBJECTS = (
    ("", "ConfigMap"),
    ("", "Service"),
    ("apps", "Deployment"),
    ("policy", "PodDisruptionBudget"),
)
"""The kinds that the fleets of these stories are made of."""


def standing(world: World, namespace: str = "llm") -> dict[str, str]:
    """UID by `Kind/name` of everything a fleet has made in a namespace."""
    return uids(world, *OBJECTS, namespace=namespace)


def as_it_stands(world: World, namespace: str = "llm") -> dict[str, tuple[str, int]]:
    """UID and generation by `Kind/name` of everything in a namespace, pods included."""
    return {
        f"{kind}/{found['metadata']['name']}": (
            found["metadata"]["uid"],
            found["metadata"].get("generation", 0),
        )
        for group, kind in (*OBJECTS, ("", "Pod"))
        for found in world.objects(group, kind, namespace)
    }


def data(world: World, name: str, namespace: str = "llm") -> dict[str, str]:
    """What a ConfigMap holds; empty when there is none."""
    found = [c for c in world.objects("", "ConfigMap", namespace) if c["metadata"]["name"] == name]
    return dict(found[0]["data"]) if found else {}


# -------------------------------------------------------------------------- time
def watch(world: World, seconds: int, look: Callable[[], Any]) -> list[Any]:
    """What `look` saw after each second."""
    seen = []
    for _ in range(seconds):
        world.advance(1)
        seen.append(look())
    return seen


def a_pass(world: World) -> Pass:
    """One pass, which must have had a fleet to work on."""
    done = world.one_pass()
    assert done is not None, world.source_failure
    return done


def rest(world: World) -> None:
    """Settle, and let a patient fleet tell what came of it."""
    world.settle()
    for _ in range(2):
        world.advance(4, passes=False)
        world.advance(1)


def tell(world: World) -> None:
    """Two passes a second apart, so that what the first found is on the status branch."""
    world.advance(2)

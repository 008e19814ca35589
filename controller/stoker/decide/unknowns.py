"""What a service's decision needs and the snapshot lacks. Pure; called by decide."""

from __future__ import annotations

from stoker.decide.case import Case
from stoker.model.fleet import PlacementMode
from stoker.model.snapshot import Snapshot
from stoker.objects.names import MAX_SERVICE_IN_NAME

__all__ = ["unknown_to"]


def unknown_to(case: Case, snapshot: Snapshot) -> list[tuple[str, str]]:
    """What this service's decision needs and the snapshot lacks.

    Unread pods of any namespace hide what is free. Mode Scheduler needs no nodes, unless
    Deployments of mode Nodes still stand.
    """
    by_node = case.spec.placement_mode is PlacementMode.NODES or any(
        placement.node for placement in case.state.placements
    )
    return [(what, why) for what, why in snapshot.unknown if _concerns(what, case, by_node=by_node)]


def _concerns(what: str, case: Case, *, by_node: bool) -> bool:
    ref = case.ref
    kind, _, rest = what.partition("/")
    namespace, _, name = rest.partition("/")
    match kind:
        case "nodes":
            return by_node
        case "pods":
            return by_node or namespace in {"", ref.namespace}
        case "leaderworkersets" if case.spec.nodes > 1 or _has_groups(case):
            return not namespace or namespace == ref.namespace
        case "deployments":
            of_service = name in {"", ref.name, case.spec.adopt} or name.startswith(
                _prefix(ref.name)
            )
            return not namespace or (namespace == ref.namespace and of_service)
        case _:
            return False


def _has_groups(case: Case) -> bool:
    return any(placement.size > 1 for placement in case.state.placements)


def _prefix(service: str) -> str:
    """How names of the service's Deployments begin."""
    return service[:MAX_SERVICE_IN_NAME].rstrip("-.") + "-"

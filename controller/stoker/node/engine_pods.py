"""Engines of this node, found by their pods in the namespaces that were named.

In: a way to list pods. Out: addresses for a round. Only pods of ModelServices on this very
node are asked for: by label and by the node's name. Used by node.reporter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stoker.errors import StokerError
from stoker.objects import names
from stoker.objects.health_fields import items, mapping, text

__all__ = ["EnginePods", "FoundEngines", "PodLister"]

MOST = 32
"""Engines of one node; more are not asked, for a round would take too long."""
_PORT = 8000
_ENGINE = "engine"


class PodLister(Protocol):
    """The part of the API client that is used."""

    def list(
        self,
        group: str,
        kind: str,
        namespace: str = "",
        *,
        label_selector: str,
        field_selector: str,
    ) -> Any:
        """`.items` are raw pods."""
        ...


@dataclass(frozen=True, slots=True)
class FoundEngines:
    """Addresses, sorted; `why` says why they are not known, which is not none."""

    addresses: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class EnginePods:
    """Looks again in every round. `namespaces` are those in which the right to list was given."""

    pods: PodLister
    node: str
    namespaces: tuple[str, ...]

    def find(self) -> FoundEngines:
        """Engines that run now, and those that are starting; never raises."""
        found: set[str] = set()
        for namespace in self.namespaces:
            try:
                page = self.pods.list(
                    "",
                    "Pod",
                    namespace,
                    label_selector=names.SERVICE_LABEL,
                    field_selector=f"spec.nodeName={self.node}",
                )
            except StokerError as error:
                return FoundEngines(why=f"pods of {namespace}: {error.message}"[:200])
            found |= set(_addresses(page.items))
        if len(found) > MOST:
            return FoundEngines(why=f"{len(found)} engines, more than {MOST}")
        return FoundEngines(tuple(sorted(found)))


def _addresses(pods: Sequence[dict[str, Any]]) -> Iterable[str]:
    for pod in pods:
        status = mapping(pod, "status")
        if text(status, "phase") != "Running":
            continue  # it has not begun, or holds nothing any more
        simulated = text(mapping(mapping(pod, "metadata"), "annotations"), names.ADDRESS)
        address = text(status, "podIP")
        if simulated:
            yield simulated
        elif address:
            host = f"[{address}]" if ":" in address else address
            yield f"{host}:{_port(pod)}"


def _port(pod: dict[str, Any]) -> int:
    """The port called http of the engine, else its first, else where vLLM listens."""
    containers = items(mapping(pod, "spec"), "containers")
    engine = next((each for each in containers if text(each, "name") == _ENGINE), {})
    ports = items(engine, "ports")
    named = [each for each in ports if text(each, "name") == "http"] or ports
    port = named[0].get("containerPort") if named else None
    return port if isinstance(port, int) else _PORT

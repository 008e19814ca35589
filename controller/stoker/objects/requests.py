"""What a pod takes from its node, counted as the scheduler counts it.

A pod spec (live or from a template) or a resource map comes in, `Resources` go out. Used
by observe for every bound pod and by shape for a replica.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.shape import Resources
from stoker.objects.health_fields import items, mapping
from stoker.objects.quantity import bytes_of, cpu_millis

__all__ = ["requests_of_spec", "resources_from"]

_Amounts = dict[str, int]


def requests_of_spec(spec: dict[str, Any], statuses: tuple[dict[str, Any], ...] = ()) -> Resources:
    """Sum the containers, with init containers by the max rule, sidecars, overhead, one pod.

    A limit without a request is a request, as the API server defaults it. Requests of the
    pod as a whole (spec.resources) replace the sum of its containers. `statuses` are the
    container statuses of a running pod: while it is resized the larger amount counts.
    Raises ValueError on an amount that is not a quantity.
    """
    allocated = {str(status.get("name")): status for status in statuses}
    total: _Amounts = {}
    for container in items(spec, "containers"):
        _add(total, _amounts(container, allocated))
    peak: _Amounts = {}
    sidecars: _Amounts = {}
    for container in items(spec, "initContainers"):
        amounts = _amounts(container, allocated)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = dict(sidecars)
        else:
            _add(amounts, sidecars)
        _keep_larger(peak, amounts)
    _keep_larger(total, peak)
    total.update(_requested(mapping(spec, "resources")))
    _add(total, _whole(mapping(spec, "overhead")))
    return _resources({**total, "pods": 1})


def resources_from(amounts: Mapping[str, Any]) -> Resources:
    """Read a resource map such as status.allocatable; raises ValueError on a bad quantity.

    Only CPU, memory, pods and extended resources (names with a domain) are kept: what the
    node splits in other ways (ephemeral storage, huge pages) decides no placement here.
    """
    return _resources(_whole(amounts))


def _resources(amounts: Mapping[str, int]) -> Resources:
    return Resources(
        cpu_millis=amounts.get("cpu", 0),
        memory_bytes=amounts.get("memory", 0),
        pods=amounts.get("pods", 0),
        extended=tuple(sorted((name, count) for name, count in amounts.items() if "/" in name)),
    )


def _amounts(container: dict[str, Any], allocated: Mapping[str, dict[str, Any]]) -> _Amounts:
    amounts = _requested(mapping(container, "resources"))
    status = allocated.get(str(container.get("name")), {})
    _keep_larger(amounts, _whole(mapping(status, "allocatedResources")))
    return amounts


def _requested(resources: dict[str, Any]) -> _Amounts:
    return _whole({**mapping(resources, "limits"), **mapping(resources, "requests")})


def _whole(amounts: Mapping[str, Any]) -> _Amounts:
    return {
        name: cpu_millis(amount) if name == "cpu" else bytes_of(amount)
        for name, amount in amounts.items()
    }


def _add(total: _Amounts, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _keep_larger(total: _Amounts, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = max(total.get(name, 0), amount)

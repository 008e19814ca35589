"""The share of a service's replicas on spot, before and after a plan; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stoker.model.fleet import CapacityType, Desired, ModelService
from stoker.sim.foresee import ServiceForecast

__all__ = ["spot_lines"]


def spot_lines(desired: Desired, service: ModelService, found: ServiceForecast) -> Iterator[str]:
    """`spot 1/3 -> 1/4 (at most 50 %)`; nothing for a service without such a bound."""
    most = service.limits.spot_max_percent
    if most is None:
        return
    spot = [p.name for p in desired.fleet.pools if p.capacity_type is CapacityType.SPOT]

    def share(pools: Iterable[str]) -> str:
        names = list(pools)
        return f"{sum(1 for name in names if name in spot)}/{len(names)}"

    before, after = share(found.pools_before), share(found.pools_after)
    yield f"  spot {before} -> {after} (at most {most} %)"

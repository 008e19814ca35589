"""Energy of GPUs that have no counter of it: power, looked at often, added up over time.

In: milliwatts by GPU at instants. Out: millijoules that only grow, by GPU and stretch; a gap in
the looking begins a new stretch, whose counter has another name, so that no window spans it.
Used by node.gpu.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["LONGEST_GAP_SECONDS", "PowerMeter"]

LONGEST_GAP_SECONDS = 5.0
"""Power between two looks is taken for their mean; over a longer time that is a guess."""


@dataclass(slots=True)
class _Stretch:
    number: int
    at_seconds: float
    milliwatts: float
    millijoules: float = 0.0


@dataclass(slots=True)
class PowerMeter:
    """One for all GPUs; for one thread."""

    _stretches: dict[str, _Stretch] = field(default_factory=dict)
    _numbers: int = 0

    def look(self, milliwatts: Mapping[str, float], at_seconds: float) -> None:
        """Add what was used since the last look; GPUs that are not named begin anew later."""
        for gone in self._stretches.keys() - milliwatts.keys():
            del self._stretches[gone]
        for gpu, power in milliwatts.items():
            known = self._stretches.get(gpu)
            passed = at_seconds - known.at_seconds if known is not None else -1.0
            if known is None or not 0 <= passed <= LONGEST_GAP_SECONDS:
                self._numbers += 1
                self._stretches[gpu] = _Stretch(self._numbers, at_seconds, power)
                continue
            known.millijoules += (known.milliwatts + power) / 2 * passed
            known.at_seconds, known.milliwatts = at_seconds, power

    def counter(self, gpu: str) -> tuple[str, int] | None:
        """Name and millijoules of the present stretch; None for a GPU that is not looked at."""
        found = self._stretches.get(gpu)
        return (f"{gpu} power {found.number}", int(found.millijoules)) if found else None

    def forget(self) -> None:
        """Begin anew with the next look."""
        self._stretches.clear()

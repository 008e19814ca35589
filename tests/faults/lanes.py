"""Which seeds run where, and for how long: what `make faults` asks for, read once.

One lane is one test on a control plane of its own, and runs one seed after another; several
lanes run side by side (FAULT_LANES, pytest -n). With FAULT_MINUTES a lane begins seeds until so
much time has gone; without, all of FAULT_SEEDS are run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from stoker.clock import SystemClock

__all__ = ["Slice", "slice_of"]

CLOCK = SystemClock()
ENDLESS = 1_000_000


@dataclass(frozen=True, slots=True)
class Slice:
    """What to run: seeds from `first`, `count` of them, with `seconds` of faults each."""

    first: int
    count: int
    seconds: float
    lanes: int
    minutes: float
    """How long a lane begins new seeds; 0 means until none is left."""

    def seeds(self, lane: int) -> Iterator[int]:
        """The seeds of a lane (from 0), in order; ends early when the time is over."""
        began = CLOCK.monotonic()
        for seed in range(self.first + lane, self.first + self.count, self.lanes):
            if self.minutes and CLOCK.monotonic() - began > self.minutes * 60:
                return
            yield seed

    @property
    def longest_seconds(self) -> int:
        """After so long a lane hangs."""
        last = self.seconds + 240
        return int(self.minutes * 60 + last if self.minutes else last * (self.count + 1))


def slice_of(environment: dict[str, str]) -> Slice:
    """FAULT_SEED (that one alone), FAULT_SEEDS, FAULT_FIRST, FAULT_SECONDS, FAULT_LANES, FAULT_MINUTES."""
    one = environment.get("FAULT_SEED") or ""
    minutes = 0.0 if one else float(environment.get("FAULT_MINUTES") or 0)
    count = int(environment.get("FAULT_SEEDS") or (ENDLESS if minutes else 1))
    return Slice(
        first=int(one or environment.get("FAULT_FIRST") or 1),
        count=1 if one else count,
        seconds=float(environment.get("FAULT_SECONDS") or 15),
        lanes=1 if one else min(count, int(environment.get("FAULT_LANES") or 1)),
        minutes=minutes,
    )


SLICE = slice_of(dict(os.environ))

"""What a service's count remembers from pass to pass. Lost: every window starts now.

Part of a unit's history, input and output of decide; bounded, so that it stays small in the
cluster. Times are integer milliseconds since the epoch; None never happened, or is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_SCALE", "LearnedRate", "ScaleHistory"]


@dataclass(frozen=True, slots=True)
class LearnedRate:
    """What a Ready replica was seen to do, in tokens a second.

    `saturated`: measured while requests waited for the whole window; else it is only a lower
    bound. One for each rev and accelerator (the node's GPU product, or empty).
    """

    rev: str
    accelerator: str
    prefill_tokens_per_second: float
    decode_tokens_per_second: float
    saturated: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class ScaleHistory:
    """`recommended` are (instant, count) of the scale-down window, falling in count from the
    oldest on; `gaps_ms` the last idle times, oldest first.
    """

    recommended: tuple[tuple[int, int], ...] = ()
    desired: int | None = None
    """What was wanted last, before the step cap."""
    scaled_up_ms: int | None = None
    scaled_down_ms: int | None = None
    blind_since_ms: int | None = None
    """Since when nothing could be measured."""
    idle_since_ms: int | None = None
    """Since when nothing was asked of it."""
    low_since_ms: int | None = None
    """Since when one replica fewer would do."""
    woken_ms: int | None = None
    served: bool = False
    """Whether it ever was Ready: never to zero before that."""
    rates: tuple[LearnedRate, ...] = ()
    gaps_ms: tuple[int, ...] = ()


NO_SCALE = ScaleHistory()

"""What a service's count remembers from pass to pass. Lost: every window starts now.

Part of a unit's history, input and output of decide; bounded, so that it stays small in the
cluster. Times are integer milliseconds since the epoch; None never happened, or is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from stoker.model.codec import from_data

__all__ = ["NO_SCALE", "LearnedRate", "ScaleHistory", "scale_history_from"]


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
    """`recommended` are (since when, count) of the scale-down window, falling in count from the
    oldest on: each holds until the next began. `gaps_ms` are the last idle times, oldest first.
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
    stalled_since_ms: int | None = None
    """Since when requests wait in some replica that makes no token."""
    served: bool = False
    """Whether it ever was Ready: never to zero before that."""
    rates: tuple[LearnedRate, ...] = ()
    gaps_ms: tuple[int, ...] = ()
    prefill_tokens: float | None = None
    """Of a request on average over the last rounds, that no cache held."""
    output_tokens: float | None = None


NO_SCALE = ScaleHistory()


def scale_history_from(data: Any) -> ScaleHistory:
    """Read what `to_data` gave; raises TypeError or ValueError for anything else."""
    rates = data.get("rates", []) if isinstance(data, dict) else None
    if not isinstance(rates, list) or not all(isinstance(rate, dict) for rate in rates):
        raise TypeError
    known = from_data(ScaleHistory, data)
    _check(known.recommended, lambda row: len(row) == 2 and all(map(_is_whole, row)))
    _check(known.rates, _is_a_rate)
    _check(known.gaps_ms, _is_whole)
    sizes = (known.prefill_tokens, known.output_tokens)
    _check([size for size in sizes if size is not None], _is_a_number)
    plain = {"recommended", "rates", "gaps_ms", "served", "prefill_tokens", "output_tokens"}
    instants = [getattr(known, each.name) for each in fields(known) if each.name not in plain]
    _check([each for each in instants if each is not None], _is_whole)
    _check([known.served], lambda value: isinstance(value, bool))
    return known


def _check(values: Iterable[Any], is_right: Callable[[Any], bool]) -> None:
    if not all(map(is_right, values)):
        raise ValueError


def _is_whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_a_number(value: Any) -> bool:
    return type(value) in {int, float} and 0 <= value < math.inf


def _is_a_rate(rate: Any) -> bool:
    texts = isinstance(rate.rev, str) and isinstance(rate.accelerator, str)
    numbers = (rate.prefill_tokens_per_second, rate.decode_tokens_per_second)
    return (
        texts
        and all(map(_is_a_number, numbers))
        and isinstance(rate.saturated, bool)
        and _is_whole(rate.at_ms)
    )

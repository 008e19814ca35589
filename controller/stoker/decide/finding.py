"""What an algorithm recommends before bounds, window and step; and its rules, one by one.

Made by ratio and capacity, read by scale.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, log10

from stoker.model.scale_verdict import Said

__all__ = ["MOST_REPLICAS", "Finding", "highest", "number", "up"]

MOST_REPLICAS = 150_000
"""No count is higher: the most pods that a Kubernetes cluster is built for (kubernetes.io,
"Considerations for large clusters"). A decision server that asks for more has gone mad."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`count` is None where nothing could be measured: the count then stays.

    `keeps` says why the count may not fall to it now; empty where it may.
    """

    count: int | None
    rule: str
    why: str
    said: tuple[Said, ...] = ()
    unmeasurable: tuple[tuple[str, str], ...] = ()
    keeps: str = ""
    wake_at_ms: int | None = None


def highest(said: Iterable[Said]) -> Said | None:
    """The rule that asks for most, the first of several; None where none could say."""
    able = [each for each in said if each.replicas is not None]
    return max(able, key=lambda each: each.replicas or 0, default=None)


def up(exact: float) -> int:
    """Whole replicas for a number of them. What is only rounding (1e-9 of it) is not one more."""
    if not exact < MOST_REPLICAS:
        return MOST_REPLICAS
    return max(0, ceil(exact - max(1e-9, abs(exact) * 1e-9)))


def number(value: float) -> str:
    """A number for people: three digits that count, never with an exponent below a billion."""
    if value == 0 or abs(value) >= 1e9:
        return f"{value:g}"
    digits = max(0, 2 - int(log10(abs(value)) // 1))
    text = f"{value:.{min(digits, 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

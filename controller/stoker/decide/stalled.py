"""Replicas whose queue stands still: requests wait, and for minutes not one token is made.

In: what the Ready replicas say, since when some have stalled. Out: the same without the queues of
those that have for too long. A queue like that asks for no replica and keeps none: nobody else can
serve it (cases.md row 117). Called by scale before its rules.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.decide.measured import Engines
from stoker.model.readings import EngineReading

__all__ = ["STALLED_MS", "without_stalled"]

STALLED_MS = 300_000
"""A prefill of the longest prompts takes tens of seconds, and a probe should have restarted an
engine that hangs by then. Ours."""


def without_stalled(
    engines: Engines, since_ms: int | None, now_ms: int
) -> tuple[Engines, tuple[str, ...], int | None]:
    """The engines to count with, which of them have stalled, and since when any has.

    A stalled one stays, as one that is busy and of which no queue is known.
    """
    names = tuple(each.pod for each in engines.of if _stands_still(each))
    if not names:
        return engines, (), None
    began_ms = since_ms if since_ms is not None else now_ms
    if now_ms < began_ms + STALLED_MS:
        return engines, (), began_ms
    quiet = tuple(
        replace(each, queued=False, waiting=0.0, running=max(1.0, each.running or 0.0))
        if each.pod in names
        else each
        for each in engines.of
    )
    return replace(engines, of=quiet), names, began_ms


def _stands_still(engine: EngineReading) -> bool:
    rates = (engine.prefill_tokens_per_second, engine.decode_tokens_per_second)
    return engine.queued and rates == (0.0, 0.0)

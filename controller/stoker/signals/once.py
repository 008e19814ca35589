"""Signals of a command that makes one pass: read at once, within a few seconds.

In: asks. Out: readings; rates are not known from one look, which is no zero. Used by `plan`,
`diff` and `apply`.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.readings import ServiceReadings, SignalAsk
from stoker.signals.reader import SignalReader

__all__ = ["ReadOnce"]

SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class ReadOnce:
    """What the poller is for the long-running controller."""

    reader: SignalReader

    def latest(
        self,
        asks: tuple[SignalAsk, ...],
        now_ms: int,  # noqa: ARG002 - the poller's shape
    ) -> tuple[ServiceReadings, ...]:
        """Read now, in the order of the asks."""
        return self.reader.read(asks, SECONDS) if asks else ()

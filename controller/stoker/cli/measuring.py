"""The signal poller of the long-running controller: its readings wake the loop.

In: a session, the loop and the parts of its passes. Out: a poller that reads from the first
service that scales on. Used by cli.controller.
"""

from __future__ import annotations

from stoker.cli.session import Session
from stoker.loop.loop import Loop
from stoker.loop.step import Event, EventKind
from stoker.model.refs import UnitRef
from stoker.parts import Parts
from stoker.signals import SignalPoller

__all__ = ["measuring"]


def measuring(session: Session, loop: Loop, parts: Parts) -> SignalPoller:
    """Have passes take the poller's readings in place of reading for themselves."""
    clock = parts.clock

    def changed(refs: tuple[UnitRef, ...]) -> None:
        detail = str(refs[0]) if refs else ""
        loop.put(Event(EventKind.READINGS, clock.monotonic(), detail=detail))

    poller = SignalPoller(session.signals(), clock, changed)
    parts.observer.measures = poller
    poller.start()
    return poller

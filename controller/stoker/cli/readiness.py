"""What /readyz of the long-running controller answers: part by part, and whether all is well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.loop.keeper import LeaseKeeper
from stoker.loop.loop import Loop
from stoker.loop.poller import Poller
from stoker.observe import Observer
from stoker.report import Publisher
from stoker.signals import SignalPoller

if TYPE_CHECKING:
    from stoker.loop.server import Readiness

__all__ = ["ReadinessOf"]

OWN_TROUBLE = frozenset({"disk-full", "state-folder-unusable"})
"""Answers of the poller that are about this machine: another replica may do better."""


@dataclass(slots=True)
class ReadinessOf:
    """What /readyz answers, from immutable answers of the other threads."""

    observer: Observer
    poller: Poller
    publisher: Publisher
    loop: Loop
    keeper: LeaseKeeper | None
    signals: SignalPoller | None = None

    def __call__(self) -> Readiness:
        """Ready once a pass has ended, every thread lives and the nodes are known.

        An unreachable Git host is no reason against it; a state folder that takes no writes is.
        Signals that cannot be measured hold counts, and are told.
        """
        parts = {"git": self.poller.last_answer or "not asked yet"}
        parts["status"] = self.publisher.written.code or "ok"
        good = self.poller.alive and self.publisher.alive
        good = good and self.poller.last_answer not in OWN_TROUBLE
        for watch in self.observer.status():
            if watch.why_unknown and watch.why_unknown != "no such kind":
                parts[watch.label] = watch.why_unknown
        if self.signals is not None and self.signals.trouble:
            parts["signals"] = self.signals.trouble
        ended, warm = self.loop.last_pass_ended > 0, self.loop.is_warm
        if self.keeper is not None:
            good = good and self.keeper.alive
            parts["lease"] = "held" if self.loop.leads else "another holds it"
        good = good and (ended or warm) and "nodes" not in parts
        parts["pass"] = "ended" if ended else "ready to lead" if warm else "not yet"
        return good, parts

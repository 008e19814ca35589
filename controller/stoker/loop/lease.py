"""The Lease of a fleet: one controller writes at a time, and stops in time by its own clock.

Only changes seen on this process's monotonic clock count, so wall clocks may differ (the
rule of client-go's leader election, restated), and the holder fences itself (note 14).
Renewed by `loop.keeper`, asked by the loop and by the gate before each write.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from stoker.errors import Retryable, StokerError
from stoker.kube.errors import AlreadyExists, Conflict, NotFound, ServerFailure
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339

__all__ = ["LOST", "Lease", "LeaseTiming"]

LOST = "lease-lost"
"""Reason of a write that was held back: this process does not lead, or not any more."""
ROUNDS = 3
"""Reads and writes of one renewal; more are lost only to somebody who edits in a loop."""
WRITE_SHARE = 0.8
"""Of the time between renew deadline and duration, what a write may take; the rest is for
clocks that run at different rates (7 % with the defaults)."""
SHORTEST_LOOK = 0.05
MANAGER = "stoker-lease"


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds, as client-go's defaults: duration > renew deadline > 1.2 x retry."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    @property
    def write_seconds(self) -> float:
        """How long a write may take, so that it has ended before another may begin."""
        return (self.duration - self.renew_deadline) * WRITE_SHARE

    @property
    def problem(self) -> str:
        """What makes these durations unsafe; empty when nothing does (research a.6 L1)."""
        if not 0 < 1.2 * self.retry < self.renew_deadline:
            return "the renew deadline must be more than 1.2 times the retry period"
        if self.duration < self.renew_deadline + 1:
            return "the duration must exceed the renew deadline by a second, the time for a write"
        return ""


@dataclass(frozen=True, slots=True)
class _Standing:
    """Held since a renewal that was sent at this monotonic second, for the so-manyth time."""

    term: int
    renewed_at: float


class Lease:
    """`renew` and `release` belong to one thread at a time, everything else to any.

    A *term* is a time of holding without a gap in which another may have held it. Writes are
    admitted in the term that `begin` named: who returns from a pause has to catch up first.
    `other` is who else held it at the last look, `renewals_seen` how often it then changed.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        namespace: str,
        name: str,
        holder: str,
        timing: LeaseTiming | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._ref = ObjectRef("coordination.k8s.io", "Lease", namespace, name, "v1")
        self._holder = holder
        self.timing = timing or LeaseTiming()
        self._standing: _Standing | None = None
        self._begun = 0
        self._terms = 0
        self._ours: dict[str, Any] | None = None
        self._seen: tuple[str, float] | None = None
        self._wait_for = 0.0
        self.other = ""
        self.renewals_seen = 0

    # ------------------------------------------------------------- from any thread
    @property
    def held(self) -> bool:
        """Whether the last renewal is recent enough to write on."""
        standing = self._standing
        return standing is not None and self._is_fresh(standing)

    @property
    def term(self) -> int:
        """The present term, 0 when the lease is not held."""
        standing = self._standing
        return standing.term if standing is not None and self._is_fresh(standing) else 0

    @property
    def admits(self) -> bool:
        """Whether a write may start now."""
        term = self.term
        return term != 0 and term == self._begun

    def begin(self, term: int) -> None:
        """Admit writes of this term: what is remembered is as new as it."""
        self._begun = term

    def admit(self) -> None:
        """Raise Retryable (lease-lost) unless a write may start now."""
        if not self.admits:
            raise Retryable("another controller may lead now, so nothing is written", code=LOST)

    # -------------------------------------------------------------- from its keeper
    def renew(self) -> bool:
        """Take or keep the lease; False when another holds it, or may.

        Keeping it is one request. Counts from before the first request was sent, since what
        the server wrote down may be as old. Raises the error tree when there is no answer.
        """
        started = self._clock.monotonic()
        for _ in range(ROUNDS):
            known, self._ours = (self._ours if self.held else None), None
            live = known if known is not None else self._read()
            if not self._may_take(live):
                self._standing = None
                return False
            try:
                self._ours = self._claimed(live)
            except (AlreadyExists, Conflict, NotFound):
                continue
            except ServerFailure:
                if known is None:
                    raise
                continue  # so it answers where the object is gone [tried]: read it again
            self._note(live, started)
            return True
        self._standing = None
        return False

    def release(self) -> None:
        """Hand the lease over at once; errors do not matter, it runs out by itself.

        Only after all writes have ended: whoever waits takes it without waiting on.
        """
        if self._standing is None:
            return
        self._standing, self._ours = None, None
        try:
            live = self._read()
            if live is not None and _holder(live) == self._holder:
                spec = {**live["spec"], "holderIdentity": ""}
                self._cluster.update({**live, "spec": spec}, manager=MANAGER)
        except StokerError:
            return

    @property
    def look_in(self) -> float:
        """Seconds until `renew` has a reason to be called again.

        Who waits looks twice as often as the holder renews: the earlier a renewal is seen,
        the earlier its end is known.
        """
        if self._standing is not None or self._seen is None:
            return self.timing.retry
        left = self._seen[1] + self._wait_for - self._clock.monotonic()
        return min(self.timing.retry / 2, max(SHORTEST_LOOK, left))

    # --------------------------------------------------------------------- within
    def _is_fresh(self, standing: _Standing) -> bool:
        return self._clock.monotonic() < standing.renewed_at + self.timing.renew_deadline

    def _read(self) -> dict[str, Any] | None:
        try:
            return self._cluster.get(self._ref)
        except NotFound:
            return None

    def _may_take(self, live: dict[str, Any] | None) -> bool:
        """Ours, given back, never there, or unchanged for a whole duration as seen from here."""
        holder = "" if live is None else _holder(live)
        if live is None and (self.held or self._seen is None):
            return True
        if live is not None and holder in {"", self._holder}:
            return True
        self.other = holder
        self._wait_for = max(self.timing.duration, _stated_duration(live))
        look = _fingerprint(live)
        now = self._clock.monotonic()
        if self._seen is None or self._seen[0] != look:
            self.renewals_seen += self._seen is not None
            self._seen = (look, now)
        return now >= self._seen[1] + self._wait_for

    def _claimed(self, live: dict[str, Any] | None) -> dict[str, Any]:
        """The lease as written in our name, on top of what was read."""
        spec: dict[str, Any] = dict((live or {}).get("spec") or {})
        moment = self._moment(str(spec.get("renewTime")))
        if spec.get("holderIdentity") != self._holder:
            spec["acquireTime"] = moment
            if live is not None:
                spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        spec["holderIdentity"] = self._holder
        spec["leaseDurationSeconds"] = math.ceil(self.timing.duration)
        spec["renewTime"] = moment
        if live is not None:
            return self._cluster.update({**live, "spec": spec}, manager=MANAGER)
        manifest = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._ref.name, "namespace": self._ref.namespace},
            "spec": spec,
        }
        return self._cluster.create(manifest, manager=MANAGER)

    def _note(self, before: dict[str, Any] | None, started: float) -> None:
        """Remember a renewal; a new term unless nobody can have held it since the last."""
        was = self._standing
        kept = was is not None and (before is None or _holder(before) == self._holder)
        if not kept:
            self._terms += 1
        self._seen = (_fingerprint(self._ours), self._clock.monotonic())
        self.other = ""
        self._standing = _Standing(self._terms, started)

    def _moment(self, last: str) -> str:
        """Now, and never what stands there: a renewal always shows, whatever the wall clock."""
        now_ms = self._clock.now_ms()
        text = f"{rfc3339(now_ms)[:-1]}.{now_ms % 1000:03d}"
        return f"{text}001Z" if f"{text}000Z" == last else f"{text}000Z"


def _holder(live: dict[str, Any]) -> str:
    return str((live.get("spec") or {}).get("holderIdentity") or "")


def _stated_duration(live: dict[str, Any] | None) -> float:
    """What the holder reckons with; it may be set otherwise than we are."""
    stated = ((live or {}).get("spec") or {}).get("leaseDurationSeconds")
    return float(stated) if isinstance(stated, int) else 0.0


def _fingerprint(live: dict[str, Any] | None) -> str:
    """What a renewal changes. Not the resourceVersion: a labeller is no sign of life."""
    if live is None:
        return "absent"
    return json.dumps([live["metadata"].get("uid"), live.get("spec")], sort_keys=True)

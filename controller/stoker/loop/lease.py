"""A plain Lease: one controller of a fleet works at a time (fencing comes with issue B).

Only changes seen on this process's monotonic clock count, so wall clocks may differ
(the rule of client-go's leader election, restated).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker.errors import StokerError
from stoker.kube.errors import AlreadyExists, Conflict, NotFound
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339

__all__ = ["Lease", "LeaseTiming"]


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds, as client-go's defaults: duration > renew deadline > 1.2 x retry."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0


class Lease:
    """Held while `renew` keeps saying yes; `release` gives it back at a clean stop."""

    def __init__(
        self, cluster: Cluster, clock: Clock, *, namespace: str, name: str, holder: str
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._ref = ObjectRef("coordination.k8s.io", "Lease", namespace, name, "v1")
        self._holder = holder
        self.timing = LeaseTiming()
        self._seen: tuple[str, float] = ("", 0.0)
        self._renewed_at: float | None = None

    @property
    def held(self) -> bool:
        """Whether the last renewal is recent enough to write on."""
        if self._renewed_at is None:
            return False
        return self._clock.monotonic() < self._renewed_at + self.timing.renew_deadline

    def renew(self) -> bool:
        """Take or keep the lease with at most two requests; False when another holds it.

        Raises the error tree when the API server cannot be asked.
        """
        started = self._clock.monotonic()
        try:
            live = self._cluster.get(self._ref)
        except NotFound:
            return self._create(started)
        spec: dict[str, Any] = dict(live.get("spec") or {})
        if spec.get("holderIdentity") not in {self._holder, "", None} and self._alive(live, spec):
            self._renewed_at = None
            return False
        if spec.get("holderIdentity") != self._holder:
            spec["acquireTime"] = _micro_time(self._clock.now_ms())
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        spec.update(self._claim())
        body = {**live, "spec": spec}
        try:
            self._cluster.update(body, manager=self._manager)
        except Conflict:
            self._renewed_at = None
            return False
        self._renewed_at = started
        return True

    def release(self) -> None:
        """Hand the lease over at once; errors do not matter, it runs out by itself."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        try:
            live = self._cluster.get(self._ref)
            if live.get("spec", {}).get("holderIdentity") == self._holder:
                live["spec"]["holderIdentity"] = ""
                self._cluster.update(live, manager=self._manager)
        except StokerError:
            return

    @property
    def _manager(self) -> str:
        return "stoker-lease"

    def _claim(self) -> dict[str, Any]:
        moment = _micro_time(self._clock.now_ms())
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": int(self.timing.duration),
            "renewTime": moment,
        }

    def _create(self, started: float) -> bool:
        manifest = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._ref.name, "namespace": self._ref.namespace},
            "spec": {**self._claim(), "acquireTime": _micro_time(self._clock.now_ms())},
        }
        try:
            self._cluster.create(manifest, manager=self._manager)
        except AlreadyExists:
            return False
        self._renewed_at = started
        return True

    def _alive(self, live: dict[str, Any], spec: dict[str, Any]) -> bool:
        """Whether the holder changed the lease within its duration, as seen from here."""
        now = self._clock.monotonic()
        version = str(live["metadata"].get("resourceVersion", ""))
        if self._seen[0] != version:
            self._seen = (version, now)
        duration = float(spec.get("leaseDurationSeconds") or self.timing.duration)
        return now < self._seen[1] + duration


def _micro_time(now_ms: int) -> str:
    return f"{rfc3339(now_ms)[:-1]}.{now_ms % 1000:03d}000Z"

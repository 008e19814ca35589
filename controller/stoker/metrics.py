"""All metrics in one place; names carry the unit, labels are bounded.

No metric is labelled by object, and service labels are dropped with their service.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Metrics:
    """One registry per process (or per test)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.passes = Counter(
            "stoker_passes_total",
            "Passes by kind and result",
            ["kind", "result"],
            registry=self.registry,
        )
        self.pass_seconds = Histogram(
            "stoker_pass_duration_seconds",
            "Length of a pass",
            ["kind"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.writes = Counter(
            "stoker_writes_total", "Objects written by result", ["result"], registry=self.registry
        )
        self.renders = Counter(
            "stoker_renders_total", "Render jobs, one or two a changed unit", registry=self.registry
        )
        self.units = Gauge(
            "stoker_units", "Units by sync and health", ["sync", "health"], registry=self.registry
        )
        self.replicas = Gauge(
            "stoker_replicas",
            "Replicas of a service by state",
            ["namespace", "service", "state"],
            registry=self.registry,
        )
        self.quarantined = Gauge(
            "stoker_quarantined_nodes",
            "Nodes that a service leaves out because starts failed there",
            ["namespace", "service"],
            registry=self.registry,
        )
        self.signals = Gauge(
            "stoker_signals",
            "Readings of services that scale, by why they cannot be used; ok: they can",
            ["code"],
            registry=self.registry,
        )
        self.bugs = Counter("stoker_bugs_total", "Broken invariants", registry=self.registry)
        self.audits = Counter(
            "stoker_audits_total",
            "Dry runs of objects that facts call Synced, by what the server said",
            ["result"],
            registry=self.registry,
        )
        self.publish = Counter(
            "stoker_status_pushes_total",
            "Status pushes by result",
            ["result"],
            registry=self.registry,
        )
        self.source_revision_seconds = Gauge(
            "stoker_source_revision_timestamp_seconds",
            "When the current revision was first seen",
            registry=self.registry,
        )
        self._services: set[tuple[str, str]] = set()

    def set_replicas(self, states: dict[tuple[str, str], dict[str, int]]) -> None:
        """Replace the replica gauges; a service that is gone leaves no series (row 97)."""
        for namespace, service in sorted(self._services - set(states)):
            for state in ("want", "ready", "warming"):
                self.replicas.remove(namespace, service, state)
        for (namespace, service), counts in sorted(states.items()):
            for state, count in sorted(counts.items()):
                self.replicas.labels(namespace, service, state).set(count)
        self._services = set(states)

    def set_quarantined(self, counts: dict[tuple[str, str], int]) -> None:
        """Replace the gauge of quarantined nodes; services without any have no series."""
        self.quarantined.clear()
        for (namespace, service), count in sorted(counts.items()):
            self.quarantined.labels(namespace, service).set(count)

    def set_signals(self, counts: dict[str, int]) -> None:
        """Replace the gauge of readings, keyed by `ok` or the code of an Unmeasurable."""
        self.signals.clear()
        for code, count in sorted(counts.items()):
            self.signals.labels(code).set(count)

    def set_units(self, counts: dict[tuple[str, str], int]) -> None:
        """Replace the unit gauge, keyed by (sync, health)."""
        self.units.clear()
        for (sync, health), count in sorted(counts.items()):
            self.units.labels(sync, health).set(count)

    def text(self) -> bytes:
        """The exposition, text format 0.0.4."""
        return generate_latest(self.registry)

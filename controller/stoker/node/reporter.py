"""The node reporter: looks at this node round after round and writes what it found.

In: ports and sources. Out: one NodeState, by merge patches on its status. A notice is written
at once, without waiting for a round. Used by `stoker reporter`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stoker.errors import StokerError
from stoker.log import get_log
from stoker.model.ports import Clock
from stoker.node.cache import Inventory, inventory
from stoker.node.engine_pods import EnginePods, FoundEngines
from stoker.node.engine_scrape import Round, scrape, window
from stoker.node.evict import keep_within
from stoker.node.facts import Facts, status_of
from stoker.node.gpu import GpuReading, Gpus, joules_between
from stoker.node.notice import NoticeSource
from stoker.node.notice_watch import NoticeWatch
from stoker.node.state_writer import StateWriter, Written

__all__ = ["Reporter", "ReporterSettings"]

_log = get_log("reporter")

CACHE_SECONDS = 60.0
"""How often the cache is walked; a start takes longer than that to load what it holds."""
RETRY_SECONDS = 1.0
"""How soon a notice that could not be written is written again."""
SILENT_ROUNDS = 10
"""Rounds without one that ended, after which /healthz says stuck."""


@dataclass(frozen=True, slots=True)
class ReporterSettings:
    """What to look at. `engines` are `host:port`; without `cache` there is no inventory.

    `interval_seconds` gives way to `spec.reportIntervalSeconds` of the NodeState.
    """

    engines: tuple[str, ...] = ()
    cache: Path | None = None
    evict: bool = False
    """Whether weights beyond cache.maxSize are deleted from the folder."""
    interval_seconds: float = 15.0
    scrape_seconds: float = 2.0


class Reporter:
    """One node's reporter. `round` and `tell` are one thread's; `parts` and `healthy` anybody's."""

    def __init__(
        self,
        settings: ReporterSettings,
        writer: StateWriter,
        clock: Clock,
        *,
        gpus: Gpus | None = None,
        source: NoticeSource | None = None,
        pods: EnginePods | None = None,
    ) -> None:
        self._settings = settings
        self._writer = writer
        self._clock = clock
        self._gpus = gpus or Gpus()
        self._pods = pods
        self._found = FoundEngines(settings.engines)
        self._wake = threading.Event()
        self.notices = NoticeWatch(source, self._wake.set)
        self._facts = Facts(clock.now_ms(), node_uid=writer.node_uid, holder=writer.holder)
        self._baseline: tuple[Round, GpuReading] | None = None
        self._cached_at: float | None = None
        self._alive: set[str] = set()
        self._acknowledged = ""
        self._not_kept = ""
        self._ended_at = clock.monotonic()
        self._trouble = "no round yet"
        self._pending = False

    def run(self, stopped: threading.Event) -> None:
        """Look and write until `stopped`, then give the NodeState up."""
        self.notices.start()
        while not stopped.is_set():
            self.round()
            self._rest(stopped)
        self.notices.stop()
        self._gpus.close()
        try:
            self._writer.release()
        except StokerError as error:
            _log.warning("reporter.not-released", code=error.code, message=error.message)

    def stop(self, stopped: threading.Event) -> None:
        """End `run` soon; for signal handlers."""
        stopped.set()
        self._wake.set()

    def round(self) -> None:
        """Look at everything once and write what is news. Never raises."""
        try:
            self._facts = self._look()
            self._acknowledge()
        except Exception:  # noqa: BLE001 - the top of a thread: reported, then looked again
            _log.exception("reporter.crashed")
        self.tell()

    def tell(self) -> None:
        """Write what is known now, the newest notice with it. Never raises."""
        facts = replace(self._facts, notices=self.notices.standing, now_ms=self._clock.now_ms())
        self._pending = False
        try:
            written = self._writer.write(status_of(facts))
        except StokerError as error:
            self._pending = facts.notices.notice is not None
            if self._trouble != error.code:
                _log.warning("state.not-written", code=error.code, message=error.message)
            self._trouble = error.code
        else:
            other = self._writer.other
            self._trouble = f"{other} reports for this node" if other else ""
            if written is Written.WRITTEN:
                _log.debug("state.written", node=self._writer.node)
        self._ended_at = self._clock.monotonic()

    @property
    def interval_seconds(self) -> float:
        """How long a round is."""
        return self._writer.interval_seconds or self._settings.interval_seconds

    def healthy(self) -> bool:
        """Whether rounds end."""
        silent = self._clock.monotonic() - self._ended_at
        return silent < SILENT_ROUNDS * self.interval_seconds + 60

    def parts(self) -> tuple[bool, dict[str, str]]:
        """Whether facts get written, and what each part says."""
        facts, told = self._facts, self.notices.standing
        unanswered = told.why_unknown or ("answered" if told.known else "not asked")
        parts = {
            "state": self._trouble or "written",
            "notices": unanswered if self.notices.alive else "the poller has ended",
            "gpus": facts.gpus.why or f"{facts.gpus.count} seen",
            "engines": "; ".join(sorted(facts.engines.missing)) or "answered",
            "cache": facts.inventory.why or self._not_kept or "read",
        }
        return not self._trouble and self.notices.alive, parts

    def _rest(self, stopped: threading.Event) -> None:
        """Until the next round is due; a notice is written meanwhile, and again if it was not."""
        due = self._clock.monotonic() + self.interval_seconds
        while not stopped.is_set() and (left := due - self._clock.monotonic()) > 0:
            often = self._pending or self._gpus.needs_looks
            news = self._wake.wait(min(left, RETRY_SECONDS) if often else left)
            self._wake.clear()
            self._gpus.look(self._clock.monotonic())
            if not stopped.is_set() and (news or self._pending):
                self.tell()

    def _look(self) -> Facts:
        settings = self._settings
        self._found = found = self._engines()
        engines = scrape(found.addresses, settings.scrape_seconds)
        if found.why:
            engines = replace(engines, missing={**engines.missing, "pods": found.why})
        gpus = self._gpus.read(self._clock.monotonic())
        before, readings = self._baseline or (None, GpuReading())
        # Energy is split over no one engine: a round with a gap in it is no baseline.
        self._baseline = (engines, gpus) if engines.complete else None
        self._alive |= engines.engines.keys()
        return replace(
            self._facts,
            gpus=gpus,
            engines=engines,
            window=window(before, engines),
            joules=joules_between(readings, gpus) if engines.complete else None,
            inventory=self._inventory(),
        )

    def _engines(self) -> FoundEngines:
        """Those that were named, and those whose pods were found; unknown is not none."""
        named = self._settings.engines
        if self._pods is None:
            return FoundEngines(named)
        found = self._pods.find()
        return replace(found, addresses=tuple(dict.fromkeys((*named, *found.addresses))))

    def _inventory(self) -> Inventory:
        folder, now = self._settings.cache, self._clock.monotonic()
        if folder is None:
            return Inventory()
        if self._cached_at is not None and now - self._cached_at < CACHE_SECONDS:
            return self._facts.inventory
        self._cached_at = now
        if self._settings.evict:
            self._evict(folder)
        return inventory(folder)

    def _evict(self, folder: Path) -> None:
        found = keep_within(folder, self._clock.now_ms() / 1_000)
        if found.gone:
            _log.info("weights.evicted", gone=list(found.gone), bytes=found.freed_bytes)
        if found.why and found.why != self._not_kept:
            _log.warning("weights.not-evicted", why=found.why)
        self._not_kept = found.why

    def _acknowledge(self) -> None:
        """Tell the cloud not to wait, once every engine that ran here is certainly gone."""
        notice = self.notices.standing.notice
        if (
            notice is None
            or notice.id == self._acknowledged
            or self._found.why
            or not _left(self._alive, self._found.addresses, self._facts.engines)
        ):
            return
        if self.notices.acknowledge(notice):
            self._acknowledged = notice.id
            _log.info("notice.acknowledged", kind=notice.kind, id=notice.id)


def _left(alive: set[str], engines: Sequence[str], seen: Round) -> bool:
    """Whether engines ran here and nobody listens at any of their addresses any more."""
    return bool(alive) and set(engines) <= seen.gone

"""The observer: owns all caches and watch threads, and folds in what we write ourselves.

Made once per process by the command line. The reconciler thread calls everything but
`status`; watch threads only change their own cache and put events on the queue.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from stoker.errors import StokerError, Unreachable
from stoker.kube.errors import KindNotFound, NotFound
from stoker.log import get_log
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef, UnitRef, ref_from_manifest
from stoker.objects.health_rules import HealthRules
from stoker.observe.events import ObjectEvent, events_from
from stoker.observe.keys import CRDS, WatchKey
from stoker.observe.live import CachedLive, KindView, ScalerMemo
from stoker.observe.news import News, NewsDesk
from stoker.observe.nodes import Seen
from stoker.observe.projection import entry_from
from stoker.observe.reflector import NO_SUCH_KIND, Reflector
from stoker.observe.replicas import LoadProbe
from stoker.observe.scaling_asks import Measures
from stoker.observe.store import Changed, KindStore

__all__ = ["Observer", "WatchStatus"]

UNANSWERED = "a write to it got no answer and it could not be read since"
DELETED = "it was deleted and could not be read since"

_log = get_log("observe")


@dataclass(frozen=True, slots=True, order=True)
class WatchStatus:
    """How one cache is. `why_unknown` empty: it is current. `watching`: its thread runs."""

    label: str
    why_unknown: str
    objects: int
    watching: bool


@dataclass(frozen=True, slots=True)
class _Unsettled:
    why: str
    uid: str = ""


class Observer:
    """Caches of the cluster. `on_event` is called on watch threads and must only enqueue."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        fleet_id: str,
        on_event: Callable[[ObjectEvent], None] | None = None,
        load_probe: LoadProbe | None = None,
        measures: Measures | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.cluster = cluster
        self.fleet_id = fleet_id
        self.load_probe = load_probe
        self.measures = measures
        """Who measures services that scale; None: nothing is measured."""
        self.on_event = on_event
        """May be set until `start`."""
        self.health_rules: HealthRules | None = None
        """The health files in force: a pass sets them, watch threads judge news by them."""
        self.awaited: frozenset[UnitRef] = frozenset()
        """Units whose every change is news, for an expression about it is waited for; as above."""
        self.notices_seen: Seen = {}
        """Kept by observe between passes; lost with the process."""
        self.scalers = ScalerMemo()
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.RLock()
        self._reflectors: dict[WatchKey, Reflector] = {}
        self._sorted: tuple[Reflector, ...] = ()
        """The reflectors in the order of their keys; replaced whole, so read without the lock."""
        self._threads: dict[WatchKey, threading.Thread] = {}
        self._unsettled: dict[ObjectRef, _Unsettled] = {}
        self._rewinds_told = 0
        self._news = NewsDesk()
        self._running = False

    # ------------------------------------------------------------------ watching

    def start(self) -> None:
        """Watch everything that is known and everything that `ensure` adds later."""
        self._running = True
        for reflector in self._all():
            self._launch(reflector)

    def stop(self, seconds: float = 1.0) -> None:
        """Ask the threads to end and wait that long for each of them at most.

        A thread in a quiet watch ends with its next event or when the transport closes;
        it is a daemon and changes nothing any more that anybody reads.
        """
        self._running = False
        for reflector in self._all():
            reflector.stop()
        due = self._clock.monotonic() + seconds
        for thread in list(self._threads.values()):
            thread.join(max(0.0, due - self._clock.monotonic()))
        self._threads.clear()

    def ensure(self, kinds: Iterable[WatchKey]) -> None:
        """List what is new, at once. A list that fails leaves its kind unknown, not empty.

        Without threads, kinds that could not be read before are tried again.
        """
        for key in sorted(set(kinds)):
            reflector = self._reflectors.get(key)
            if reflector is None:
                reflector = self._add(key)
                self._list(reflector)
                if self._running:
                    self._launch(reflector)
            elif not self._running and reflector.why_unknown():
                self._list(reflector)

    def refresh(self, is_current: Callable[[WatchKey], bool] = lambda _: False) -> None:
        """List everything again, at once; meant for commands that run without threads.

        Whoever knows that a list would tell nothing new of a kind says so (`is_current`); a
        kind whose last list failed is listed all the same.
        """
        for reflector in self._all():
            if not (is_current(reflector.key) and reflector.is_synced):
                self._list(reflector)

    # ------------------------------------------------------------ our own writes

    def fold(self, manifest: dict[str, Any]) -> None:
        """Take an answered write as seen; an older version never replaces a newer one."""
        ref = ref_from_manifest(manifest)
        with self._lock:
            self._unsettled.pop(ref, None)
            self._news.touched(ref)
            for reflector in self._covering(ref):
                if reflector.key.version == ref.version:
                    reflector.store.put(entry_from(manifest, reflector.key, self.fleet_id))
                else:
                    self._unsettled[ref] = _Unsettled(UNANSWERED)

    def fold_deleted(self, ref: ObjectRef, uid: str) -> None:
        """Take an answered delete as sent. The object may linger (finalizers, grace), so it
        is unknown until the watch or a read shows what became of it.
        """
        with self._lock:
            self._news.touched(ref)
            held = [r.store.get((ref.namespace, ref.name)) for r in self._covering(ref)]
            if any(entry is not None and uid in {"", entry.uid} for entry in held):
                self._unsettled[ref] = _Unsettled(DELETED, uid)

    def mark_unknown(self, ref: ObjectRef) -> None:
        """A write of it got no answer: nothing is known of it until it is read again."""
        with self._lock:
            self._news.touched(ref)
            self._unsettled[ref] = _Unsettled(UNANSWERED)

    def settle(self) -> None:
        """Read again what a write or delete left unknown; what cannot be read stays so."""
        with self._lock:
            waiting = sorted(self._unsettled)
        for ref in waiting:
            try:
                manifest = self.cluster.get(ref)
            except (NotFound, KindNotFound):
                self._absent(ref)
            except Unreachable:
                return
            except StokerError as error:
                _log.debug("object.unsettled", object=str(ref), why=error.message)
            else:
                self.fold(manifest)

    # ------------------------------------------------------------------- reading

    def kinds(self) -> tuple[KindView, ...]:
        """Every cache at this instant, sorted by key."""
        with self._lock:
            return tuple(
                KindView(reflector.key, reflector.store.view(), reflector.why_unknown())
                for reflector in self._all()
            )

    def live(self, kinds: Iterable[KindView] | None = None) -> CachedLive:
        """The live view of these caches (None: of all, now)."""
        with self._lock:
            views = self.kinds() if kinds is None else tuple(kinds)
            unsettled = {ref: mark.why for ref, mark in self._unsettled.items()}
        return CachedLive(views, unsettled, self.cluster, self.scalers)

    def news(self) -> News:
        """What changed since the last call. Ask before reading: what comes later is told again."""
        with self._lock:
            return self._news.take()

    def history_went_back(self) -> bool:
        """Whether the cluster was restored to an older state since the last call."""
        rewinds = sum(reflector.rewinds for reflector in self._all())
        news = rewinds > self._rewinds_told
        self._rewinds_told = rewinds
        return news

    def status(self) -> tuple[WatchStatus, ...]:
        """How each cache is, sorted by label; callable from any thread."""
        found = []
        for view in self.kinds():
            thread = self._threads.get(view.key)
            found.append(
                WatchStatus(
                    label=view.key.label,
                    why_unknown=view.why_unknown,
                    objects=len(view.entries),
                    watching=thread is not None and thread.is_alive(),
                )
            )
        return tuple(sorted(found))

    # ------------------------------------------------------------------- private

    def _all(self) -> tuple[Reflector, ...]:
        return self._sorted

    def _covering(self, ref: ObjectRef) -> tuple[Reflector, ...]:
        return tuple(reflector for reflector in self._all() if reflector.key.covers(ref))

    def _add(self, key: WatchKey) -> Reflector:
        reflector = Reflector(
            key,
            self.cluster,
            KindStore(key, self._lock),
            self._clock,
            fleet_id=self.fleet_id,
            on_change=self._tell,
            jitter=self._jitter,
        )
        with self._lock:
            self._reflectors[key] = reflector
            self._sorted = tuple(self._reflectors[each] for each in sorted(self._reflectors))
        return reflector

    def _list(self, reflector: Reflector) -> None:
        self._absorb(reflector.key, reflector.relist() or ())

    def _launch(self, reflector: Reflector) -> None:
        thread = threading.Thread(
            target=self._thread,
            args=(reflector,),
            name=f"watch-{reflector.key.label}",
            daemon=True,
        )
        self._threads[reflector.key] = thread
        thread.start()

    def _thread(self, reflector: Reflector) -> None:
        """Run one watch loop for ever; a bug in it makes its kind unknown, not its last state."""
        while self._running:
            try:
                reflector.run()
            except Exception as error:  # noqa: BLE001 - the top of a thread is a boundary
                _log.exception("watch.crashed", kind=reflector.key.label)
                pause = reflector.crashed(f"its watch crashed: {type(error).__name__}")
                self._tell(reflector.key, ())
                self._clock.wait(pause)

    def _tell(self, key: WatchKey, changes: tuple[Changed, ...]) -> None:
        """What a watch thread saw; no changes means that the kind as a whole is news."""
        self._absorb(key, changes)
        if self.on_event is not None:
            events = events_from(key, changes, self.health_rules, self.awaited)
            for event in events or self._whole(key, changes):
                self.on_event(event)

    def _whole(self, key: WatchKey, changes: tuple[Changed, ...]) -> tuple[ObjectEvent, ...]:
        return () if changes else (ObjectEvent(key.ref(key.namespace, "")),)

    def _absorb(self, key: WatchKey, changes: tuple[Changed, ...]) -> None:
        with self._lock:
            self._news.changed(changes)
            for change in changes:
                gone = change.before
                if gone is not None and change.after is None:
                    ref = key.ref(gone.namespace, gone.name)
                    mark = self._unsettled.get(ref)
                    if mark is not None and mark.why == DELETED:
                        del self._unsettled[ref]
        if key == CRDS and changes:
            self.cluster.forget_discovery()
            for reflector in self._all():
                if reflector.store.why_unknown == NO_SUCH_KIND:
                    reflector.poke()

    def _absent(self, ref: ObjectRef) -> None:
        with self._lock:
            self._unsettled.pop(ref, None)
            self._news.touched(ref)
            for reflector in self._covering(ref):
                held = reflector.store.get((ref.namespace, ref.name))
                if held is not None:
                    reflector.store.remove((ref.namespace, ref.name), held.resource_version)

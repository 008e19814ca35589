"""One list-and-watch loop: keeps one cache as the API server has it.

The observer makes one a WatchKey and drives it from a thread (`run`) or by hand
(`relist`). `step` does one thing (a list, or a watch until it ends) and says how long to
wait before the next; it sleeps nowhere, so tests drive it without threads.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from stoker.errors import StokerError, Unreachable
from stoker.kube.errors import Forbidden, Gone, KindNotFound
from stoker.log import get_log
from stoker.model.ports import Clock, Cluster, WatchEvent
from stoker.objects.health_fields import mapping, text
from stoker.observe.collector import collector_off
from stoker.observe.keys import WatchKey
from stoker.observe.projection import Entry, entry_from
from stoker.observe.store import Changed, KindStore, is_newer

__all__ = ["NO_SUCH_KIND", "WENT_BACK", "Reflector"]

NO_SUCH_KIND = "no such kind"
"""Why a kind is unknown that the API server does not serve; its caches are empty then."""
WENT_BACK = "the API server answers with an older state than it had shown"
"""Why a kind is unknown while a server lags, and right after etcd was restored from a backup."""

FIRST_BACKOFF_SECONDS = 0.8
LONGEST_BACKOFF_SECONDS = 30.0
"""client-go's reflector: 0.8 s, doubled up to 30 s."""
ABSENT_TRIES = 5
ABSENT_SECONDS = 300.0
"""A kind that is not served is asked for so often, then so seldom: a changed CRD pokes us, and
only kinds that an APIService brings come without one."""
RELIST_SECONDS = 600.0
"""A real list now and then heals what a watch lost (cases.md row 87)."""
WATCH_SECONDS = 300
STEADY_SECONDS = 5.0
"""A watch that lives this long was no failure, however it ended."""
MOST_REFUSALS = 3
"""So many refused watches in a row, and lists take over."""
RESTORED_SECONDS = 30.0
"""Lists that are older than what was seen for so long are no lag: etcd was restored."""
IN_DOUBT_SECONDS = 5.0
"""The longest wait for the next list after an older one."""
BLIND_SECONDS = 60.0
"""Longer than this without a list or watch, the cache no longer says what is there."""

_log = get_log("observe")


class Reflector:
    """Keeps `store` current. One thread at a time may call `step` or `relist`."""

    def __init__(
        self,
        key: WatchKey,
        cluster: Cluster,
        store: KindStore,
        clock: Clock,
        *,
        fleet_id: str,
        on_change: Callable[[WatchKey, tuple[Changed, ...]], None],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.key = key
        self.store = store
        self.rewinds = 0
        """How often the cluster's history went back (etcd restored from a backup)."""
        self._older_since: float | None = None
        self._cluster = cluster
        self._clock = clock
        self._fleet_id = fleet_id
        self._on_change = on_change
        self._jitter = jitter
        self._position = ""
        self._must_list = True
        self._relist_due = 0.0
        self._list_failures = 0
        self._watch_failures = 0
        self._blind_since: float | None = None
        self._stopped = False
        self._poked = False

    # --------------------------------------------------------------- from outside

    def stop(self) -> None:
        """End `run` soon: now if it waits, else with the next event of its watch."""
        self._stopped = True

    def poke(self) -> None:
        """Cut a wait short and list next: something says that this kind has changed."""
        self._poked = True

    def crashed(self, why: str) -> float:
        """A bug broke the loop: nothing is known until a list; seconds to wait before it."""
        self.store.lose(why)
        self._must_list = True
        self._list_failures += 1
        return self._backoff(self._list_failures)

    @property
    def is_synced(self) -> bool:
        """Whether the last list or watch went well."""
        return not (self._must_list or self._blind_since is not None or self.store.why_unknown)

    def why_unknown(self) -> str:
        """Empty while the cache can be trusted, else why not."""
        blind_since = self._blind_since
        if not self.store.why_unknown and blind_since is not None:
            seconds = self._clock.monotonic() - blind_since
            if seconds > BLIND_SECONDS:
                return f"no contact with the API server for {seconds:.0f} s"
        return self.store.why_unknown

    # -------------------------------------------------------------------- the loop

    def run(self) -> None:
        """Step until stopped, waiting by the Clock port in slices, so that stop is soon."""
        while not self._stopped:
            due = self._clock.monotonic() + self.step()
            while not self._interrupted():
                left = due - self._clock.monotonic()
                if left <= 0:
                    break
                self._clock.wait(min(left, 0.5))

    def _interrupted(self) -> bool:
        return self._stopped or self._poked

    def step(self) -> float:
        """List if a list is due, else watch until the stream ends; seconds to wait after it."""
        if self._poked:
            self._poked = False
            self._must_list = True
            self._list_failures = 0
        if self._must_list or self._clock.monotonic() >= self._relist_due:
            return self._list_and_tell()
        return self._watch()

    def relist(self) -> tuple[Changed, ...] | None:
        """List once and take it as the truth: what changed, or None when it did not succeed.

        A list that fails changes only what is known: it is never an empty list. A list
        older than what was seen does not count either (a server may lag), until nothing
        else was answered for RESTORED_SECONDS: then it is the truth of a restored cluster.
        """
        try:
            version, entries = self._listed()
        except KindNotFound:
            self.store.drop(NO_SUCH_KIND)
            self._must_list = True
            return None
        except StokerError as error:
            self._list_failed(error)
            return None
        if is_newer(self._position, version) and not self._is_restored(version):
            self._must_list = True
            self.store.lose(WENT_BACK)
            return None
        changes = self.store.replace(version, entries)
        if is_newer(self._position, version) or any(change.goes_back for change in changes):
            _log.warning("history.rewound", kind=self.key.label, version=version)
            self.rewinds += 1
        self._older_since = None
        self._position = version
        self._must_list = False
        self._list_failures = 0
        self._blind_since = None
        self._relist_due = self._clock.monotonic() + RELIST_SECONDS * (0.9 + 0.2 * self._jitter())
        return changes

    def _listed(self) -> tuple[str, list[Entry]]:
        entries: list[Entry] = []
        with collector_off():
            page = self._cluster.list(
                self.key.group,
                self.key.kind,
                self.key.namespace,
                version=self.key.version,
                each=lambda item: entries.append(entry_from(item, self.key, self._fleet_id)),
            )
        return page.resource_version, entries

    def _is_restored(self, version: str) -> bool:
        """Whether older lists have gone on for so long that this one is to be believed."""
        now = self._clock.monotonic()
        if self._older_since is None:
            self._older_since = now
            _log.warning("list.older", kind=self.key.label, version=version, seen=self._position)
        if now - self._older_since < RESTORED_SECONDS:
            return False
        self.store.drop(WENT_BACK)
        return True

    def _list_failed(self, error: StokerError) -> None:
        self._must_list = True
        if isinstance(error, Forbidden):
            self.store.lose(f"forbidden: {error.message}")
        elif self.store.why_unknown:
            self.store.lose(error.message)
        else:
            self._lost_sight()

    def _list_and_tell(self) -> float:
        before = self.store.why_unknown
        changes = self.relist()
        if changes is not None and not before:
            if changes:  # a list now and then that finds nothing is no news
                self._on_change(self.key, changes)
        elif self.store.why_unknown != before:
            self._on_change(self.key, ())
        if changes is not None:
            return 0.0
        self._list_failures += 1
        if self.store.why_unknown == NO_SUCH_KIND and self._list_failures > ABSENT_TRIES:
            return ABSENT_SECONDS * (0.5 + self._jitter() / 2)
        pause = self._backoff(self._list_failures)
        return min(pause, IN_DOUBT_SECONDS) if self.store.why_unknown == WENT_BACK else pause

    def _watch(self) -> float:
        began = self._clock.monotonic()
        try:
            self._follow()
        except (Gone, KindNotFound):
            self._must_list = True
        except Unreachable:
            self._lost_sight()
            return self._pause(began, free=0)
        except StokerError as error:
            _log.debug("watch.refused", kind=self.key.label, why=error.message)
            self._lost_sight()
            pause = self._pause(began, free=0)
            self._must_list = isinstance(error, Forbidden) or self._watch_failures > MOST_REFUSALS
            return pause
        else:
            self._blind_since = None
        return self._pause(began, free=1)

    def _follow(self) -> None:
        """Take events until the stream ends, or until there is something else to do."""
        for event in self._cluster.watch(
            self.key.group,
            self.key.kind,
            self.key.namespace,
            version=self.key.version,
            resource_version=self._position,
            timeout_seconds=int(WATCH_SECONDS * (0.8 + 0.4 * self._jitter())),
        ):
            self._blind_since = None
            self._take(event)
            list_is_due = self._clock.monotonic() >= self._relist_due
            if self._stopped or self._poked or self._must_list or list_is_due:
                return

    def _take(self, event: WatchEvent) -> None:
        version = text(mapping(event.object, "metadata"), "resourceVersion")
        if event.type == "BOOKMARK":
            if is_newer(self._position, version):
                self._must_list = True  # the server's history may have gone back
            else:
                self._position = version or self._position
            return
        metadata = mapping(event.object, "metadata")
        name = (text(metadata, "namespace"), text(metadata, "name"))
        change: Changed | None = None
        if event.type == "DELETED":
            change = self.store.remove(name, version)
        elif not self.store.has_seen(name, version):  # our own writes were folded already
            change = self.store.put(entry_from(event.object, self.key, self._fleet_id))
        if version and not is_newer(self._position, version):
            self._position = version
        if change is not None:
            self._on_change(self.key, (change,))

    def _lost_sight(self) -> None:
        if self._blind_since is None:
            self._blind_since = self._clock.monotonic()

    def _pause(self, began: float, *, free: int) -> float:
        """Wait after a watch: longer with each short-lived one, the first `free` ones not."""
        if self._clock.monotonic() - began >= STEADY_SECONDS:
            self._watch_failures = 0
            if free:
                return 0.0
        self._watch_failures += 1
        return self._backoff(self._watch_failures - free)

    def _backoff(self, failures: int) -> float:
        if failures <= 0:
            return 0.0
        full = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 16))
        return full * (0.5 + self._jitter() / 2)

"""The steps of leaving a cluster: see that nobody works, give objects up, remove our state.

A cluster and a fleet id come in; what there is, then what was done go out. Every step can
be repeated: what a run that died has done stays done. Used by `stoker uninstall`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from stoker.apply import (
    HISTORY_LABEL,
    INVENTORY_LABEL,
    Held,
    InventoryStore,
    held_objects,
    release_objects,
)
from stoker.errors import Retryable, Stalled, StokerError, Waiting
from stoker.kube.errors import NotFound
from stoker.loop.lease import Lease
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef
from stoker.model.workload import GROUP_KIND, LWS_VERSION
from stoker.objects.names import (
    DRAINING_SINCE,
    FLEET_ID,
    GROUP,
    OWNER,
    SERVICE_LABEL,
    TRAFFIC_LABEL,
    VERSION,
    unit_of_mark,
)
from stoker.report import definition_manifests

__all__ = ["Found", "Leave", "Left"]

_MIRRORS = ("Fleet", "ModelService", "ScalePolicy")
_USUAL = (
    ("", "ConfigMap", "v1"),
    ("", "Service", "v1"),
    ("", "ServiceAccount", "v1"),
    ("apps", "Deployment", "v1"),
    (*GROUP_KIND, LWS_VERSION),
    ("policy", "PodDisruptionBudget", "v1"),
)
"""Looked through in every namespace of the fleet, for what a lost inventory may not list."""
WATCHED_SECONDS = 17.0
"""How long the lease of a holder that may be dead is watched: a duration and a renewal more."""
LOOK_SECONDS = 2.0
RENEW_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Found:
    """What the fleet has in the cluster. `state` is in the order in which it is removed."""

    held: tuple[Held, ...] = ()
    state: tuple[tuple[ObjectRef, str], ...] = ()
    kept_definitions: str = ""
    """Why the CRDs stay although their removal was asked for."""
    draining: tuple[ObjectRef, ...] = ()
    """Pods that a drain under way has taken the traffic from: they stay so."""

    def text(self, *, verbose: bool) -> str:
        """What is going to happen; with `verbose` name by name."""
        lines = []
        if verbose:
            lines += [f"= keep    {item.ref}" for item in self.held]
            lines += [f"- remove  {ref}" for ref, _ in self.state]
        lines.append(
            f"{_count(self.held)} stay, and their fields belong to nobody; "
            f"{len(self.state)} objects of Stoker's own state go"
        )
        lines += [
            f"{ref} was draining and takes no requests; to send it some again: "
            f"kubectl -n {ref.namespace} label pod {ref.name} {TRAFFIC_LABEL}=true"
            for ref in self.draining
        ]
        if self.kept_definitions:
            lines.append(f"the CRDs stay: {self.kept_definitions}")
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Left:
    """What was done; printed as ux.md has it."""

    kept: tuple[Held, ...] = ()
    deleted: int = 0
    """Objects that `deletionPolicy: Delete` took away before."""
    restarted: int = 0
    problems: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        """`kept 45 objects in 2 namespaces; released field manager; 0 pods restarted`."""
        gone = f"deleted {self.deleted} objects; " if self.deleted else ""
        kept = f"kept {_count(self.kept)}"
        return f"{gone}{kept}; released field manager; {self.restarted} pods restarted"


def _count(held: tuple[Held, ...]) -> str:
    spaces = {item.ref.namespace for item in held if item.ref.namespace}
    return f"{len(held)} objects in {len(spaces)} namespaces"


class Leave:
    """One fleet that leaves. `look`, then `refuse_running`, then `go`."""

    def __init__(self, cluster: Cluster, clock: Clock, fleet_id: str, namespace: str) -> None:
        self._cluster = cluster
        self._clock = clock
        self._fleet_id = fleet_id
        self._namespace = namespace
        self._name = f"stoker-{fleet_id}"
        self._lease = Lease(
            cluster,
            clock,
            namespace=namespace,
            name=self._name,
            holder=f"uninstall-{socket.gethostname()}-{os.getpid()}",
        )
        self._renewed = clock.monotonic()

    # -------------------------------------------------------------------- look
    def look(self, *, definitions: bool = False) -> Found:
        """Everything there is; raises where something cannot be read."""
        inventory = InventoryStore(self._cluster, self._fleet_id, namespace=self._namespace)
        stored = inventory.stored()
        refs = stored.owners() if stored is not None else {}
        spaces = {ref.namespace for ref in refs if ref.namespace}
        mirrors = self._mirrors()
        spaces |= {ref.namespace for ref, _ in mirrors if ref.namespace}
        places = {(ref.group, ref.kind, ref.version, ref.namespace) for ref in refs}
        places |= {(*kind, space) for kind in _USUAL for space in spaces}
        held = held_objects(self._cluster, self._fleet_id, places)
        own = self._own_state()
        state_refs = {ref for ref, _ in own}
        held = tuple(item for item in held if item.ref not in state_refs and self._is_work(item))
        crds, why = self._definitions(mirrors) if definitions else ((), "")
        return Found(held, (*mirrors, *crds, *own), why, self._draining(spaces))

    def _draining(self, spaces: set[str]) -> tuple[ObjectRef, ...]:
        found = []
        for space in sorted(spaces):
            page = self._cluster.list("", "Pod", space, version="v1", metadata_only=True)
            for item in page.items:
                metadata = item["metadata"]
                labels = metadata.get("labels") or {}
                drains = DRAINING_SINCE in (metadata.get("annotations") or {})
                if drains and SERVICE_LABEL in labels and TRAFFIC_LABEL not in labels:
                    found.append(ObjectRef("", "Pod", space, str(metadata["name"])))
        return tuple(found)

    def _is_work(self, item: Held) -> bool:
        """Whether it is the fleet's work: our state is written by our manager too, unmarked."""
        if item.ref.namespace != self._namespace:
            return True
        annotations = item.body["metadata"].get("annotations") or {}
        mark = str(annotations.get(OWNER, ""))
        return unit_of_mark(mark, self._fleet_id, item.ref) is not None

    def _mirrors(self) -> tuple[tuple[ObjectRef, str], ...]:
        found = []
        for kind in _MIRRORS:
            try:
                page = self._cluster.list(GROUP, kind, version=VERSION, metadata_only=True)
            except Waiting:
                continue
            for item in page.items:
                metadata = item["metadata"]
                if (metadata.get("annotations") or {}).get(FLEET_ID) == self._fleet_id:
                    space = str(metadata.get("namespace", ""))
                    ref = ObjectRef(GROUP, kind, space, str(metadata["name"]), VERSION)
                    found.append((ref, str(metadata["uid"])))
        return tuple(found)

    def _own_state(self) -> tuple[tuple[ObjectRef, str], ...]:
        """History, shards, then the parent: while it stands, what is left can be found."""
        names = []
        try:
            page = self._cluster.list("", "ConfigMap", self._namespace, metadata_only=True)
        except Waiting:
            return ()
        for item in page.items:
            metadata = item["metadata"]
            labels = metadata.get("labels") or {}
            ours = {labels.get(INVENTORY_LABEL), labels.get(HISTORY_LABEL)}
            if self._fleet_id in ours:
                names.append((str(metadata["name"]), str(metadata["uid"])))
        last = self._name
        ordered = sorted(names, key=lambda found: (found[0] == last, found[0]))
        return tuple(
            (ObjectRef("", "ConfigMap", self._namespace, name), uid) for name, uid in ordered
        )

    def _definitions(
        self, mirrors: tuple[tuple[ObjectRef, str], ...]
    ) -> tuple[tuple[tuple[ObjectRef, str], ...], str]:
        """The CRDs that nobody else uses; all stay while one is used."""
        ours = {ref for ref, _ in mirrors}
        found = []
        for body in definition_manifests():
            ref = ObjectRef(
                "apiextensions.k8s.io", "CustomResourceDefinition", "", body["metadata"]["name"]
            )
            kind = str(body["spec"]["names"]["kind"])
            try:
                live = self._cluster.get(ref)
                page = self._cluster.list(GROUP, kind, version=VERSION, metadata_only=True)
            except Waiting:
                continue
            others = [
                item["metadata"]["name"]
                for item in page.items
                if ObjectRef(
                    GROUP,
                    kind,
                    str(item["metadata"].get("namespace", "")),
                    str(item["metadata"]["name"]),
                    VERSION,
                )
                not in ours
            ]
            if others:
                return (), f"{len(others)} {kind} objects are not this fleet's ({others[0]}, …)"
            found.append((ref, str(live["metadata"]["uid"])))
        return tuple(found), ""

    # ------------------------------------------------------------------ refuse
    def refuse_running(self, tell: Callable[[str], None]) -> None:
        """Take the lease, so that nobody works meanwhile.

        Raises Stalled with code controller-running while a controller is installed with
        replicas, or another holder renews the lease.
        """
        stop = f"kubectl -n {self._namespace} scale deployment {self._name} --replicas=0"
        deployment = ObjectRef("apps", "Deployment", self._namespace, self._name)
        try:
            count = (self._cluster.get(deployment).get("spec") or {}).get("replicas", 1)
        except NotFound:
            count = 0
        if count:
            raise Stalled(
                f"deployment {self._name} runs {count} controllers; they would take all back",
                code="controller-running",
                hint=stop,
            )
        seen = self._holder()
        ends_at = self._clock.monotonic() + WATCHED_SECONDS
        while not self._take():
            if seen[0] and self._clock.monotonic() < ends_at and self._holder() == seen:
                tell(f"waiting for the lease of {seen[0]} to run out")
                self._clock.wait(LOOK_SECONDS)
                continue
            raise Stalled(
                f"{self._holder()[0] or 'somebody'} holds the lease of the fleet and renews it",
                code="controller-running",
                hint=f"stop that controller, for instance: {stop}",
            )

    def _take(self) -> bool:
        try:
            return self._lease.renew()
        except NotFound:
            return True  # no namespace, so no controller

    def _holder(self) -> tuple[str, str]:
        """Who holds the lease, and when it was last renewed."""
        ref = ObjectRef("coordination.k8s.io", "Lease", self._namespace, self._name, "v1")
        try:
            spec = self._cluster.get(ref).get("spec") or {}
        except NotFound:
            return "", ""
        return str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")

    def checkpoint(self) -> None:
        """Keep the lease while there is work."""
        if self._clock.monotonic() < self._renewed + RENEW_SECONDS:
            return
        if not self._take():
            raise Retryable("a controller took the lease; it works again", code="conflict")
        self._renewed = self._clock.monotonic()

    # ---------------------------------------------------------------------- go
    def go(self, found: Found, deleted: int = 0) -> Left:
        """Give up what is held, then remove our state; nothing of it while objects are left."""
        released = release_objects(
            self._cluster, self._fleet_id, found.held, checkpoint=self.checkpoint
        )
        problems = [
            f"{item.ref}: {item.error.message} [{item.error.code}]"
            for item in released
            if item.error is not None
        ]
        failed = {item.ref for item in released if item.error is not None}
        kept = tuple(item for item in found.held if item.ref not in failed)
        restarted = sum(item.restarted for item in released)
        if problems:
            return Left(kept, deleted, restarted, tuple(problems))
        for ref, uid in found.state:
            self.checkpoint()
            try:
                self._cluster.delete(ref, uid=uid)
            except NotFound:
                continue
            except StokerError as error:
                problems.append(f"{ref}: {error.message} [{error.code}]")
        if not problems:
            self._drop_lease()
        return Left(kept, deleted, restarted, tuple(problems))

    def _drop_lease(self) -> None:
        ref = ObjectRef("coordination.k8s.io", "Lease", self._namespace, self._name, "v1")
        try:
            self._cluster.delete(ref)
        except NotFound:
            return

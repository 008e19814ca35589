"""A cluster in memory, a fleet on it, and whole passes of diff and apply."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakes_live import FakeLive, live_object
from stoker.apply import InventoryStore, apply
from stoker.diff import DiffMemo, diff
from stoker.errors import Unreachable
from stoker.kube.client import Client
from stoker.kube.errors import KindNotFound, NotFound
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Request
from stoker.model.change import ChangeSet
from stoker.model.fleet import Desired
from stoker.model.manifest import ManifestSet
from stoker.model.outcome import ObjectOutcome, PassOutcome
from stoker.model.refs import ObjectRef, ref_from_manifest
from unit.diff.diff_builders import FLEET_ID, desired

KINDS = (
    ("", "Namespace", "v1"),
    ("", "ConfigMap", "v1"),
    ("", "Secret", "v1"),
    ("", "Pod", "v1"),
    ("", "ResourceQuota", "v1"),
    ("apps", "Deployment", "v1"),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "v1"),
    ("example.org", "Gizmo", "v1"),
)
HUMAN = "kubectl-edit"


@dataclass
class StoppedClock:
    """Time that stands still until a test moves it."""

    at_ms: int = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    def wait(self, seconds: float) -> None:
        raise AssertionError("apply never waits")


@dataclass
class Caches:
    """Records what apply tells the caches."""

    folded: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[tuple[ObjectRef, str]] = field(default_factory=list)
    unknown: list[ObjectRef] = field(default_factory=list)

    def fold(self, obj: dict[str, Any]) -> None:
        self.folded.append(obj)

    def fold_deleted(self, ref: ObjectRef, uid: str) -> None:
        self.deleted.append((ref, uid))

    def mark_unknown(self, ref: ObjectRef) -> None:
        self.unknown.append(ref)


class World:
    """One fleet on one cluster. `passes` restart the controller when `fresh` is asked."""

    def __init__(self) -> None:
        self.clock = StoppedClock()
        self.server = MemoryServer(self.clock)
        self.cluster = Client(self.server)
        self.caches = Caches()
        self.memo = DiffMemo()
        self.store = InventoryStore(self.cluster, FLEET_ID)
        for name in ("stoker-system", "llm"):
            self.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def twin(self) -> World:
        """Another controller of the same fleet on the same cluster."""
        other = copy.copy(self)
        other.restart()
        return other

    # ----------------------------------------------------------------- cluster

    def make(self, body: dict[str, Any], *, manager: str = "kubectl-create") -> dict[str, Any]:
        return self.cluster.create(body, manager=manager)

    def get(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.cluster.get(ref_from_manifest(body))

    def has(self, body: dict[str, Any]) -> bool:
        try:
            self.get(body)
        except (NotFound, KindNotFound):
            return False
        return True

    def patch(
        self, body: dict[str, Any], patch: Any, *, manager: str = HUMAN, subresource: str = ""
    ) -> None:
        ref = ref_from_manifest(body)
        self.cluster.patch(ref, "merge", patch, manager=manager, subresource=subresource)

    def delete(self, body: dict[str, Any]) -> None:
        self.cluster.delete(ref_from_manifest(body))

    def live(self, **options: Any) -> FakeLive:
        """Everything that stands, as caches would show it."""
        view = FakeLive(**options)
        for group, kind, version in KINDS:
            try:
                items = self.cluster.list(group, kind, version=version).items
            except KindNotFound:
                view.missing_kinds.add((group, kind))
                continue
            for item in items:
                found = live_object(item)
                view.objects[found.ref] = found
        names = {o.ref.name: o.body for o in view.objects.values() if o.ref.kind == "Namespace"}
        for name in ("llm", "team"):
            phase = names[name]["status"]["phase"] if name in names else ""
            view.phases.setdefault(name, phase)
        return view

    # ------------------------------------------------------------------- passes

    def restart(self) -> None:
        """Forget everything that is only in memory."""
        self.cluster = Client(self.server)
        self.store = InventoryStore(self.cluster, FLEET_ID)
        self.memo = DiffMemo()

    def forget_inventory(self) -> None:
        """Somebody deletes every ConfigMap of the inventory."""
        for item in self.cluster.list("", "ConfigMap", "stoker-system").items:
            self.cluster.delete(ref_from_manifest(item))
        self.restart()

    def cut_off_after_the_union(self) -> None:
        """Nothing answers any more once the inventory's union is written."""

        def before(request: Request) -> None:
            if request.method == "PATCH" or request.path.endswith("/kube-system"):
                raise Unreachable("no answer")

        self.server.before = before

    def look(
        self, *sets: ManifestSet, fleet: Desired | None = None, live: FakeLive | None = None
    ) -> tuple[Desired, ChangeSet]:
        wanted = fleet or desired(*(s.unit for s in sets))
        view = live or self.live()
        inventory = self.store.read(wanted.fleet.name, view)
        changes = diff(wanted, sets, view, inventory, self.cluster, FLEET_ID, self.memo)
        return wanted, changes

    def run(
        self,
        *sets: ManifestSet,
        fleet: Desired | None = None,
        live: FakeLive | None = None,
        checkpoint: Callable[[], None] = lambda: None,
        between: Callable[[], None] = lambda: None,
        in_flight: int = 1,
    ) -> PassOutcome:
        """One pass; `between` happens after diff looked and before apply writes."""
        wanted, changes = self.look(*sets, fleet=fleet, live=live)
        between()
        return apply(
            changes,
            wanted,
            self.cluster,
            self.store,
            self.caches,
            self.clock,
            FLEET_ID,
            checkpoint=checkpoint,
            in_flight=in_flight,
        )

    # -------------------------------------------------------------------- audit

    def writes(self, since: int = 0) -> list[tuple[str, str]]:
        """Method and last part of the path of every write since that entry of the audit."""
        return [
            (entry.method, entry.path.rpartition("/")[2])
            for entry in self.server.audit[since:]
            if entry.method != "GET" and ("dryRun", "All") not in entry.query
        ]

    @property
    def mark(self) -> int:
        """Where the audit stands now."""
        return len(self.server.audit)

    def stored(self) -> dict[tuple[str, str], str]:
        """The inventory in the cluster: (unit, name) -> UID."""
        found = InventoryStore(self.cluster, FLEET_ID).stored()
        assert found is not None
        return {(u.name, r.name): uid for u in found.units for r, uid in found.objects(u).items()}


def outcomes(outcome: PassOutcome) -> dict[str, ObjectOutcome]:
    """By name of the object, pruned ones included."""
    found = {o.ref.name: o for unit in outcome.units for o in unit.objects}
    return {**found, **{o.ref.name: o for o in outcome.pruned}}


def results(outcome: PassOutcome) -> dict[str, str]:
    return {name: str(found.result) for name, found in outcomes(outcome).items()}


def fail_on(method: str, part: str) -> Callable[[Request], None]:
    """A hook that drops requests."""

    def hook(request: Request) -> None:
        if request.method == method and part in request.path:
            raise Unreachable("no answer")

    return hook


def body_of(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.body or b"{}")
    return found

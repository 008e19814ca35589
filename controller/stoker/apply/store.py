"""The inventory in the cluster: one parent ConfigMap and plain shards beside it.

Inventories come in and go out as data; reads are two requests per process, writes one for
the parent and one per changed shard, each with the resourceVersion last seen, so that a
stale leader stops at its first union (design section 6). Used by reconcile and apply.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.errors import Retryable, Stalled, StokerError
from stoker.kube.errors import AlreadyExists, Conflict, NotFound
from stoker.model.live import LiveView
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects.consent import consents_on_live
from stoker.objects.inventory import Inventory
from stoker.objects.inventory_shards import (
    adopted_in_shards,
    entries_from_shards,
    shards_from_entries,
)
from stoker.objects.names import MANAGED_BY, manager_of, unit_of_mark
from stoker.objects.owned import is_applied_by

__all__ = ["INVENTORY_LABEL", "STATE_NAMESPACE", "InventoryStore"]

INVENTORY_LABEL = "stoker.dev/inventory"
"""On the parent and every shard: the fleet id."""
STATE_NAMESPACE = "stoker-system"

_FLEET, _SHARDS, _WRITES, _ENTRIES = "fleet", "shards", "writes", "entries"


@dataclass(slots=True)
class _Stored:
    """What stands in the cluster, as far as our own reads and answers tell.

    `maps` are all ConfigMaps with our label, by name. `parent` is None before the first
    write.
    """

    parent: dict[str, Any] | None = None
    maps: dict[str, dict[str, Any]] = field(default_factory=dict)
    read_as: Inventory | None = None
    """What the maps say, once parsed; None again from the first write on."""
    settled: bool = False
    """Whether the maps are exactly what a write of the current inventory would make."""

    def shard_names(self) -> tuple[str, ...]:
        """Shards that the parent names, in its order."""
        return tuple(_text(self.parent, _SHARDS).split()) if self.parent is not None else ()


class InventoryStore:
    """One fleet's inventory. Belongs to the reconciler thread; only the leader writes."""

    def __init__(
        self, cluster: Cluster, fleet_id: str, *, namespace: str = STATE_NAMESPACE
    ) -> None:
        self._cluster = cluster
        self._fleet_id = fleet_id
        self._namespace = namespace
        self._stored: _Stored | None = None
        self._current: Inventory | None = None
        self.is_alone: Callable[[], bool] = lambda: False
        """Whether nobody else can have written since the last look, so that none is needed."""

    @property
    def parent_name(self) -> str:
        """The parent ConfigMap."""
        return f"stoker-{self._fleet_id}"

    @property
    def current(self) -> Inventory:
        """What `read` gave, with every write since."""
        assert self._current is not None, "the inventory is used before it was read"
        return self._current

    @property
    def known(self) -> Inventory | None:
        """The same, None where it has to be read first."""
        return self._current

    def forget(self) -> None:
        """Read everything again next time (another controller may have written)."""
        self._stored = None
        self._current = None

    def stored(self) -> Inventory | None:
        """What the ConfigMaps hold, None when they are absent or damaged.

        Tells which kinds must be watched before the live view can be asked. Call it once a
        pass: one GET shows whether anybody else has written since, unless we are known to be
        alone. Raises what the Cluster port raises.
        """
        self._forget_if_stale()
        return self._whole(self._load())

    def read(self, fleet_name: str, live: LiveView) -> Inventory:
        """The inventory of the fleet, from what `stored` has seen.

        A lost or damaged one is rebuilt from owner marks and says so; then nothing is
        pruned in this pass. Raises Stalled with code fleet-name-changed when it was written
        under another name, and what the Cluster port raises.
        """
        if self._current is not None:
            self._refuse_other_name(self._current.fleet_name, fleet_name)
            return self._current
        found = self._whole(self._load())
        if found is None:
            found = self._rebuilt(fleet_name, live)
        else:
            self._refuse_other_name(found.fleet_name, fleet_name)
        self._current = found
        return found

    def write(self, inventory: Inventory) -> None:
        """Make the cluster hold this inventory; nothing is sent when it already does.

        Raises Retryable with code conflict when somebody else has written since: then
        nothing of ours may be applied. Raises Stalled when the namespace is absent.
        """
        stored = self._load()
        if stored.settled and inventory is self._current:
            return
        stored.settled = False
        try:
            self._write(stored, inventory)
        except (Conflict, AlreadyExists) as error:
            self.forget()
            message = f"another controller wrote the inventory of fleet {self._fleet_id}"
            raise Retryable(message, code="conflict") from error
        except NotFound as error:
            self.forget()
            if not self._namespace_is_missing():
                message = f"somebody deleted a part of the inventory of fleet {self._fleet_id}"
                raise Retryable(message, code="conflict") from error
            raise Stalled(
                f"the inventory cannot be written: {error.message}",
                code="state-namespace-missing",
                hint=f"create namespace {self._namespace}, or run stoker install",
            ) from error
        except StokerError:
            self.forget()  # whether the write happened is not known
            raise
        self._current = replace(inventory, rebuilt=False) if inventory.rebuilt else inventory
        stored.settled = True

    # ------------------------------------------------------------------ reading

    def _forget_if_stale(self) -> None:
        """Read everything again when the parent is not the one we know."""
        if self._stored is None or self._stored.parent is None:
            self._stored = None
            return
        if self.is_alone():
            return
        ref = ObjectRef("", "ConfigMap", self._namespace, self.parent_name)
        known = self._stored.parent["metadata"]["resourceVersion"]
        try:
            if self._cluster.get(ref)["metadata"]["resourceVersion"] == known:
                return
        except NotFound:
            pass
        self.forget()

    def _namespace_is_missing(self) -> bool:
        try:
            self._cluster.get(ObjectRef("", "Namespace", "", self._namespace))
        except NotFound:
            return True
        return False

    def _load(self) -> _Stored:
        if self._stored is None:
            page = self._cluster.list(
                "",
                "ConfigMap",
                self._namespace,
                version="v1",
                label_selector=f"{INVENTORY_LABEL}={self._fleet_id}",
            )
            maps = {str(item["metadata"]["name"]): item for item in page.items}
            self._stored = _Stored(maps.pop(self.parent_name, None), maps)
        return self._stored

    def _whole(self, stored: _Stored) -> Inventory | None:
        """The inventory of the parent and all of its shards; None when a part is missing."""
        if stored.read_as is not None:
            return stored.read_as
        names = stored.shard_names()
        if stored.parent is None or any(name not in stored.maps for name in names):
            return None
        try:
            texts = [_text(stored.maps[name], _ENTRIES) for name in names]
            entries, adopted = entries_from_shards(texts), adopted_in_shards(texts)
        except ValueError:
            return None
        empty = Inventory(self._fleet_id, _text(stored.parent, _FLEET))
        stored.read_as = empty.union(entries, adopted=adopted)
        return stored.read_as

    def _rebuilt(self, fleet_name: str, live: LiveView) -> Inventory:
        """From owner marks, and from whatever shard can still be read.

        A mark alone is no proof, for anybody can type one: our manager must have applied it.
        """
        stored = self._load()
        if stored.parent is not None:
            self._refuse_other_name(_text(stored.parent, _FLEET), fleet_name)
        entries: list[tuple[UnitRef, ObjectRef, str]] = []
        adopted: set[ObjectRef] = set()
        for name in sorted(stored.maps):
            try:
                text = _text(stored.maps[name], _ENTRIES)
                entries.extend(entries_from_shards((text,)))
                adopted |= adopted_in_shards((text,))
            except ValueError:
                continue
        for item in live.owned(self._fleet_id):
            unit = unit_of_mark(item.owner, self._fleet_id, item.ref)
            if unit is not None and is_applied_by(item.body, manager_of(self._fleet_id)):
                entries.append((unit, item.ref, item.uid))
                if consents_on_live(item.body, manager_of(self._fleet_id)).adopted:
                    adopted.add(item.ref)
        lost = bool(entries) or stored.parent is not None or bool(stored.maps)
        return Inventory(self._fleet_id, fleet_name, rebuilt=lost).union(entries, adopted=adopted)

    def _refuse_other_name(self, recorded: str, fleet_name: str) -> None:
        if recorded in {"", fleet_name}:
            return
        self.forget()
        raise Stalled(
            f"the fleet was called {recorded} and is called {fleet_name} now; "
            "nothing is changed or deleted under another name",
            code="fleet-name-changed",
            hint=f"name it {recorded} again, or set data.{_FLEET} of ConfigMap "
            f"{self._namespace}/{self.parent_name} to {fleet_name}",
        )

    # ------------------------------------------------------------------ writing

    def _write(self, stored: _Stored, inventory: Inventory) -> None:
        try:
            texts = shards_from_entries(
                (
                    (unit, ref, uid)
                    for unit, objects in inventory.entries.items()
                    for ref, uid in objects.items()
                ),
                adopted=inventory.adopted,
            )
        except ValueError as error:
            raise Stalled(str(error), code="inventory-too-large") from error
        wanted = {
            f"{self.parent_name}-{number}-of-{len(texts)}": text
            for number, text in enumerate(texts)
        }
        changed = [
            name
            for name, text in wanted.items()
            if name not in stored.maps or _text(stored.maps[name], _ENTRIES) != text
        ]
        named = stored.shard_names()
        moves = bool(named) and named != tuple(wanted)
        same_name = _text(stored.parent, _FLEET) == inventory.fleet_name
        if not changed and not moves and stored.parent is not None and same_name:
            return
        stored.read_as = None
        # 1. The parent first: whoever has not seen the last write fails here, and stops.
        self._put_parent(stored, inventory, named if moves else tuple(wanted))
        for name in changed:
            self._put(stored, name, {_ENTRIES: wanted[name]})
        # 2. Another number of shards counts once all of the new ones are complete.
        if moves:
            self._put_parent(stored, inventory, tuple(wanted))
        for name in sorted(set(stored.maps) - set(wanted)):
            self._delete(stored, name)

    def _put_parent(self, stored: _Stored, inventory: Inventory, shards: tuple[str, ...]) -> None:
        writes = int(_text(stored.parent, _WRITES) or "0") + 1
        data = {
            _FLEET: inventory.fleet_name,
            _SHARDS: "\n".join(shards),
            _WRITES: str(writes),
        }
        stored.parent = self._send(self.parent_name, stored.parent, data)

    def _put(self, stored: _Stored, name: str, data: dict[str, str]) -> None:
        stored.maps[name] = self._send(name, stored.maps.get(name), data)

    def _send(
        self, name: str, before: dict[str, Any] | None, data: dict[str, str]
    ) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "name": name,
            "namespace": self._namespace,
            "labels": {INVENTORY_LABEL: self._fleet_id, MANAGED_BY: "stoker"},
        }
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        manager = manager_of(self._fleet_id)
        if before is None:
            return self._cluster.create(body, manager=manager)
        metadata["uid"] = before["metadata"]["uid"]
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
        return self._cluster.update(body, manager=manager)

    def _delete(self, stored: _Stored, name: str) -> None:
        ref = ObjectRef("", "ConfigMap", self._namespace, name)
        with contextlib.suppress(NotFound):
            self._cluster.delete(ref, uid=stored.maps[name]["metadata"]["uid"])
        del stored.maps[name]


def _text(body: dict[str, Any] | None, key: str) -> str:
    data = (body or {}).get("data") or {}
    return str(data.get(key, ""))

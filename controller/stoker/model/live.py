"""Live objects as the caches hold them, and the view that stages read them through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from stoker.model.refs import ObjectRef

__all__ = ["LiveObject", "LiveView"]


@dataclass(frozen=True, slots=True)
class LiveObject:
    """One live object. `body` is the whole manifest with managedFields; read-only.

    `owner` is the value of the annotation stoker.dev/owner, empty without one.
    """

    ref: ObjectRef
    uid: str
    resource_version: str
    owner: str
    body: dict[str, Any] = field(hash=False, repr=False)

    @property
    def content_version(self) -> str:
        """Equal versions of one object mean equal content; only its status may differ.

        Caches that can tell a change of status from others give more than the
        resourceVersion, which every write changes.
        """
        return self.resource_version

    @property
    def is_leaving(self) -> bool:
        """Whether its deletion was asked for; finalizers or a grace period keep it."""
        return bool(self.body.get("metadata", {}).get("deletionTimestamp"))

    def with_body(self, body: dict[str, Any]) -> LiveObject:
        """The same object with a body that was read elsewhere."""
        return LiveObject(self.ref, self.uid, self.resource_version, self.owner, body)


class LiveView(Protocol):
    """What is known of the cluster's objects at one instant (immutable)."""

    def get(self, ref: ObjectRef) -> LiveObject | None:
        """The object, or None when it is known to be absent. Ask `known` first."""
        ...

    def known(self, ref: ObjectRef) -> bool:
        """Whether presence or absence of this object is known for certain now."""
        ...

    def owned(self, fleet_id: str) -> tuple[LiveObject, ...]:
        """Every known object whose owner mark names this fleet and the object itself."""
        ...

    def why_unknown(self, ref: ObjectRef) -> str:
        """Why `known` is False for it (`forbidden`, `not synced`, `no such kind`, …)."""
        ...

    def has_kind(self, ref: ObjectRef) -> bool | None:
        """Whether the API server serves that kind; None when discovery failed."""
        ...

    def is_namespaced(self, ref: ObjectRef) -> bool:
        """Whether the kind lives in namespaces (True when unknown)."""
        ...

    def namespace_phase(self, name: str) -> str:
        """`Active`, `Terminating`, `` for absent, `Unknown`."""
        ...

    def scaler(self, ref: ObjectRef) -> str | None:
        """Who else owns the count of a workload (`HorizontalPodAutoscaler/x`).

        Empty for nobody, None when the autoscalers could not be read.
        """
        ...

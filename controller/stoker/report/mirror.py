"""One object that shows the fleet or a service in the cluster, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Mirror"]


@dataclass(frozen=True, slots=True)
class Mirror:
    """One object that shows a unit in the cluster: never read back, never an owner.

    `manifest` has no status, `status` is the whole object with only its status. A mirror
    with `count_known` False is not created, and its spec.replicas is left alone.
    """

    kind: str
    namespace: str
    name: str
    digest: str
    manifest: dict[str, Any] = field(hash=False)
    status: dict[str, Any] = field(hash=False)
    count_known: bool = True
    count_external: bool = False
    """Somebody else owns spec.replicas (an autoscaler that targets the mirror)."""
    provisional: bool = False
    """Something is not known yet: one that stands with this digest and a suffix is as good."""
    made_from: str = ""
    """The unit's digest, empty for the fleet."""

"""Every reason code of apply, each with one line for people.

Part of the published, closed list (`stoker explain CODE`, docs/reasons.md). Codes of API
answers (`forbidden`, `invalid-object`, …) are those of kube.errors and published with it.
"""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS: dict[str, str] = {
    "adoption-required": "The name is in use by an object that this fleet did not make.",
    "custom-resources-left": "The CRD goes only when no object of its kind is left.",
    "deletion-pending": "The object is being deleted; finalizers or its pods hold it.",
    "fleet-name-changed": "The inventory was written under another fleet name; nothing is done.",
    "inventory-too-large": "The inventory does not fit into the ConfigMaps it may use.",
    "kind-not-found": "The cluster does not serve this kind yet; the object waits for its CRD.",
    "left-to-others": "Fields of the object belong to another manager and were not sent.",
    "namespace-terminating": "The namespace is being deleted.",
    "not-sent": "The pass ended before this object; the next one carries on.",
    "observe-only": "The fleet is in mode Observe: nothing is written.",
    "prune-held": "Kept in this pass: its unit has not applied, or nothing may be deleted now.",
    "state-namespace-missing": "The namespace for inventory and lease does not exist.",
    "uid-differs": "Kept: somebody deleted the object and made it again.",
    "waiting-for-live-state": "The object is another than the one compared; it is read again.",
}
"""Code -> what it means."""

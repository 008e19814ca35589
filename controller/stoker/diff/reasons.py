"""Every reason code of diff, each with one line for people.

Part of the published, closed list (`stoker explain CODE`, docs/reasons.md). Codes of API
answers (`forbidden`, `invalid-object`, …) are those of kube.errors and published with it.
"""

from __future__ import annotations

__all__ = ["REASONS"]

_SENT = {
    "adopt-consented": "Somebody else made the object, and Git says to take it over.",
    "adoption-required": "The name is in use by an object that this fleet did not make.",
    "claimed-by-other-unit": "Another unit made the object and may still want it.",
    "deletion-pending": "The live object is being deleted; finalizers may hold it.",
    "duplicate-object": "Two units render the same object; the first one by name has it.",
    "kind-not-found": "The cluster does not serve this kind yet; the object waits for its CRD.",
    "live-state-unknown": "Whether the object exists could not be read, so nothing is done to it.",
    "namespace-not-found": "The namespace does not exist, and this fleet does not make it.",
    "namespace-terminating": "The namespace is being deleted.",
    "not-found": "The object or its namespace is not there.",
    "create-only": "Git says to create the object where it is absent and never to change it.",
    "reconcile-disabled": "Git says to leave the object as it is live (stoker.dev/reconcile).",
    "recreate-consented": "A fixed field changes, and Git consents to delete and create.",
    "other-controller-active": "Another GitOps controller still writes the object; stop it first.",
    "render-empty": "A unit renders nothing any more although its objects stand; they are kept.",
}

_LEFT_GIT = {
    "custom-resources-left": "The CRD goes only when no object of its kind is left.",
    "draining": "The service left Git; its replicas finish their requests before they go.",
    "foreign-owner": "Kept: another object owns it by ownerReference.",
    "inventory-intent": "Kept: a pass that did not end made it; its UID is recorded first.",
    "kept-by-policy": "Kept: an annotation on the object says so.",
    "leaves-by-retirement": "Kept: replicas of a service are drained, never pruned.",
    "namespace-in-use": "Kept: something of the fleet stays in the namespace.",
    "needs-consent": "Kept: this kind, or what was adopted, is deleted only by named consent.",
    "orphan": "Kept: it bears our mark, but the inventory does not prove that we made it.",
    "owner-mark-differs": "Kept: its owner mark names another unit.",
    "owner-mark-missing": "Kept: its owner mark is gone or names another object.",
    "prune-held": "Kept in this pass: what the pass knows is not enough to delete anything.",
    "prune-never": "Kept: the fleet's prune.mode is Never.",
    "prune-unconfirmed": "Kept: prune.mode is Confirm, and no commit trailer names the unit.",
    "uid-differs": "Kept: somebody deleted the object and made it again.",
}

REASONS: dict[str, str] = {**_SENT, **_LEFT_GIT}
"""Code -> what it means, by code."""

"""Reason codes that report and its writers give, with a line each for the published list.

A condition's reason is such a code (or one of another stage) in CamelCase, or a member of
`conditions.Reason`.
"""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS: dict[str, str] = {
    "apply-failed": "An object could not be written and the server gave no code we know.",
    "apply-refused": "An object must not be written; the note says why.",
    "bug": "An invariant of Stoker broke; please report it with the log.",
    "change-window-closed": "A new revision waits for the next change window of the fleet.",
    "crd-missing": "The CRDs of stoker.dev are not installed; mirrors are left out.",
    "dependents-first": "It left Git, and goes after what depends on it.",
    "mirrors-forbidden": "The controller may not read or write its mirrors.",
    "mirrors-not-written": "A mirror could not be written; it is tried again.",
    "override-unreadable": "The override annotation of a mirror cannot be read; it lowers no count.",
    "push-rejected": "The Git server refused the status commit; it is tried again.",
    "records-not-written": "The data ref refuses decision records; status is not affected.",
    "ssh-keygen-failed": "ssh-keygen made no deploy key.",
    "ssh-keygen-missing": "ssh-keygen is not installed, so no deploy key can be made.",
    "suspended": "Suspended: nothing of it is written or deleted until it is resumed.",
    "update-failed": "Its new rev failed; what served before is kept up until Git has another one.",
    "timed-out": "The unit is not Healthy within its spec.timeout; it is worked on all the same.",
    "waiting-for-dependency": "A unit of dependsOn has not applied this revision, or is not Healthy or ready.",
}

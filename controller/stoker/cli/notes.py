"""What holds a change up, in lines for `diff` and `plan`: when it would be applied, and after what.

Desired as it was gated, and the snapshot come in; lines without line ends go out.
"""

from __future__ import annotations

from stoker.holding import pending_of
from stoker.model.fleet import Desired
from stoker.model.snapshot import Snapshot
from stoker.model.times import rfc3339

__all__ = ["notes_of"]

LISTED = 20


def notes_of(desired: Desired, snapshot: Snapshot, now_ms: int) -> tuple[str, ...]:
    """At most 20 lines, the fleet's first; empty when a commit would be applied at once."""
    notes = []
    pending = pending_of(desired, now_ms)
    if pending is not None:
        notes.append(f"change window closed: {pending.message}")
    refs = {unit.ref for unit in desired.units}
    notes += [f"{each.by} {each.unit.short}: {each.message}" for each in desired.held]
    for override in snapshot.overrides:
        if override.holds(now_ms) and override.ref in refs:
            until = rfc3339(override.until_ms)
            reason = f": {override.reason}" if override.reason else ""
            notes.append(
                f"Override {override.ref.short}: {override.replicas} until {until}{reason}"
            )
    for full in snapshot.when_full_overrides:
        if full.holds(now_ms) and full.ref in refs:
            reason = f": {full.reason}" if full.reason else ""
            asked = f"whenFull {full.when_full} until {rfc3339(full.until_ms)}"
            notes.append(f"Override {full.ref.short}: {asked}{reason}")
    notes += [
        f"Override {each.ref.short}: not obeyed, its annotation cannot be read: {each.text}"
        for each in snapshot.unread_overrides
        if each.ref in refs
    ]
    for unit in desired.units:
        if unit.flow.depends_on:
            after = ", ".join(str(ref) for ref in unit.flow.depends_on)
            asked = "ready" if unit.flow.asked_by_expression else "Healthy"
            notes.append(f"{unit.ref.short} changes after {after} has applied and is {asked}")
    return (*notes[:LISTED], f"… and {len(notes) - LISTED} more")[: len(notes)]

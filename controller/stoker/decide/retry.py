"""When what the API server refused is sent again, unit by unit. Pure; called by reconcile.

Before apply: changes that failed before and are still the same are not sent until their
unit's wait is over. After apply: what came of the pass becomes the next waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.fleet import Desired
from stoker.model.outcome import ObjectOutcome, PassOutcome, Result
from stoker.model.refs import ObjectRef, UnitRef

__all__ = ["Retry", "next_retry_ms", "put_off", "retries_after"]

FIRST_MS = 5_000
"""Without spec.retryInterval: doubled with each failure in a row. Argo CD's default is 5 s too."""
LONGEST_MS = 300_000
WAITING_MS = 15_000
"""What waits for something else wakes by its event; this is for events that got lost."""

_Key = tuple[str, str, str]
_SENT = frozenset({Action.CREATE, Action.CHANGE, Action.DELETE})
_OPEN = frozenset({Result.WAITING, Result.FAILED, Result.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Failure:
    """One refused object: what was sent onto what, and the answer."""

    key: _Key
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Retry:
    """One unit. `failures` counts passes in a row in which something of it failed or waited."""

    failures: int
    at_ms: int
    refused: Mapping[ObjectRef, Failure] = field(default_factory=dict, hash=False)


def put_off(changes: ChangeSet, retries: Mapping[UnitRef, Retry], now_ms: int) -> ChangeSet:
    """The same, but what was refused and has not changed since waits for its unit's turn."""
    units = []
    for unit in changes.units:
        retry = retries.get(unit.unit)
        if retry is None or not retry.refused or now_ms >= retry.at_ms:
            units.append(unit)
        else:
            changed = tuple(_put_off(change, retry) for change in unit.changes)
            units.append(replace(unit, changes=changed))
    return replace(changes, units=tuple(units))


def retries_after(
    changes: ChangeSet,
    outcome: PassOutcome,
    desired: Desired,
    before: Mapping[UnitRef, Retry],
    now_ms: int,
    is_transient: Callable[[str], bool],
) -> dict[UnitRef, Retry]:
    """The waits after a pass, of units in which something failed or waits.

    What is held (`Desired.held`) waits for no retry. A transient refusal is sent again with
    the next pass, for the answer said when that is.
    """
    sent = {unit.unit: unit for unit in changes.units}
    flows = {unit.ref: unit.flow for unit in desired.units}
    held = {each.unit for each in desired.held if each.whole}
    found: dict[UnitRef, Retry] = {}
    for unit, objects in _objects_of(changes, outcome).items():
        if unit in held or not any(o.result in _OPEN for o in objects):
            continue
        old = before.get(unit, Retry(0, 0))
        refused = _refused(sent.get(unit), objects, old, is_transient)
        if refused == old.refused and now_ms < old.at_ms:
            found[unit] = old
            continue
        wait_ms = (FIRST_MS if refused else WAITING_MS) * 2 ** min(old.failures, 10)
        fixed_ms = flows[unit].retry_ms if unit in flows else None
        wait_ms = fixed_ms if fixed_ms is not None else min(LONGEST_MS, wait_ms)
        found[unit] = Retry(old.failures + 1, now_ms + wait_ms, refused)
    return found


def _objects_of(
    changes: ChangeSet, outcome: PassOutcome
) -> dict[UnitRef, tuple[ObjectOutcome, ...]]:
    """What came of each unit, refused deletes included; also of units that left Git.

    What finalizers hold is no failure: its event ends that wait.
    """
    found = {unit.unit: unit.objects for unit in outcome.units}
    owners = {change.ref: unit.unit for unit in changes.units for change in unit.changes}
    for pruned in outcome.pruned:
        if pruned.result is Result.FAILED and pruned.ref in owners:
            unit = owners[pruned.ref]
            found[unit] = (*found.get(unit, ()), pruned)
    return found


def next_retry_ms(retries: Mapping[UnitRef, Retry]) -> int | None:
    """When the first unit is due; None when nothing is to be tried again."""
    return min((retry.at_ms for retry in retries.values()), default=None)


def _put_off(change: Change, retry: Retry) -> Change:
    failure = retry.refused.get(change.ref)
    if failure is None or change.action not in _SENT or failure.key != _key(change):
        return change
    return replace(
        change, action=Action.ERROR, payload=None, code=failure.code, note=failure.message
    )


def _refused(
    sent: UnitChanges | None,
    objects: tuple[ObjectOutcome, ...],
    old: Retry,
    is_transient: Callable[[str], bool],
) -> dict[ObjectRef, Failure]:
    """Objects that will be refused again unless something changes, with what was sent."""
    changes = {change.ref: change for change in sent.changes} if sent is not None else {}
    refused: dict[ObjectRef, Failure] = {}
    for result in objects:
        change = changes.get(result.ref)
        if change is None or result.result is not Result.FAILED or is_transient(result.code):
            continue
        if change.action in _SENT:
            refused[result.ref] = Failure(_key(change), result.code, result.message)
        elif result.ref in old.refused:
            refused[result.ref] = old.refused[result.ref]
    return refused


def _key(change: Change) -> _Key:
    """What was sent onto what: another of either is worth another try at once."""
    digest = change.manifest.digest if change.manifest is not None else ""
    return digest, change.live_uid, change.live_resource_version

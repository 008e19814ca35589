"""The part HEALTH of `stoker explain`: objects that are not well, and which file says so."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.cli.compare import Compared
from stoker.cli.diff_forms import secrets_of
from stoker.model.change import Action
from stoker.model.outcome import Health
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.workload import is_workload
from stoker.objects.health import ABSENT, HealthVerdict, health_of
from stoker.objects.health_rules import HealthRules
from stoker.report.status_rows import clean

__all__ = ["health_lines"]


def health_lines(found: Compared, unit: UnitRef, rules: HealthRules) -> Iterator[str]:
    """Every object of the unit that is not healthy, in apply order; one line when all are.

    Deployments of a ModelService are left out: its replicas are told of above.
    """
    refs = [
        ref for ref in _rendered(found, unit) if unit.kind != "ModelService" or not _served(ref)
    ]
    hide = secrets_of(found.changes).hide_text if found.changes is not None else str
    judged = [(ref, _verdict(found, ref, rules)) for ref in refs]
    wrong = [(ref, verdict) for ref, verdict in judged if verdict.status is not Health.HEALTHY]
    if not refs:
        return
    yield f"HEALTH  {len(refs) - len(wrong)} of {len(refs)} objects are well"
    for ref, verdict in wrong:
        yield f"  {ref}  {verdict.status}: {verdict.reason}"
        if verdict.message:
            yield f"    {clean(hide(verdict.message))}"
        if verdict.by:
            yield f"    by {verdict.by}"


def _rendered(found: Compared, unit: UnitRef) -> list[ObjectRef]:
    units = found.changes.units if found.changes is not None else ()
    changes = next((each.changes for each in units if each.unit == unit), ())
    return [c.ref for c in changes if c.action not in {Action.DELETE, Action.KEEP}]


def _served(ref: ObjectRef) -> bool:
    return is_workload(ref)


def _verdict(found: Compared, ref: ObjectRef, rules: HealthRules) -> HealthVerdict:
    if not found.live.known(ref):
        return HealthVerdict(Health.UNKNOWN, "Unknown", found.live.why_unknown(ref))
    live = found.live.get(ref)
    return health_of(live.body, rules) if live is not None else ABSENT

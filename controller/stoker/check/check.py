"""Stage check: stop or go, unit by unit.

`Desired` and the rendered sets come in, the same sets go out with findings; a set with an
error is incomplete and empty, so that nothing of its unit is changed or pruned. Called by
reconcile after render. Collects everything that is wrong, not just the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain

from stoker.check import consent, duplicates, ignore, metadata, secrets, service, sizes, starts
from stoker.errors import Finding, Severity
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.last_answer import LastAnswer
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.plan import Plan
from stoker.model.refs import UnitRef

__all__ = ["CheckMemo", "check"]

_EVERY_UNIT: tuple[Callable[[tuple[Manifest, ...]], list[Finding]], ...] = (
    metadata.check_metadata,
    consent.check_consent,
    secrets.check_secrets,
    sizes.check_sizes,
)


@dataclass(frozen=True, slots=True)
class _Known:
    """One set as it was given, its own findings, and the set with all of its findings."""

    unit: Unit
    item: ManifestSet
    own: tuple[Finding, ...]
    judged: ManifestSet


@dataclass(slots=True)
class CheckMemo:
    """Findings of sets that have not changed since an earlier pass, by unit, and what the sets
    came to with them: the same object again while nothing is found otherwise.
    """

    known: dict[UnitRef, _Known] = field(default_factory=dict)
    last: LastAnswer[tuple[ManifestSet, ...]] = field(default_factory=LastAnswer)


def check(
    desired: Desired,
    sets: tuple[ManifestSet, ...],
    memo: CheckMemo | None = None,
    plan: Plan | None = None,
) -> tuple[ManifestSet, ...]:
    """Give the sets again, each with its findings; incomplete and empty where one is an error.

    With a memo, a set that is the same object as in the pass before is not looked at again.
    The plan brings what was learned of starts.
    """
    late = starts.find_late(desired, plan)
    memo = memo if memo is not None else CheckMemo()
    if (last := memo.last.to(desired, sets, equal=late)) is not None:
        return last
    units = {unit.ref: unit for unit in desired.units}
    twice = duplicates.find_duplicates(sets)
    covered = ignore.find_covered(desired, sets)
    checked: list[ManifestSet] = []
    found: dict[UnitRef, _Known] = {}
    for item in sets:
        unit = units[item.unit]
        before = memo.known.get(item.unit)
        if before is not None and (before.unit != unit or before.item is not item):
            before = None
        own = before.own if before is not None else _own_findings(unit, item)
        shared = (found_there.get(item.unit, ()) for found_there in (twice, covered, late))
        judged = _judged(item, (*own, *chain.from_iterable(shared)))
        if before is not None and before.judged == judged:
            judged = before.judged
        found[item.unit] = _Known(unit, item, own, judged)
        checked.append(judged)
    memo.known, answer = found, tuple(checked)
    memo.last.keep(answer, desired, sets, equal=late)
    return answer


def _own_findings(unit: Unit, item: ManifestSet) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    for rule in _EVERY_UNIT:
        findings += rule(item.manifests)
    if isinstance(unit.spec, ModelService):
        findings += service.check_service(unit, unit.spec, item.manifests)
    return tuple(findings)


def _judged(item: ManifestSet, findings: tuple[Finding, ...]) -> ManifestSet:
    """The set with its findings; stopped where one of them is an error."""
    marked = {replace(finding, unit=str(item.unit)) for finding in findings}
    everything = tuple(sorted({*item.findings, *marked}))
    if everything == item.findings:
        return item
    if any(finding.severity is Severity.ERROR for finding in marked):
        return ManifestSet(item.unit, kept=item.kept, complete=False, findings=everything)
    return replace(item, findings=everything)

"""What all stages said, put together unit by unit. Called by report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stoker.errors import Finding, Severity, SourceLocation
from stoker.model.flow import UnreadOverride
from stoker.model.refs import UnitRef
from stoker.model.snapshot import ServiceState
from stoker.objects.wishes import OVERRIDE, WHEN_FULL
from stoker.report.inputs import ReportInputs
from stoker.report.service_state import ServiceView, pods_unknown
from stoker.report.unit_state import UnitFacts

__all__ = ["facts_of", "in_scope"]


def in_scope(ref: UnitRef, inputs: ReportInputs) -> bool:
    """Whether this pass looked at the unit."""
    return inputs.scope is None or ref in inputs.scope


def facts_of(inputs: ReportInputs) -> Sequence[UnitFacts]:
    """What was said about each unit in scope, sorted; nothing without desired state."""
    desired = inputs.desired
    if desired is None:
        return ()
    findings = _findings_by_unit(inputs)
    specs = {unit.ref: unit for unit in desired.units}
    changes = {c.unit: c for c in inputs.changes.units} if inputs.changes is not None else {}
    outcomes = {o.unit: o for o in inputs.outcome.units} if inputs.outcome is not None else {}
    decisions = {d.ref: d for d in inputs.plan.decisions} if inputs.plan is not None else {}
    held = {each.unit: each for each in desired.held}
    views = _views(inputs)
    wanted = set(specs) | set(desired.broken)
    pruned = {o.ref: o for o in inputs.outcome.pruned} if inputs.outcome is not None else {}
    facts = []
    for ref in sorted(each for each in wanted | set(changes) if in_scope(each, inputs)):
        outcome = outcomes.get(ref)
        change = changes.get(ref)
        results = {o.ref: o for o in outcome.objects} if outcome is not None else {}
        for entry in change.changes if change is not None else ():
            if entry.ref in pruned:
                results[entry.ref] = pruned[entry.ref]
        facts.append(
            UnitFacts(
                ref=ref,
                unit=specs.get(ref),
                changes=change,
                outcome=outcome,
                decision=decisions.get(ref),
                view=views(ref),
                findings=findings.get(str(ref), ()),
                broken=ref not in specs and ref in desired.broken,
                gone=ref not in wanted and desired.unit_set_known,
                previous=inputs.previous.units.get(ref),
                results=results,
                held=held.get(ref),
            )
        )
    return facts


def _views(inputs: ReportInputs) -> Callable[[UnitRef], ServiceView | None]:
    """Look up what the snapshot says about a service; None without a snapshot."""
    snapshot = inputs.snapshot
    if snapshot is None:
        return lambda ref: None  # noqa: ARG005 - the same shape as below
    states = {state.ref: state for state in snapshot.services}
    notices = {node.name: node.notice for node in snapshot.nodes if node.notice is not None}
    return lambda ref: ServiceView(
        states.get(ref) or ServiceState(ref), pods_unknown(snapshot, ref), notices
    )


def _findings_by_unit(inputs: ReportInputs) -> dict[str, tuple[Finding, ...]]:
    """Each finding once, under the unit it names or the unit whose stage gave it."""
    found: dict[str, dict[Finding, None]] = {}

    def add(unit: str, findings: Sequence[Finding]) -> None:
        for finding in findings:
            found.setdefault(finding.unit or unit, {})[finding] = None

    if inputs.desired is not None:
        add("", inputs.desired.findings)
    add("", inputs.findings)
    if inputs.snapshot is not None:
        add("", [_of_override(each) for each in inputs.snapshot.unread_overrides])
    for changes in inputs.changes.units if inputs.changes is not None else ():
        add(str(changes.unit), changes.findings)
    for outcome in inputs.outcome.units if inputs.outcome is not None else ():
        add(str(outcome.unit), outcome.findings)
    return {unit: tuple(findings) for unit, findings in found.items()}


def _of_override(unread: UnreadOverride) -> Finding:
    """That somebody asked for something in vain: a warning, for nothing is held for it."""
    key = WHEN_FULL if unread.of_when_full else OVERRIDE
    message = f"the annotation {key} of the mirror cannot be read and is not obeyed: "
    return Finding(
        SourceLocation(),
        "override-unreadable",
        message + unread.text,
        hint=f"set it anew or clear it: stoker override {unread.ref.name}",
        severity=Severity.WARNING,
        unit=str(unread.ref),
    )

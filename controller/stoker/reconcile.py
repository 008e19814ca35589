"""One pass, from a source revision to reported outcomes: nine calls with early stops.

Open this file first. Stages take data and ports and return data; conditions are derived
once, in report. The loop, `run --once`, `apply`, `diff` and `plan` all call `reconcile`;
they only choose how far it goes.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.apply import apply
from stoker.cel import Cel
from stoker.check import check
from stoker.decide import decide
from stoker.diff import Audit, diff
from stoker.errors import BadInput, Finding, SourceLocation, Stalled, StokerError
from stoker.holding import (
    acting,
    adopt,
    earliest,
    gate,
    judging,
    learn,
    opens_at,
    pending_of,
    settle,
)
from stoker.log import get_log
from stoker.model.fleet import Desired, FleetMode
from stoker.model.history import History
from stoker.model.refs import SourceRevision
from stoker.narrow import Sight, looked_after, units_with_news
from stoker.objects.health_rules import HealthRules
from stoker.observe import listed, observe
from stoker.parts import Parts, Pass, Reach, State
from stoker.render import render
from stoker.report import ReportInputs, report
from stoker.reverting import shaped
from stoker.source import shipped_checks, source

__all__ = ["Parts", "Pass", "Reach", "State", "finding_of", "health_rules", "reconcile", "reported"]

_log = get_log("pass")


def reconcile(
    parts: Parts,
    state: State,
    *,
    revision: SourceRevision | None = None,
    source_finding: Finding | None = None,
    reach: Reach = Reach.APPLY,
) -> Pass:
    """Run one pass at a revision (None: the newest) and go as far as `reach`.

    `source_finding` is why the poller has no news; the last good revision is then worked
    on. The state is updated; errors of the tree are in the result, bugs are raised.
    """
    found = _sourced(parts, state, Pass(parts.clock.now_ms(), revision, failure=source_finding))
    if found.desired is not None:
        found = _adopted(parts, state, found, found.desired, reach)
    if (desired := found.desired) is not None:
        try:
            found = _stages(parts, state, found, desired, reach)
        except StokerError as error:
            _log.warning("pass.stopped", code=error.code, message=error.message)
            found = replace(found, failure=finding_of(error, desired.fleet.location))
    if reach < Reach.APPLY:
        return found
    return _remembered(parts, state, reported(parts, state, found))


def _sourced(parts: Parts, state: State, found: Pass) -> Pass:
    """Stage 1, source: the wanted state, or the last good one and what is wrong."""
    if found.failure is not None:
        return replace(found, desired=state.desired)
    try:
        desired = source(
            parts.repo, parts.identity.source_path, parts.source_memo, revision=found.attempted
        )
    except StokerError as error:
        _log.warning("source.failed", code=error.code, message=error.message)
        return replace(found, desired=state.desired, failure=finding_of(error))
    state.desired = desired
    return replace(found, desired=desired, attempted=desired.revision)


def _adopted(parts: Parts, state: State, found: Pass, head: Desired, reach: Reach) -> Pass:
    """The revision to work on: the newest, or the one before while change windows are closed.

    A preview looks at the newest and only says when it would be applied.
    """
    if reach < Reach.APPLY:
        return replace(found, pending=pending_of(head, found.now_ms))
    path = parts.identity.source_path
    where = (state.previous, parts.repo, path, found.now_ms)
    desired, pending = adopt(state.holding, head, *where)
    if pending is None:
        return found
    return replace(
        found,
        desired=desired,
        attempted=desired.revision,
        pending=pending,
        wake_at_ms=pending.until_ms,
    )


def _stages(parts: Parts, state: State, found: Pass, desired: Desired, reach: Reach) -> Pass:
    """Stages 2 to 8: observe, shape, decide, render, check, diff, apply."""
    _refuse_other_cluster(parts, desired)
    if reach >= Reach.APPLY and desired.fleet.mode is FleetMode.CORRECT:
        parts.prepare()
    fleet_id, ungated = parts.identity.fleet_id, desired
    looked, state.looked = state.looked, None  # a pass that is aborted leaves nothing
    parts.observer.health_rules = health_rules(desired)
    news = parts.observer.news()
    asks = parts.store.known is None and reach >= Reach.DIFF
    owned = parts.store.stored() if asks else parts.store.known
    seen = observe(parts.observer, desired, found.now_ms, owned)
    held = state.holding
    if seen.reconcile != held.handled:
        held.handled, held.retries = seen.reconcile, {}
    waits = reach >= Reach.APPLY or bool(state.previous.units)
    judge = judging(held, seen.live, Cel())
    standing = (seen.snapshot, state.previous)
    path, by = parts.identity.source_path, (parts.repo, parts.renderer, fleet_id)
    where = (*standing, parts.repo, path, found.now_ms)
    desired, lapse_ms = gate(held, desired, *where, waits=waits, judge=judge)
    parts.observer.awaited = held.awaited
    desired, shapes = shaped(held, state.history, desired, path, *by, checkpoint=parts.checkpoint)
    plan = decide(desired, shapes.shapes, seen.snapshot, state.history, found.now_ms)
    parts.checkpoint()
    rendered = render(desired, shapes, plan, *by, checkpoint=parts.checkpoint)
    sets = check(desired, rendered, parts.check_memo, plan)
    found = replace(
        found,
        desired=desired,
        ungated=ungated,
        wake_at_ms=earliest(lapse_ms, found.wake_at_ms),
        snapshot=seen.snapshot,
        live=seen.live,
        shapes=shapes.shapes,
        findings=shapes.findings,
        plan=plan,
        sets=sets,
    )
    if reach < Reach.DIFF:
        return found
    stored = owned if asks else parts.store.stored()
    only = None
    if reach >= Reach.APPLY:
        sight = _sight(state, found)
        only = units_with_news(looked, sight, parts.store.known, news, found.now_ms)
    live = parts.observer.live() if only is not None else listed(parts.observer, sets, stored)
    inventory = parts.store.read(desired.fleet.name, live)
    changes = diff(
        desired,
        sets,
        live,
        inventory,
        parts.cluster,
        fleet_id,
        parts.diff_memo,
        plan=plan,
        snapshot=seen.snapshot,
        verify=parts.verify,
        audit=_audit(parts, desired, found.now_ms, reach) if only is None else None,
        now_ms=found.now_ms,
        only=only,
    )
    read_jobs = parts.history.read_jobs
    changes = settle(held, changes, desired, *standing, found.now_ms, read_jobs, only=only)
    found = replace(found, live=live, changes=changes, only=only, looked=looked)
    if reach < Reach.APPLY:
        return found
    writing = acting(desired, seen.snapshot, found.now_ms)
    correct = writing.fleet.mode is FleetMode.CORRECT
    adopted = held.adopted if desired.fleet.change_windows else ""
    if correct and adopted:  # before anything of it is written: a crash must not lead back
        parts.history.save(state.history, adopted, held.jobs)
    outcome = apply(
        changes,
        writing,
        parts.cluster,
        parts.store,
        parts.observer,
        parts.clock,
        fleet_id,
        checkpoint=parts.checkpoint,
    )
    learn(held, changes, outcome, desired, found.now_ms, read_jobs, only=only)
    state.history = History.from_records(plan.history, plan.starts)
    if correct:
        parts.history.save(state.history, adopted, held.jobs)
    return replace(found, outcome=outcome, live=parts.observer.live())


def reported(parts: Parts, state: State, found: Pass) -> Pass:
    """Stage 9, report: conditions, documents and mirrors, whatever the pass came to."""
    answer = report(
        ReportInputs(
            identity=parts.identity,
            now_ms=found.now_ms,
            desired=found.desired,
            attempted=found.attempted,
            failure=found.failure,
            pending=found.pending,
            handled=state.holding.handled,
            snapshot=found.snapshot,
            plan=found.plan,
            changes=found.changes,
            outcome=found.outcome,
            live=found.live,
            health=health_rules(found.desired),
            secrets=parts.diff_memo.known,
            previous=state.previous,
            scope=found.only,
            findings=found.findings,
            warnings=parts.warnings(),
            written=parts.written(),
        ),
        checkpoint=parts.checkpoint,
    )
    state.previous = answer.memory
    wake_ms = earliest(found.wake_at_ms, answer.wake_at_ms)
    if found.ungated is not None and found.desired is not None:
        held = (state.holding, found.ungated, found.desired, answer.memory, found.now_ms)
        judge = judging(state.holding, found.live, Cel())
        wake_ms = earliest(wake_ms, opens_at(*held, judge))
    return replace(found, report=answer, wake_at_ms=wake_ms)


def _remembered(parts: Parts, state: State, found: Pass) -> Pass:
    """Leave for the next pass what this one looked at, where it came to its end.

    Where it did not, the report may say less of units than was known of them.
    """
    if found.failure is not None or found.outcome is None or found.changes is None:
        state.looked = None
        return found
    state.looked = looked_after(
        found.looked,
        found.only,
        _sight(state, found),
        found.changes,
        found.outcome,
        state.previous,
        parts.store.known,
        found.now_ms,
    )
    return replace(found, looked=None)


def _sight(state: State, found: Pass) -> Sight:
    """What tells a pass whom to look at, once it has rendered."""
    assert found.desired is not None
    assert found.plan is not None
    assert found.snapshot is not None
    handled = state.holding.handled
    return Sight(found.desired, found.sets, found.plan, found.snapshot, found.findings, handled)


def _audit(parts: Parts, desired: Desired, now_ms: int, reach: Reach) -> Audit | None:
    """The audit, set to this pass; what writes nothing (a mode, a warm-up) has none."""
    audit = parts.audit if reach >= Reach.APPLY else None
    if audit is None or desired.fleet.mode is not FleetMode.CORRECT:
        return None
    audit.start(parts.cluster, now_ms)
    return audit


def health_rules(desired: Desired | None) -> HealthRules:
    """How custom kinds are judged: by the fleet's own health files, then by the shipped ones."""
    return HealthRules(Cel(), desired.health if desired is not None else (), shipped_checks)


def _refuse_other_cluster(parts: Parts, desired: Desired) -> None:
    uid = parts.cluster.server().cluster_uid
    if uid != desired.fleet.cluster_uid:
        raise Stalled(
            f"this cluster is {uid}, fleet {desired.fleet.name} belongs to "
            f"{desired.fleet.cluster_uid}",
            code="wrong-cluster",
            hint="choose another context, or correct spec.cluster.uid",
        )


def finding_of(error: StokerError, location: SourceLocation | None = None) -> Finding:
    """An error of a whole stage as one finding; of bad input, its first.

    `location` is where a person would mend what a Stalled error names; time mends others.
    """
    if isinstance(error, BadInput) and error.findings:
        return error.findings[0]
    place = location if location is not None and isinstance(error, Stalled) else SourceLocation()
    return Finding(place, error.code, error.message, hint=error.hint)

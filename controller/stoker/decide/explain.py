"""A decision in words: the lines of `stoker explain`, and the rejections worth naming.

decide calls named_rejections, the command line and report call explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stoker.decide.case import Case
from stoker.decide.explain_scale import scale_lines
from stoker.decide.place import Index
from stoker.decide.spot_seen import spot_lines
from stoker.decide.tally import Tally
from stoker.model.fleet import Desired, ModelService, PlacementMode, WhenFull
from stoker.model.history import History
from stoker.model.limits import PlacementLimits, Reclaim
from stoker.model.plan import Attempt, Plan, ServiceDecision
from stoker.model.refs import UnitRef
from stoker.model.times import rfc3339, span
from stoker.objects.wishes import asks_for_a_node

__all__ = ["explain", "named_rejections", "quarantined"]

MOST_NAMED = 3
QUARANTINED = "quarantined"
COLUMNS = ("NODE", "CLASS", "READY IN", "VERDICT")


def named_rejections(tallies: Iterable[Tally]) -> tuple[Attempt, ...]:
    """At most three nodes that were turned away, each by another rule, the nearest first.

    Those in quarantine are told one by one, whether a place was looked for or not.
    """
    named: dict[str, Attempt] = {}
    for tally in tallies:
        if tally.rule != QUARANTINED and tally.rule not in named and len(named) < MOST_NAMED:
            named[tally.rule] = Attempt(tally.node, tally.pool, tally.reason, tally.rule)
    return tuple(named.values())


def quarantined(case: Case, index: Index) -> tuple[Attempt, ...]:
    """Every node of the service's pools that it leaves out for failed starts, sorted by name."""
    return tuple(
        Attempt(bar.node, pool, bar.why, QUARANTINED)
        for bar in case.bars.bars
        if (pool := index.pool(case, bar.node))
    )


def explain(desired: Desired, plan: Plan, ref: UnitRef, *, record: str = "") -> tuple[str, ...]:
    """Why the service is where it is, as lines without line ends.

    `record` names the decision record, if there is one. A unit without a decision gets
    one line that says why.
    """
    decision = plan.decision(ref)
    unit = desired.unit(ref)
    if decision is None or unit is None or not isinstance(unit.spec, ModelService):
        return (f"{ref.short}  {_why_undecided(desired, ref)}",)
    return (
        _headline(decision, plan, record),
        "",
        *_count(desired, decision),
        *_place(unit.spec, decision),
        *_steps(decision),
        *spot_lines(
            desired.fleet, unit.spec, decision, History.from_records(plan.history), plan.now_ms
        ),
        *_ahead(decision),
        *_holds(decision),
    )


def _why_undecided(desired: Desired, ref: UnitRef) -> str:
    if ref in desired.broken:
        return "not decided: its files are wrong (stoker validate); what stands is left as it is"
    unit = desired.unit(ref)
    if unit is None:
        return "not decided: not in Git"
    if not isinstance(unit.spec, ModelService):
        return f"nothing to decide about a {ref.kind}"
    return "not decided: it did not render; what stands is left as it is"


def _headline(decision: ServiceDecision, plan: Plan, record: str) -> str:
    wants = "?" if decision.replicas is None else str(decision.replicas)
    groups = f" of groups of {decision.size} pods" if decision.size > 1 else ""
    state = [f"{decision.ready} Ready{groups}", f"{decision.warming} warming"]
    if decision.holds:
        state.append(", ".join(hold.code for hold in decision.holds))
    line = f"{decision.ref.short}  wants {wants}: {', '.join(state)}"
    known = f"decision {record} " if record else "decided "
    return f"{line}      {known}at {rfc3339(plan.now_ms)}"


def _count(desired: Desired, decision: ServiceDecision) -> Iterable[str]:
    unit = desired.unit(decision.ref)
    where = ""
    measured = decision.scale is not None and decision.count.source == decision.scale.algorithm
    if unit is not None and (measured or decision.count.source == "Git"):
        line = unit.line_of("spec.scaling" if measured else "spec.replicas")
        where = f"  {line.path}:{line.line} @ {desired.revision.short}"
    wants = "?" if decision.replicas is None else str(decision.replicas)
    owner = "" if decision.count.source == "Git" else f"{decision.count.source}: "
    yield f"COUNT  {wants}   {owner}{decision.count.detail}{where}"
    if decision.count.refused:
        yield f"       override {decision.count.refused}"
    spec = unit.spec if unit is not None and isinstance(unit.spec, ModelService) else None
    if decision.scale is not None and spec is not None and spec.scaling is not None:
        yield from scale_lines(spec.scaling, decision.scale)
    yield f"       floor {decision.floor} Ready while anything moves"


def _place(spec: ModelService, decision: ServiceDecision) -> Iterable[str]:
    if decision.mode is PlacementMode.SCHEDULER:
        yield "PLACE  placement.mode is Scheduler: nodes are the scheduler's choice"
    else:
        pools = " > ".join(map(_pool(spec.limits), spec.pools)) or "all of the fleet"
        yield f"PLACE  order {spec.placement_order}; pools {pools}{_limits(spec.limits)}{_importance(spec)}"
    if decision.when_full:
        yield f"       override whenFull {decision.when_full}"
    rows = [COLUMNS, *(_row(attempt) for attempt in decision.attempts)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows if decision.attempts else ():
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  " + "  ".join([*cells, row[3]])
    if decision.rejected:
        counts = ", ".join(f"{rule} {count}" for rule, count in decision.rejected)
        yield f"  nodes turned away, by rule: {counts}"


def _pool(limits: PlacementLimits) -> Callable[[str], str]:
    """Name of a pool, with its base where it has one."""

    def told(name: str) -> str:
        return f"{name} (base {limits.base(name)})" if limits.base(name) else name

    return told


def _limits(limits: PlacementLimits) -> str:
    told = ""
    if limits.spot_max_percent is not None:
        told += f", spot at most {limits.spot_max_percent} %"
    if limits.spread_key:
        told += f", spread over {limits.spread_key} (maxSkew {limits.max_skew})"
    return told


def _importance(spec: ModelService) -> str:
    """Its priority, and what it does where no place is free; nothing where both are plain."""
    told = f"; priority {spec.priority}" if spec.priority else ""
    if spec.reclaim is Reclaim.LOWER_PRIORITY:
        told += "; takes room from lower priorities"
    if spec.when_full is WhenFull.UNPINNED:
        told += "; asks for nodes"
    return told


def _row(attempt: Attempt) -> tuple[str, str, str, str]:
    readiness = attempt.readiness
    warmth = str(readiness.warmth) if readiness is not None else "-"
    serving = attempt.verdict == "kept" or readiness is None
    ready_in = "-" if serving or readiness is None else span(readiness.p50_ms)
    verdict = f"{attempt.rule}: {attempt.verdict}" if attempt.rule else attempt.verdict
    if readiness is not None and not serving:
        verdict += f" ({readiness.told}; {readiness.origin})"
    return attempt.node or "(any)", warmth, ready_in, verdict


def _steps(decision: ServiceDecision) -> Iterable[str]:
    starts = [placement for placement in decision.placements if not placement.exists]
    if not starts and not decision.retirements:
        return
    yield "NOW"
    for placement in starts:
        instead = f" for {placement.replaces}" if placement.replaces else ""
        where = f" on {placement.told}" if placement.told else ""
        yield f"  create {placement.name} x{placement.count}{where}{instead}"
    for retirement in decision.retirements:
        left = f", keeps {retirement.keep}" if retirement.keep else ""
        yield f"  {retirement.stage} {retirement.name}{left}: {retirement.reason}"


def _ahead(decision: ServiceDecision) -> Iterable[str]:
    """Image and weights that come to nodes before a replica does."""
    if not decision.prefetches:
        return
    yield "FETCHED AHEAD"
    for prefetch in decision.prefetches:
        state = "to be made" if prefetch.state is None else str(prefetch.state)
        end = f", over: {prefetch.over}" if prefetch.over else ""
        yield f"  {prefetch.node}  {state}{end}  (Job {prefetch.name})"


def _holds(decision: ServiceDecision) -> Iterable[str]:
    if not decision.holds:
        return
    yield "WOULD CHANGE THE ANSWER"
    for hold in decision.holds:
        yield f"  {hold.code}: {hold.message}"
        yield f"    {hold.remedy}"
        if hold.new_node:
            yield f"    {asks_for_a_node(decision.ref.name)}   ask for a node: {hold.new_node}"

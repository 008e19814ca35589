"""Where each replica runs, how many there are, and the next step to get there.

In: what Git wants, the shapes of its pods, the cluster at one instant, what earlier passes
learned, the time. Out: the Plan. Pure: the same input gives the same plan, whatever the
order of its parts. Called by the pass, the command line, the simulator and replay.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace

from stoker.decide.bounds import Bounds
from stoker.decide.case import Case, case_from
from stoker.decide.coldness import heats
from stoker.decide.cooling import cooling_after
from stoker.decide.count import Asked
from stoker.decide.disruption import ledger_of
from stoker.decide.follow import follow
from stoker.decide.holds import held_for_unknown
from stoker.decide.learn_failures import learn_failures
from stoker.decide.learn_starts import learn_starts
from stoker.decide.moves import earliest
from stoker.decide.no_place import waits_after
from stoker.decide.place import Index
from stoker.decide.prefetch import with_prefetches
from stoker.decide.quarantine import Quarantine
from stoker.decide.reclaim import Reclaims
from stoker.decide.slow_starts import SlowStarts
from stoker.decide.spot_seen import spot_after
from stoker.decide.standstill import left_alone, left_by_hold
from stoker.decide.transition import Step
from stoker.decide.turn import Turn, decided
from stoker.decide.turns import calm_until, going_away, in_turn
from stoker.decide.unknowns import unknown_to
from stoker.model.fleet import Desired, ModelService
from stoker.model.flow import Override
from stoker.model.history import History, UnitHistory
from stoker.model.plan import Plan, ServiceDecision
from stoker.model.readings import ServiceReadings
from stoker.model.refs import UnitRef
from stoker.model.shape import UnitShape
from stoker.model.snapshot import ServiceState, Snapshot

__all__ = ["decide", "decide_steps"]


def decide(
    desired: Desired,
    shapes: tuple[UnitShape, ...],
    snapshot: Snapshot,
    history: History,
    now_ms: int,
) -> Plan:
    """Decide about every ModelService that has a shape.

    Services without one, broken units and units that left Git are absent from the plan:
    their objects stay as they are (what left Git is prune's business). Their GPUs count.
    """
    steps = decide_steps(desired, shapes, snapshot, history, now_ms)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            plan: Plan = end.value
            return plan


def decide_steps(
    desired: Desired,
    shapes: tuple[UnitShape, ...],
    snapshot: Snapshot,
    history: History,
    now_ms: int,
) -> Generator[ServiceDecision, None, Plan]:
    """The same, yielding each decision as it is made, so that a caller may stop in between."""
    # 1. Line up the services that can be decided, sorted by ref.
    readings = {each.ref: each for each in snapshot.readings}
    cases = _cases(desired, shapes, snapshot, readings)
    unknown = {case.ref: unknown_to(case, snapshot) for case in cases}
    read = tuple(case for case in cases if not unknown[case.ref])

    # 2. Build the index of nodes, with every pod that is still to come booked.
    shape_of = {shape.ref: shape for shape in shapes}
    standing = (snapshot.nodes, snapshot.services)
    learned = (history.starts, snapshot.prefetches)
    index = Index(*standing, cases, shape_of, now_ms, *learned)

    # 3. Learn from starts that failed; what they mean is the same for all that follows.
    known = _failures_learned(history, read, snapshot, now_ms)
    failures = {ref: past.failures for ref, past in known.items()}
    quarantine = Quarantine(failures, snapshot.services, snapshot.nodes, now_ms)

    # 4. Decide one service after the other, the important ones first; each sees what those
    # before it took.
    ledger = ledger_of(desired.fleet, cases, index, snapshot.nodes)
    decisions: list[ServiceDecision] = []
    wakes: list[int | None] = []
    slow_starts = SlowStarts(index.estimates, snapshot.nodes)
    held = {each.unit: each for each in desired.held if each.whole}
    alone = {case.ref for case in cases if unknown[case.ref] or case.ref in held}
    behind = {each.unit: each for each in desired.held if not each.whole}
    overrides: dict[UnitRef, Asked] = {each.ref: each for each in snapshot.unread_overrides}
    overrides |= {each.ref: each for each in snapshot.overrides if each.holds(now_ms)}
    followed = follow(read, index, readings, known, now_ms)
    counts = {
        case.ref: followed.count(case, _past(known, case), overrides.get(case.ref)) for case in read
    }
    floors = {
        case.ref: case.spec.floor(counts[case.ref].replicas)
        for case in cases
        if case.ref not in alone
    }
    reclaims = Reclaims(cases, floors, index)
    going = going_away(snapshot.nodes)
    hinted = tuple(node for node in snapshot.nodes if node.hint)
    for case in in_turn(cases, going):
        past = _past(known, case)
        override = overrides.get(case.ref)
        if unknown[case.ref]:
            decision = left_alone(case, held_for_unknown(unknown[case.ref]))
        elif case.ref in held:
            decision = left_by_hold(case, held[case.ref], counts[case.ref])
        else:
            calm_ms = calm_until(past.calm_until_ms, case, going, now_ms)
            calm = calm_ms is not None and calm_ms > now_ms
            wakes.append(calm_ms if calm else None)
            spot = spot_after(past.spot, case, index, going, now_ms)
            cooling = cooling_after(past.cooling, case, index, hinted, now_ms)
            past = replace(past, calm_until_ms=calm_ms, spot=spot, cooling=cooling)
            bounds = Bounds(
                past.update, ledger.allowance(case), calm, past.pool_waits, past.cooling
            )
            turn = Turn(bounds, desired.revision.commit, ledger, reclaims, behind.get(case.ref))
            barred = replace(case, bars=quarantine.of(case.ref, case.rev, case.state))
            decision, step, update = decided(barred, index, counts[case.ref], turn, now_ms)
            quarantine.begin(decision)
            lapses = override.until_ms if isinstance(override, Override) else None
            turned = update.blocked_rev != past.update.blocked_rev
            wakes += [step.wake_at_ms, lapses, now_ms if turned else None]
            scaled = followed.history(case, past.scale, counts[case.ref])
            past = replace(past, update=update, scale=scaled)
            known[case.ref] = _learned(past, decision, case, step, now_ms)
        if (answer := followed.answers.get(case.ref)) is not None:
            decision = replace(decision, scale=answer.verdict)
            wakes.append(answer.wake_at_ms)
        if (slow := slow_starts.of(case)) is not None:
            decision = replace(decision, slow_start=slow)
        decisions.append(decision)
        yield decision

    # 5. Fetch ahead on the next-best nodes, of what all of these have left.
    most = desired.fleet.most_prefetches
    ahead = with_prefetches(decisions, cases, index, snapshot, most, alone, now_ms)

    # 6. Remember, for units that are still in Git (all, if Git could not be read in full).
    still = {unit.ref for unit in desired.units} | set(desired.broken)
    entries = [
        (ref, past) for ref, past in known.items() if ref in still or not desired.unit_set_known
    ]
    return Plan(
        now_ms=now_ms,
        decisions=tuple(sorted(ahead[0], key=lambda decision: decision.ref)),
        wake_at_ms=earliest(*wakes, ahead[1]),
        history=History(tuple(entries)).records(),
        starts=learn_starts(history.starts, read, index, whole=not snapshot.unknown),
    )


def _failures_learned(
    history: History, read: Iterable[Case], snapshot: Snapshot, now_ms: int
) -> dict[UnitRef, UnitHistory]:
    """The history with this pass's failed starts, of services that could be read.

    Nothing is held against a node without UID: it could not be told from another one.
    """
    known = dict(history.entries)
    nodes = {node.name: node for node in snapshot.nodes if node.uid}
    for case in read:
        past = _past(known, case)
        found = learn_failures(past.failures, case, nodes, now_ms)
        if found != past.failures:
            known[case.ref] = replace(past, failures=found)
    return known


def _cases(
    desired: Desired,
    shapes: tuple[UnitShape, ...],
    snapshot: Snapshot,
    readings: Mapping[UnitRef, ServiceReadings],
) -> tuple[Case, ...]:
    shape_of = {shape.ref: shape for shape in shapes}
    state_of = {state.ref: state for state in snapshot.services}
    return tuple(
        case_from(
            unit.ref,
            unit.spec,
            shape_of[unit.ref],
            desired.fleet,
            state_of.get(unit.ref, ServiceState(unit.ref)),
            heats(unit.spec.scaling, readings.get(unit.ref)),
        )
        for unit in sorted(desired.units, key=lambda unit: unit.ref)
        if isinstance(unit.spec, ModelService) and unit.ref in shape_of
    )


def _past(known: Mapping[UnitRef, UnitHistory], case: Case) -> UnitHistory:
    return known.get(case.ref, UnitHistory())


def _learned(
    past: UnitHistory, decision: ServiceDecision, case: Case, step: Step, now_ms: int
) -> UnitHistory:
    held_since_ms = None
    if decision.updating and decision.holds:
        held_since_ms = past.held_since_ms if past.held_since_ms is not None else now_ms
    waits = waits_after(past.pool_waits, case, step.judged, now_ms)
    return replace(past, wanted=decision.replicas, held_since_ms=held_since_ms, pool_waits=waits)

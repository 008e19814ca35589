"""Where each replica runs, how many there are, and the next step to get there.

In: what Git wants, the shapes of its pods, the cluster at one instant, what earlier passes
learned, the time. Out: the Plan. Pure: the same input gives the same plan, whatever the
order of its parts. Called by the pass, the command line, the simulator and replay.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from stoker.decide.bounds import Bounds
from stoker.decide.case import Case, case_from
from stoker.decide.count import Asked, Count, wanted
from stoker.decide.disruption import Ledger, ledger_of
from stoker.decide.explain import named_rejections
from stoker.decide.holds import held_for_unknown
from stoker.decide.learn_starts import learn_starts
from stoker.decide.moves import earliest
from stoker.decide.no_place import waits_after
from stoker.decide.place import Index
from stoker.decide.prefetch import with_prefetches
from stoker.decide.reclaim import Reclaims
from stoker.decide.scheduler_mode import count_only
from stoker.decide.slots import Standing, slots_of
from stoker.decide.slow_starts import SlowStarts
from stoker.decide.spot_seen import spot_after
from stoker.decide.transition import Step, transition
from stoker.decide.turns import calm_until, going_away, in_turn
from stoker.decide.updates import held_for_rev, learned, parted
from stoker.model.fleet import Desired, ModelService, PlacementMode
from stoker.model.flow import Held, HeldBy, Override
from stoker.model.history import History, UnitHistory
from stoker.model.plan import CountReason, Hold, Plan, ServiceDecision
from stoker.model.refs import UnitRef
from stoker.model.shape import UnitShape
from stoker.model.snapshot import ServiceState, Snapshot
from stoker.model.start_samples import Starts
from stoker.model.times import rfc3339
from stoker.model.update_history import UpdateHistory
from stoker.objects.names import MAX_SERVICE_IN_NAME

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
    cases = _cases(desired, shapes, snapshot)

    # 2. Build the index of nodes, with every pod that is still to come booked.
    shape_of = {shape.ref: shape for shape in shapes}
    standing = (snapshot.nodes, snapshot.services)
    learned = (history.starts, snapshot.prefetches)
    index = Index(*standing, cases, shape_of, now_ms, *learned)

    # 3. Decide one service after the other, the important ones first; each sees what those
    # before it took.
    ledger = ledger_of(desired.fleet, cases, index, snapshot.nodes)
    known = dict(history.entries)
    decisions: list[ServiceDecision] = []
    wakes: list[int | None] = []
    alone: set[UnitRef] = set()
    slow_starts = SlowStarts(index.estimates, snapshot.nodes)
    held = {each.unit: each for each in desired.held if each.whole}
    behind = {each.unit: each for each in desired.held if not each.whole}
    overrides: dict[UnitRef, Asked] = {each.ref: each for each in snapshot.unread_overrides}
    overrides |= {each.ref: each for each in snapshot.overrides if each.holds(now_ms)}
    counts = {
        case.ref: wanted(case, _past(known, case).wanted, overrides.get(case.ref)) for case in cases
    }
    floors = {
        case.ref: case.spec.floor(counts[case.ref].replicas)
        for case in cases
        if case.ref not in held and not _unknown(case, snapshot)
    }
    reclaims = Reclaims(cases, floors, index)
    going = going_away(snapshot.nodes)
    for case in in_turn(cases, going):
        past = _past(known, case)
        unknown = _unknown(case, snapshot)
        override = overrides.get(case.ref)
        if unknown or case.ref in held:
            alone.add(case.ref)
        if unknown:
            decision = _left_alone(case, held_for_unknown(unknown))
        elif case.ref in held:
            decision = _held(case, held[case.ref], counts[case.ref])
        else:
            calm_ms = calm_until(past.calm_until_ms, case, going, now_ms)
            calm = calm_ms is not None and calm_ms > now_ms
            wakes.append(calm_ms if calm else None)
            spot = spot_after(past.spot, case, index, going, now_ms)
            past = replace(past, calm_until_ms=calm_ms, spot=spot)
            bounds = Bounds(past.update, ledger.allowance(case), calm, past.pool_waits)
            turn = Turn(bounds, desired.revision.commit, ledger, reclaims, behind.get(case.ref))
            decision, step, update = _decided(case, index, counts[case.ref], turn, now_ms)
            lapses = override.until_ms if isinstance(override, Override) else None
            turned = update.blocked_rev != past.update.blocked_rev
            wakes += [step.wake_at_ms, lapses, now_ms if turned else None]
            known[case.ref] = _learned(replace(past, update=update), decision, case, step, now_ms)
        decision = replace(decision, slow_start=slow_starts.of(case))
        decisions.append(decision)
        yield decision

    # 4. Fetch ahead on the next-best nodes, of what all of these have left.
    most = desired.fleet.most_prefetches
    ahead = with_prefetches(decisions, cases, index, snapshot, most, alone, now_ms)

    # 5. Remember, for units that are still in Git (all, if Git could not be read in full).
    still = {unit.ref for unit in desired.units} | set(desired.broken)
    entries = [
        (ref, past) for ref, past in known.items() if ref in still or not desired.unit_set_known
    ]
    return Plan(
        now_ms=now_ms,
        decisions=tuple(sorted(ahead[0], key=lambda decision: decision.ref)),
        wake_at_ms=earliest(*wakes, ahead[1]),
        history=History(tuple(entries)).records(),
        starts=_starts(history, cases, index, snapshot),
    )


def _starts(history: History, cases: tuple[Case, ...], index: Index, snapshot: Snapshot) -> Starts:
    """What this pass shows of starts under way; of services that could not be read, nothing."""
    read = [case for case in cases if not _unknown(case, snapshot)]
    return learn_starts(history.starts, read, index, whole=not snapshot.unknown)


def _cases(desired: Desired, shapes: tuple[UnitShape, ...], snapshot: Snapshot) -> tuple[Case, ...]:
    shape_of = {shape.ref: shape for shape in shapes}
    state_of = {state.ref: state for state in snapshot.services}
    return tuple(
        case_from(
            unit.ref,
            unit.spec,
            shape_of[unit.ref],
            desired.fleet,
            state_of.get(unit.ref, ServiceState(unit.ref)),
        )
        for unit in sorted(desired.units, key=lambda unit: unit.ref)
        if isinstance(unit.spec, ModelService) and unit.ref in shape_of
    )


def _unknown(case: Case, snapshot: Snapshot) -> list[tuple[str, str]]:
    """What this service's decision needs and the snapshot lacks.

    Unread pods of any namespace hide what is free. Mode Scheduler needs no nodes, unless
    Deployments of mode Nodes still stand.
    """
    by_node = case.spec.placement_mode is PlacementMode.NODES or any(
        placement.node for placement in case.state.placements
    )
    return [(what, why) for what, why in snapshot.unknown if _concerns(what, case, by_node=by_node)]


def _concerns(what: str, case: Case, *, by_node: bool) -> bool:
    ref = case.ref
    kind, _, rest = what.partition("/")
    namespace, _, name = rest.partition("/")
    match kind:
        case "nodes":
            return by_node
        case "pods":
            return by_node or namespace in {"", ref.namespace}
        case "deployments":
            of_service = name in {"", ref.name, case.spec.adopt} or name.startswith(
                _prefix(ref.name)
            )
            return not namespace or (namespace == ref.namespace and of_service)
        case _:
            return False


def _prefix(service: str) -> str:
    """How names of the service's Deployments begin."""
    return service[:MAX_SERVICE_IN_NAME].rstrip("-.") + "-"


def _held(case: Case, held: Held, count: Count) -> ServiceDecision:
    """What stands is left exactly as it is; the count is what would be wanted."""
    hold = Hold(held.by, held.message, _ends(held))
    return replace(
        _left_alone(case, hold),
        replicas=count.replicas,
        count=count.reason,
        floor=case.spec.floor(count.replicas),
    )


def _ends(held: Held) -> str:
    if held.until_ms is not None:
        return f"ends by itself at {rfc3339(held.until_ms)}"
    match held.by:
        case HeldBy.SUSPENDED:
            return "resumed in Git, or by stoker resume where it was suspended by hand"
        case HeldBy.DEPENDENCY:
            return "goes on by itself as soon as that is so"
        case HeldBy.WINDOW:
            return "a commit that changes the windows"
        case HeldBy.FAILED:
            return "a commit that changes the pod template"
        case _ as never:
            assert_never(never)


def _left_alone(case: Case, hold: Hold) -> ServiceDecision:
    """Nothing is created, retired or lowered."""
    slots = [slot for placement in case.state.placements for slot in slots_of(placement)]
    return ServiceDecision(
        ref=case.ref,
        mode=case.spec.placement_mode,
        rev=case.rev,
        replicas=None,
        count=CountReason("unknown", "the cluster could not be read"),
        ready=sum(1 for slot in slots if slot.standing is Standing.READY),
        warming=sum(1 for slot in slots if slot.standing is Standing.WARMING),
        untouched=tuple(sorted(placement.name for placement in case.state.placements)),
        holds=(hold,),
        updating=_is_updating(case),
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """What bounds a service's step, the commit of this pass, what the fleet has in motion, what
    services of lower priority may give, and who keeps the service at an older commit.
    """

    bounds: Bounds
    commit: str
    ledger: Ledger
    reclaims: Reclaims
    behind: Held | None = None

    @property
    def past(self) -> UpdateHistory:
        """What is known of the service's updates."""
        return self.bounds.past


def _past(known: Mapping[UnitRef, UnitHistory], case: Case) -> UnitHistory:
    return known.get(case.ref, UnitHistory())


def _decided(
    case: Case, index: Index, count: Count, turn: Turn, now_ms: int
) -> tuple[ServiceDecision, Step, UpdateHistory]:
    failed = turn.behind is not None and turn.behind.by is HeldBy.FAILED
    whole, recovered = case, False
    apart: tuple[str, ...] = ()
    if failed:
        case, apart, recovered = parted(case, turn.past)
    if case.spec.placement_mode is PlacementMode.NODES:
        step = transition(case, index, count.replicas, now_ms, turn.bounds, turn.reclaims)
    else:
        step = count_only(case, index, count.replicas, now_ms, turn.bounds)
    turn.ledger.note(case, step.moving)
    ready = sum(1 for j in step.judged if j.ready)
    holds = step.holds
    if failed:
        holds = (held_for_rev(case, turn.past, ready), *holds)
    decision = ServiceDecision(
        ref=case.ref,
        mode=case.spec.placement_mode,
        rev=case.rev,
        replicas=count.replicas,
        count=count.reason,
        ready=ready,
        warming=sum(1 for j in step.judged if j.standing is Standing.WARMING),
        floor=case.spec.floor(count.replicas),
        placements=step.moves.placements,
        retirements=step.moves.retirements,
        untouched=tuple(sorted((*step.moves.untouched, *apart))),
        holds=holds,
        attempts=(*step.moves.attempts, *step.claims, *named_rejections(step.tallies)),
        rejected=_by_rule(step),
        updating=_is_updating(whole),
    )
    return decision, step, _update(case, turn, step, decision, recovered=recovered)


def _update(
    case: Case, turn: Turn, step: Step, decision: ServiceDecision, *, recovered: bool
) -> UpdateHistory:
    """What is known now; of a service that is kept at an older commit nothing new is learned,
    but that a rev is no longer blocked.
    """
    if recovered:
        return replace(turn.past, blocked_rev="", blocked_commit="", blocked_why="")
    if turn.behind is not None or case.spec.placement_mode is not PlacementMode.NODES:
        return turn.past
    every = decision.ready >= (decision.replicas or 0) > 0
    whole = every and not decision.updating and not decision.holds
    facts = {"commit": turn.commit, "failed": step.failed}
    return learned(case, turn.past, step.trial, **facts, whole=whole)


def _by_rule(step: Step) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for tally in step.tallies:
        counts[tally.rule] = counts.get(tally.rule, 0) + tally.count
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _is_updating(case: Case) -> bool:
    """Whether replicas of another rev or mode stand."""
    in_nodes = case.spec.placement_mode is PlacementMode.NODES
    return any(
        placement.replicas and (placement.rev != case.rev or bool(placement.node) != in_nodes)
        for placement in case.state.placements
    )


def _learned(
    past: UnitHistory, decision: ServiceDecision, case: Case, step: Step, now_ms: int
) -> UnitHistory:
    held_since_ms = None
    if decision.updating and decision.holds:
        held_since_ms = past.held_since_ms if past.held_since_ms is not None else now_ms
    waits = waits_after(past.pool_waits, case, step.judged, now_ms)
    return replace(past, wanted=decision.replicas, held_since_ms=held_since_ms, pool_waits=waits)

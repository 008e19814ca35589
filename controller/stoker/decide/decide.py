"""Where each replica runs, how many there are, and the next step to get there.

In: what Git wants, the shapes of its pods, the cluster at one instant, what earlier passes
learned, the time. Out: the Plan. Pure: the same input gives the same plan, whatever the
order of its parts. Called by the pass, the command line, the simulator and replay.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import assert_never

from stoker.decide.case import Case, case_from
from stoker.decide.count import Asked, Count, wanted
from stoker.decide.explain import named_rejections, quarantined
from stoker.decide.holds import held_for_unknown
from stoker.decide.learn_failures import learn_failures
from stoker.decide.learn_starts import learn_starts
from stoker.decide.moves import earliest
from stoker.decide.place import Index
from stoker.decide.quarantine import Quarantine
from stoker.decide.scheduler_mode import count_only
from stoker.decide.slots import Standing, slots_of
from stoker.decide.transition import Step, transition
from stoker.model.fleet import Desired, ModelService, PlacementMode
from stoker.model.flow import Held, HeldBy, Override
from stoker.model.history import History, UnitHistory
from stoker.model.plan import CountReason, Hold, Plan, ServiceDecision
from stoker.model.refs import UnitRef
from stoker.model.shape import UnitShape
from stoker.model.snapshot import ServiceState, Snapshot
from stoker.model.start_samples import Starts
from stoker.model.times import rfc3339
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
    index = Index(snapshot.nodes, snapshot.services, cases, shape_of, now_ms, history.starts)

    # 3. Learn from starts that failed; what they mean is the same for all that follows.
    known = _failures_learned(history, cases, snapshot, now_ms)
    failures = {ref: past.failures for ref, past in known.items()}
    quarantine = Quarantine(failures, snapshot.services, snapshot.nodes, now_ms)

    # 4. Decide one service after the other; each sees what those before it took.
    decisions: list[ServiceDecision] = []
    wakes: list[int | None] = []
    held = {each.unit: each for each in desired.held if each.whole}
    overrides: dict[UnitRef, Asked] = {each.ref: each for each in snapshot.unread_overrides}
    overrides |= {each.ref: each for each in snapshot.overrides if each.holds(now_ms)}
    for case in cases:
        past = known.get(case.ref, UnitHistory())
        unknown = _unknown(case, snapshot)
        override = overrides.get(case.ref)
        if unknown:
            decision = _left_alone(case, held_for_unknown(unknown))
        elif case.ref in held:
            decision = _held(case, held[case.ref], wanted(case, past.wanted, override))
        else:
            barred = replace(case, bars=quarantine.of(case.ref, case.rev, case.state))
            decision, wake_at_ms = _decided(barred, index, past, override, now_ms)
            quarantine.begin(decision)
            wakes += [wake_at_ms, override.until_ms if isinstance(override, Override) else None]
            known[case.ref] = _learned(past, decision, now_ms)
        decisions.append(decision)
        yield decision

    # 5. Remember, for units that are still in Git (all, if Git could not be read in full).
    still = {unit.ref for unit in desired.units} | set(desired.broken)
    entries = [
        (ref, past) for ref, past in known.items() if ref in still or not desired.unit_set_known
    ]
    return Plan(
        now_ms=now_ms,
        decisions=tuple(decisions),
        wake_at_ms=earliest(*wakes),
        history=History(tuple(entries)).records(),
        starts=_starts(history, cases, index, snapshot),
    )


def _failures_learned(
    history: History, cases: tuple[Case, ...], snapshot: Snapshot, now_ms: int
) -> dict[UnitRef, UnitHistory]:
    """The history with this pass's failed starts; of services that could not be read, as it was."""
    known = dict(history.entries)
    nodes = {node.name: node for node in snapshot.nodes}
    for case in cases:
        past = known.get(case.ref, UnitHistory())
        if _unknown(case, snapshot):
            continue
        found = learn_failures(past.failures, case, nodes, now_ms)
        if found != past.failures:
            known[case.ref] = replace(past, failures=found)
    return known


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


def _decided(
    case: Case, index: Index, past: UnitHistory, override: Asked, now_ms: int
) -> tuple[ServiceDecision, int | None]:
    count = wanted(case, past.wanted, override)
    in_nodes = case.spec.placement_mode is PlacementMode.NODES
    step = (transition if in_nodes else count_only)(case, index, count.replicas, now_ms)
    decision = ServiceDecision(
        ref=case.ref,
        mode=case.spec.placement_mode,
        rev=case.rev,
        replicas=count.replicas,
        count=count.reason,
        ready=sum(1 for j in step.judged if j.ready),
        warming=sum(1 for j in step.judged if j.standing is Standing.WARMING),
        floor=case.spec.floor(count.replicas),
        placements=step.moves.placements,
        retirements=step.moves.retirements,
        untouched=step.moves.untouched,
        holds=step.holds,
        attempts=(
            *step.moves.attempts,
            *(quarantined(case, index) if in_nodes else ()),
            *named_rejections(step.tallies),
        ),
        rejected=_by_rule(step),
        updating=_is_updating(case),
    )
    return decision, step.wake_at_ms


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


def _learned(past: UnitHistory, decision: ServiceDecision, now_ms: int) -> UnitHistory:
    held_since_ms = None
    if decision.updating and decision.holds:
        held_since_ms = past.held_since_ms if past.held_since_ms is not None else now_ms
    return replace(past, wanted=decision.replicas, held_since_ms=held_since_ms)

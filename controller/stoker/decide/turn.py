"""One service's turn: its step, and the decision made of it. Pure; called by decide."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.decide.bounds import Bounds
from stoker.decide.case import Case
from stoker.decide.count import Count
from stoker.decide.disruption import Ledger
from stoker.decide.explain import named_rejections, quarantined
from stoker.decide.place import Index
from stoker.decide.reclaim import Reclaims
from stoker.decide.scheduler_mode import count_only
from stoker.decide.slots import Standing
from stoker.decide.standstill import groups_of, is_updating
from stoker.decide.transition import Step, transition
from stoker.decide.updates import held_for_rev, learned, parted
from stoker.model.fleet import PlacementMode
from stoker.model.flow import Held, HeldBy
from stoker.model.plan import ServiceDecision
from stoker.model.update_history import UpdateHistory

__all__ = ["Turn", "decided"]


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


def decided(
    case: Case, index: Index, count: Count, turn: Turn, now_ms: int
) -> tuple[ServiceDecision, Step, UpdateHistory]:
    """The decision, the step it was made of, and what is known of updates after it."""
    failed = turn.behind is not None and turn.behind.by is HeldBy.FAILED
    whole, recovered = case, False
    apart: tuple[str, ...] = ()
    if failed:
        case, apart, recovered = parted(case, turn.past)
    in_nodes = case.spec.placement_mode is PlacementMode.NODES
    if in_nodes:
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
        attempts=(
            *step.moves.attempts,
            *step.claims,
            *(quarantined(case, index) if in_nodes else ()),
            *named_rejections(step.tallies),
        ),
        rejected=_by_rule(step),
        updating=is_updating(whole),
        groups=groups_of(whole, *(p.name for p in step.moves.placements if p.size > 1)),
        size=case.spec.nodes,
        coldest=step.coldest,
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

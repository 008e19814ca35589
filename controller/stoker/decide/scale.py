"""How many replicas a service should have, from what is measured of it (design section 5).

In: its scaling block, how many replicas stand, the readings, what it remembers, the time. Out: a
count within its bounds, why, and what to remember. Pure; called by decide and by the simulator.
Up at once; down through window, guard and step. What is not known never lowers a count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.decide.capacity import Sight, by_capacity, sight_of, why_not_fewer
from stoker.decide.count_facts import CountFacts
from stoker.decide.damping import remembered, stepped, window_ends_ms
from stoker.decide.finding import Finding
from stoker.decide.measured import engines_of
from stoker.decide.moves import earliest
from stoker.decide.rates import learned_rates, request_of, smoothed
from stoker.decide.ratio import by_ratio
from stoker.decide.scale_bounds import CountBounds, count_bounds
from stoker.decide.scale_words import changes
from stoker.decide.stalled import without_stalled
from stoker.decide.zero import Zero, woken_by, zero_of
from stoker.model.plan import CountReason
from stoker.model.readings import ServiceReadings
from stoker.model.scale_history import ScaleHistory
from stoker.model.scale_verdict import ScaleVerdict
from stoker.model.scaling import Algorithm, Scaling
from stoker.model.times import rfc3339

__all__ = ["HOLD_MS", "ScaleAnswer", "scale"]

HOLD_MS = 300_000
"""How long fewer replicas must do before Capacity lets one go, where Git says nothing and a cold
start takes less: HPA's default window. On the Azure code trace, whose bursts come back within five
minutes, 85 % of requests keep their promise instead of 60 %, for a tenth more (decision 43)."""


@dataclass(frozen=True, slots=True)
class ScaleAnswer:
    """The count, how it came about, and what to remember. `wake_at_ms` is when it may change
    although no reading does; None for never.
    """

    verdict: ScaleVerdict
    history: ScaleHistory
    wake_at_ms: int | None = None

    @property
    def replicas(self) -> int:
        """The count now."""
        return self.verdict.replicas

    @property
    def desired(self) -> int:
        """The count that steps lead to."""
        return self.verdict.desired

    @property
    def reason(self) -> CountReason:
        """Where the count comes from, as every count says it."""
        verdict = self.verdict
        detail = f"{verdict.rule}: {verdict.why}" if verdict.rule else verdict.why
        return CountReason(str(verdict.algorithm), detail)


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything that one answer is made of."""

    spec: Scaling
    facts: CountFacts
    bounds: CountBounds
    sight: Sight
    zero: Zero
    finding: Finding
    past: ScaleHistory
    now_ms: int

    @property
    def window_ms(self) -> int:
        """For how long the highest recommendation holds."""
        window_ms = self.spec.scale_down.window_ms
        if self.spec.algorithm is Algorithm.RATIO:
            return window_ms or 0
        return max(HOLD_MS if window_ms is None else window_ms, self.facts.cold_start_p90_ms)

    @property
    def least(self) -> int:
        """The lower bound; one more than none while the last replica may not leave."""
        return self.bounds.least if self.bounds.least or self.zero.allowed else 1


@dataclass(frozen=True, slots=True)
class _Choice:
    """A count, where steps lead, and why it is not that."""

    replicas: int
    desired: int
    past: ScaleHistory
    rule: str = ""
    why: str = ""
    limited: str = ""
    held: str = ""
    wake_at_ms: int | None = None


def scale(
    spec: Scaling,
    facts: CountFacts,
    readings: ServiceReadings | None,
    past: ScaleHistory,
    now_ms: int,
) -> ScaleAnswer:
    """One answer; `readings` None: nothing was measured."""
    # 1. See what is measured, and learn from it.
    seen = engines_of(facts, readings, spec.interval_ms, now_ms)
    engines, stalled, stalled_ms = without_stalled(seen, past.stalled_since_ms, now_ms)
    rates = learned_rates(past.rates, facts, engines, spec.capacity, now_ms)
    size = smoothed(past, request_of(readings.load if readings is not None else None, engines))
    past = replace(
        past,
        rates=rates,
        stalled_since_ms=stalled_ms,
        prefill_tokens=size.prefill,
        output_tokens=size.decode,
    )
    sight = sight_of(spec, facts, engines, readings, past, now_ms)
    zero = zero_of(spec, sight, readings, past, now_ms)
    bounds = count_bounds(spec, facts.cold_start_p90_ms, now_ms)

    # 2. Ask both algorithms; the one of Git decides.
    ratio = by_ratio(spec, facts, readings, now_ms)
    capacity = by_capacity(spec, sight, readings, zero.past, now_ms)
    own, other = (ratio, capacity) if spec.algorithm is Algorithm.RATIO else (capacity, ratio)
    case = _Case(spec, facts, bounds, sight, zero, own, zero.past, now_ms)

    # 3. From the recommendation to a count.
    choice = _chosen(case)
    replicas = choice.replicas
    known = replace(choice.past, desired=choice.desired)
    if replicas > facts.count:
        known = replace(known, scaled_up_ms=now_ms, low_since_ms=None)
    elif replicas < facts.count:
        known = replace(known, scaled_down_ms=now_ms)
    verdict = ScaleVerdict(
        algorithm=spec.algorithm,
        replicas=replicas,
        desired=choice.desired,
        rule=choice.rule or own.rule,
        why=choice.why or own.why,
        active=own.count is not None or bool(choice.rule),
        unmeasurable=(
            *own.unmeasurable,
            *(
                (
                    f"queue of {pod}",
                    f"it waits since {rfc3339(stalled_ms or 0)} and no token is made",
                )
                for pod in stalled
            ),
        ),
        limited=choice.limited,
        held=choice.held,
        said=(*own.said, *(each for each in other.said if each not in own.said)),
        changes=changes(spec, sight, own, replicas),
    )
    wakes = (choice.wake_at_ms, zero.looks_ms, own.wake_at_ms, bounds.changes_ms)
    later = [at_ms for at_ms in wakes if at_ms is not None and at_ms > now_ms]
    return ScaleAnswer(verdict, known, min(later, default=None))


def _chosen(case: _Case) -> _Choice:
    facts, bounds = case.facts, case.bounds
    if facts.wanted is None and not facts.standing:
        first = min(max(1, bounds.least), bounds.most)
        return _Choice(first, first, _anew(case, first), "first", "nothing stands yet")
    if not facts.count:
        return _at_zero(case)
    if case.finding.count is None:
        return _held(case)
    return _followed(case, case.finding.count)


def _anew(case: _Case, count: int) -> ScaleHistory:
    """What is remembered from a start on: the window begins with it."""
    began = replace(case.past, recommended=((case.now_ms, count),), low_since_ms=None)
    return replace(began, woken_ms=case.now_ms)


def _at_zero(case: _Case) -> _Choice:
    """Zero is left for whoever asks, for a lower bound, or after being blind for too long."""
    asked = case.finding.count or 0
    why, blind_ms = woken_by(case.spec, case.zero, case.now_ms)
    count = case.bounds.clamp(max(asked, 1) if why else asked)
    if not count:
        held = case.finding.why if case.finding.count is None else ""
        return _Choice(0, 0, case.past, "zero", "nobody asks for it", "", held, blind_ms)
    limited = case.bounds.limits(asked)
    past = _anew(case, count)
    if why:
        return _Choice(count, count, past, "wake", why, limited)
    if asked:
        return _Choice(count, count, past, limited=limited)
    return _Choice(count, count, past, case.bounds.least_by, str(case.bounds.least), limited)


def _held(case: _Case) -> _Choice:
    """Nothing could be measured: the count stays, but for bounds that Git has changed."""
    facts, finding = case.facts, case.finding
    desired = min(max(facts.count, case.least), case.bounds.most)
    count = stepped(facts.count, desired, max_step=case.spec.scale_down.max_step)
    past = replace(case.past, low_since_ms=None)
    limited = case.bounds.limits(facts.count)
    return _Choice(count, desired, past, limited=limited, held=finding.keeps or finding.why)


def _followed(case: _Case, recommended: int) -> _Choice:
    """The recommendation within bounds; up at once, down as the algorithm allows."""
    facts, bounds, window_ms = case.facts, case.bounds, case.window_ms
    keeps = case.finding.keeps if recommended < facts.count else ""
    asked = facts.count if keeps else recommended
    wanted = min(max(asked, case.least), bounds.most)
    window = remembered(
        case.past.recommended, wanted, facts.count, window_ms=window_ms, now_ms=case.now_ms
    )
    desired = min(max(window[0][1], case.least), bounds.most)
    limited = bounds.limits(asked)
    if not limited and case.least > asked:
        limited = f"one replica stays: {case.zero.why}"
    rule, why = ("", "") if wanted == asked else (limited.rpartition(" ")[0], limited)
    past = replace(case.past, recommended=window, low_since_ms=_low_since(case, asked))
    choice = _Choice(desired, desired, past, rule, why, limited, keeps)
    if desired < facts.count:
        return _lowered(case, choice)
    if wanted < facts.count:
        choice = replace(
            choice, held=f"{wanted} would do; the highest of {window_ms // 1_000}s holds"
        )
    return replace(choice, wake_at_ms=window_ends_ms(window, window_ms))


def _low_since(case: _Case, asked: int) -> int | None:
    """Since when one replica fewer would do, with everything measured (semantics 1.15.2)."""
    facts = case.facts
    if case.spec.algorithm is Algorithm.RATIO or asked >= facts.count:
        return None
    if why_not_fewer(case.spec, case.sight, facts.count - 1):
        return None
    since_ms = case.past.low_since_ms
    return since_ms if since_ms is not None else case.now_ms


def _lowered(case: _Case, choice: _Choice) -> _Choice:
    """One step down, no sooner than a round after the last one."""
    spec, count, now_ms = case.spec, case.facts.count, case.now_ms
    last_ms = case.past.scaled_down_ms
    if last_ms is not None and now_ms < last_ms + spec.interval_ms:
        why = "the last step down is not a round ago"
        return replace(choice, replicas=count, held=why, wake_at_ms=last_ms + spec.interval_ms)
    next_count = stepped(count, choice.desired, max_step=spec.scale_down.max_step)
    if next_count > choice.desired:
        choice = replace(choice, limited=f"maxStep {spec.scale_down.max_step}")
    if spec.algorithm is Algorithm.RATIO:
        return _stepping(case, choice, next_count)
    since_ms = choice.past.low_since_ms
    if since_ms is None:
        why = why_not_fewer(spec, case.sight, count - 1)
        return replace(choice, replicas=count, held=f"{choice.desired} asked for, but {why}")
    ends_ms = since_ms + case.window_ms
    if now_ms < ends_ms:
        why = f"{count - 1} would do since {rfc3339(since_ms)}, held for {case.window_ms // 1_000}s"
        return replace(choice, replicas=count, held=why, wake_at_ms=ends_ms)
    held = ""
    while next_count < count and (why := why_not_fewer(spec, case.sight, next_count)):
        next_count, held = next_count + 1, why
    return _stepping(case, replace(choice, held=held), next_count)


def _stepping(case: _Case, choice: _Choice, count: int) -> _Choice:
    """The step, and when the next may follow."""
    wake_at_ms = case.now_ms + case.spec.interval_ms if count > choice.desired else None
    ends_ms = window_ends_ms(choice.past.recommended, case.window_ms)
    return replace(choice, replicas=count, wake_at_ms=earliest(wake_at_ms, ends_ms))

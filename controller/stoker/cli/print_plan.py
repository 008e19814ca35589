"""A plan and its forecast as people read it: consequences first, then step by step; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stoker.cli.plan_pace import pace
from stoker.cli.print_bundles import bundles_json
from stoker.cli.print_spot import spot_lines
from stoker.cli.style import Style, columns
from stoker.model.change import ChangeSet
from stoker.model.fleet import Desired, ModelService
from stoker.model.plan import Plan, ServiceDecision
from stoker.model.refs import UnitRef
from stoker.model.snapshot import Snapshot
from stoker.model.times import span
from stoker.objects import names
from stoker.sim.foresee import Forecast, ServiceForecast, Step

__all__ = [
    "Cost",
    "cost_of",
    "duration",
    "moving",
    "only_namespace",
    "plan_json",
    "plan_rows",
    "plan_steps",
    "plan_text",
]

_HEADS = (
    "SERVICE", "REPLICAS", "MODEL REVISION", "RESTARTS", "COLD STARTS", "LOWEST READY",
    "DONE P50/P90", "USD/H",
)  # fmt: skip
_WARM = frozenset({"Serving", "Warm"})


def duration(milliseconds: int | None) -> str:
    """`55s`, `2m40s`, `1h05m`; `never` for None."""
    return "never" if milliseconds is None else span(milliseconds)


def only_namespace(plan: Plan, namespace: str) -> Plan:
    """Only the services of one namespace; all of them when it is empty."""
    if not namespace:
        return plan
    kept = tuple(d for d in plan.decisions if d.ref.namespace == namespace)
    return replace(plan, decisions=kept)


def plan_text(
    desired: Desired,
    before: Snapshot,
    plan: Plan,
    likely: Forecast,
    slow: Forecast,
    style: Style,
) -> str:
    """The table of services that change, then their steps and holds."""
    rows = plan_rows(desired, before, plan, likely, slow)
    moved = [decision for decision in plan.decisions if moving(decision, likely)]
    blocks = [plan_steps(desired, decision, likely, slow, style) for decision in moved]
    unchanged = len(plan.decisions) - len(moved)
    lines = _table(rows, style) if rows else []
    if unchanged:
        lines.append(f"{unchanged} service{'s' if unchanged > 1 else ''} unchanged")
    return "\n".join([*lines, "", *blocks]).rstrip() + "\n"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a whole plan takes, all steps of all services. `lowest` is None where none serves.

    `cold_ms` is the likely time of the cold starts one after another.
    """

    gpus_peak: int
    restarts: int
    cold_starts: int
    cold_ms: int
    lowest: tuple[int, str] | None = None

    def __str__(self) -> str:
        """One line, as the last lines of `stoker plan` have it."""
        parts = [
            f"GPUs at most {self.gpus_peak}",
            f"pods restarted {self.restarts}",
            f"cold starts {self.cold_starts} ({duration(self.cold_ms)})",
        ]
        if self.lowest is not None:
            parts.append(f"lowest Ready {self.lowest[0]} ({self.lowest[1]})")
        return f"Cost: {', '.join(parts)}"


def cost_of(before: Snapshot, plan: Plan, likely: Forecast) -> Cost:
    """Add up a forecast; the lowest Ready is that of the service that comes closest to none."""
    moved = [(d, likely.of(d.ref)) for d in plan.decisions if moving(d, likely)]
    steps = [step for _, found in moved for step in found.steps]
    cold = [step.placement for step in steps if _is_cold(step.placement)]
    lowest = [
        (found.lowest_ready, decision.ref.short)
        for decision, found in moved
        if any(p.replicas for p in before.service(decision.ref).placements)
    ]
    return Cost(
        gpus_peak=likely.gpus_peak,
        restarts=sum(1 for step in steps if step.replaced),
        cold_starts=len(cold),
        cold_ms=sum(p.readiness.p50_ms * p.count for p in cold if p.readiness is not None),
        lowest=min(lowest, default=None),
    )


def moving(decision: ServiceDecision, likely: Forecast) -> bool:
    """Whether anything of the service starts, leaves or is held."""
    return bool(likely.of(decision.ref).steps or decision.retirements or decision.holds)


def plan_rows(
    desired: Desired, before: Snapshot, plan: Plan, likely: Forecast, slow: Forecast
) -> list[tuple[str, ...]]:
    """The table's cells, a row for each service that moves."""
    return [
        _row(desired, before, decision, likely.of(decision.ref), slow.of(decision.ref))
        for decision in plan.decisions
        if moving(decision, likely)
    ]


def plan_steps(
    desired: Desired, decision: ServiceDecision, likely: Forecast, slow: Forecast, style: Style
) -> str:
    """One service step by step, and what is held."""
    return _steps(desired, decision, likely.of(decision.ref), slow.of(decision.ref), style)


def _table(rows: list[tuple[str, ...]], style: Style) -> list[str]:
    head, *lines = columns([_HEADS, *rows])
    return [style.paint(head, "bold"), *lines]


def _service(desired: Desired, ref: UnitRef) -> ModelService | None:
    unit = desired.unit(ref)
    return unit.spec if unit is not None and isinstance(unit.spec, ModelService) else None


def _row(
    desired: Desired,
    before: Snapshot,
    decision: ServiceDecision,
    found: ServiceForecast,
    slow: ServiceForecast,
) -> tuple[str, ...]:
    standing = sum(p.replicas for p in before.service(decision.ref).placements)
    want = "?" if decision.replicas is None else str(decision.replicas)
    service = _service(desired, decision.ref)
    restarts = sum(1 for step in found.steps if step.replaced)
    cold = sum(1 for step in found.steps if _is_cold(step.placement))
    return (
        decision.ref.short,
        want if str(standing) == want else f"{standing} -> {want}",
        service.model_revision[:7] if service else "-",
        str(restarts),
        str(cold),
        f"{found.lowest_ready} (floor {decision.floor})" if standing else "-",
        "held" if decision.holds else f"{duration(found.done_ms)} / {duration(slow.done_ms)}",
        _cost(desired, before, decision),
    )


def _is_cold(placement: Any) -> bool:
    return placement.readiness is None or str(placement.readiness.warmth) not in _WARM


def _cost(desired: Desired, before: Snapshot, decision: ServiceDecision) -> str:
    """Dollars an hour before and after, where every pool concerned has a price."""
    service = _service(desired, decision.ref)
    prices = {p.name: float(p.price_per_gpu_hour) for p in desired.fleet.pools
              if p.price_per_gpu_hour is not None}  # fmt: skip
    pool_of = {
        node.name: pool.name
        for pool in desired.fleet.pools
        for node in before.nodes
        if set(pool.match_labels) <= set(node.labels)
    }
    after = [p.pool for p in decision.placements for _ in range(p.count)]
    old = [
        pool_of.get(pod.node, "")
        for live in before.service(decision.ref).placements
        for pod in live.pods
    ]
    if service is None or any(pool not in prices for pool in {*after, *old}):
        return "-"
    gpus = service.gpu_count * service.nodes
    now = sum(prices[pool] for pool in old) * gpus
    then = sum(prices[pool] for pool in after) * gpus
    return f"{now:.2f} -> {then:.2f}" if now != then else f"{then:.2f}"


def _steps(
    desired: Desired,
    decision: ServiceDecision,
    found: ServiceForecast,
    slow: ServiceForecast,
    style: Style,
) -> str:
    service = _service(desired, decision.ref)
    title = f"{decision.ref.short}, step by step ({pace(service, updating=decision.updating)})"
    lines = [style.paint(title, "bold")]
    lines.extend(_step_lines(found, slow))
    if service is not None:
        lines.extend(spot_lines(desired, service, found))
    leaving = [r for r in decision.retirements if not found.steps]
    lines.extend(f"  -  retire   {r.name}: {r.reason}" for r in leaving)
    for hold in decision.holds:
        lines.append(f"  !  {hold.code}: {hold.message}")
        if hold.remedy:
            lines.append(f"     {hold.remedy}")
    used = {placement.node for placement in decision.placements}
    turned = [f"{a.node}: {a.verdict}" for a in decision.attempts if a.rule and a.node not in used]
    if turned:
        lines.append(f"  not used   {' · '.join(turned[:3])}")
    return "\n".join(lines) + "\n"


def _step_lines(found: ServiceForecast, slow: ServiceForecast) -> list[str]:
    """A line each: number, verb, place, what the place holds, estimate, room, rule."""
    late = {step.placement.name: step for step in slow.steps}
    rows = [
        (
            str(number),
            "replace" if step.replaced else "create",
            _place(step),
            _facts(step),
            _estimate(step, late.get(step.placement.name, step)),
            _room(step),
            f"by {step.placement.rule}" if step.placement.rule else "",
        )
        for number, step in enumerate(found.steps, start=1)
    ]
    return [f"  {line}" for line in columns(rows)]


def _place(step: Step) -> str:
    node = step.placement.told or "(the scheduler chooses)"
    return f"{step.replaced} -> {node}" if step.replaced else node


def _facts(step: Step) -> str:
    readiness = step.placement.readiness
    if readiness is None:
        return ""
    return f"{readiness.warmth}: {readiness.told}" if readiness.facts else str(readiness.warmth)


def _estimate(step: Step, late: Step) -> str:
    readiness = step.placement.readiness
    if readiness is None:
        return ""
    slow = late.placement.readiness or readiness
    return f"{duration(readiness.p50_ms)} / {duration(slow.p90_ms)} ({readiness.origin})"


def _room(step: Step) -> str:
    if not step.placement.node:
        return ""
    return f"{step.free_before} GPU{'' if step.free_before == 1 else 's'} free"


def _readiness_json(step: Step) -> dict[str, Any]:
    readiness = step.placement.readiness
    if readiness is None:
        return {"warmth": None, "readyP50Ms": None, "readyP90Ms": None, "estimate": None}
    return {
        "warmth": str(readiness.warmth),
        "readyP50Ms": readiness.p50_ms,
        "readyP90Ms": readiness.p90_ms,
        "estimate": readiness.origin,
    }


def plan_json(
    desired: Desired,
    plan: Plan,
    likely: Forecast,
    slow: Forecast,
    digest: str,
    changes: ChangeSet,
) -> dict[str, Any]:
    """The versioned JSON form."""
    services = []
    for decision in plan.decisions:
        found, late = likely.of(decision.ref), slow.of(decision.ref)
        services.append(
            {
                "unit": str(decision.ref),
                "replicas": decision.replicas,
                "floor": decision.floor,
                "lowestReady": found.lowest_ready,
                "doneP50Ms": found.done_ms,
                "doneP90Ms": late.done_ms,
                "steps": [
                    {
                        "deployment": step.placement.name,
                        "node": step.placement.node,
                        "pool": step.placement.pool,
                        "replaces": step.replaced,
                        "rule": step.placement.rule,
                        **_readiness_json(step),
                    }
                    for step in found.steps
                ],
                "retiring": [
                    {"name": r.name, "stage": str(r.stage), "reason": r.reason}
                    for r in decision.retirements
                ],
                "holds": [
                    {"code": h.code, "message": h.message, "remedy": h.remedy}
                    for h in decision.holds
                ],
            }
        )
    return {
        "apiVersion": f"{names.GROUP}/{names.VERSION}",
        "kind": "Plan",
        "fleet": desired.fleet.name,
        "revision": str(desired.revision),
        "digest": digest,
        "services": services,
        "bundles": bundles_json(changes),
    }

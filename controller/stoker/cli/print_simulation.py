"""What `stoker simulate` prints: a table for people, a document for machines.

In: results of runs with what they ran on. Out: text, or the document of `stoker schema Simulation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker.cli.style import Style
from stoker.objects.names import API_VERSION
from stoker.sim.fleet_ground import FleetGround
from stoker.sim.run_result import Point, RunResult

__all__ = ["Played", "promised", "simulation_json", "simulation_text"]

_HEAD = (
    *("POLICY", "KEPT", "TTFT P50", "P95", "P99", "ITL P95", "GPU HOURS", "COST"),
    *("PEAK", "STARTS", "UP", "DOWN", "FAILED"),
)


@dataclass(slots=True)
class Played:
    """Runs on one trace. `requests` counts those that were played."""

    trace: str
    engine: str
    ground: FleetGround
    requests: int
    runs: list[RunResult]


def promised(played: Played) -> str:
    """What clients are promised, in words."""
    slo = played.ground.slo
    parts = [
        f"{name} {_took(milliseconds)}"
        for name, milliseconds in (("TTFT", slo.ttft_p95_ms), ("ITL", slo.itl_p95_ms))
        if milliseconds is not None
    ]
    return " and ".join(parts) or "an answer"


def simulation_text(played: Played, style: Style) -> str:
    """Where it ran, a row a policy, and what the columns mean."""
    ground = played.ground
    minutes = max((run.end_s for run in played.runs), default=0.0) / 60
    gpus = f"{ground.gpus} GPU{'s' if ground.gpus > 1 else ''}"
    lines = [
        style.paint(
            f"{played.trace}: {played.requests} requests in {minutes:.0f} min on {played.engine} "
            f"({gpus} a replica), cold start {ground.cold_start_s:g}s, {ground.router}",
            "bold",
        ),
        "",
        *_table([_HEAD, *(_row(run) for run in played.runs)]),
        "",
        f"KEPT: answered whole within {promised(played)}.",
        "FAILED: refused, lost with a replica, or not answered.",
    ]
    return "\n".join(lines) + "\n"


def _row(run: RunResult) -> tuple[str, ...]:
    return (
        run.policy,
        f"{100 * run.attainment:.1f}%",
        _took(run.ttft_p50_ms),
        _took(run.ttft_p95_ms),
        _took(run.ttft_p99_ms),
        _took(run.itl_p95_ms),
        f"{run.gpu_hours:.2f}",
        "-" if run.cost is None else f"{run.cost:.2f}",
        str(run.peak),
        str(run.cold_starts),
        str(run.ups),
        str(run.downs),
        str(run.refused + run.broken + run.unanswered),
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _took(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f}ms"
    return f"{milliseconds / 1000:.1f}s"


def simulation_json(played: Played) -> dict[str, Any]:
    """The document; numbers are rounded to what they can mean."""
    ground = played.ground
    return {
        "apiVersion": API_VERSION,
        "kind": "Simulation",
        "trace": played.trace,
        "engine": played.engine,
        "requests": played.requests,
        "coldStartMs": round(ground.cold_start_s * 1000),
        "router": str(ground.router),
        "slo": {"ttftMs": ground.slo.ttft_p95_ms, "itlMs": ground.slo.itl_p95_ms},
        "gpusPerReplica": ground.gpus,
        "seed": ground.seed,
        "runs": [_run(run) for run in played.runs],
    }


def _run(run: RunResult) -> dict[str, Any]:
    return {
        "policy": run.policy,
        "attainment": round(run.attainment, 6),
        "kept": run.kept,
        "refused": run.refused,
        "broken": run.broken,
        "unanswered": run.unanswered,
        "waitedOver5s": run.waited_over_5s,
        "ttftP50Ms": _whole(run.ttft_p50_ms),
        "ttftP95Ms": _whole(run.ttft_p95_ms),
        "ttftP99Ms": _whole(run.ttft_p99_ms),
        "itlP95Ms": _whole(run.itl_p95_ms),
        "replicaSeconds": round(run.replica_seconds, 3),
        "gpuHours": round(run.gpu_hours, 6),
        "cost": None if run.cost is None else round(run.cost, 6),
        "bought": run.bought,
        "coldStarts": run.cold_starts,
        "lost": run.lost,
        "ups": run.ups,
        "downs": run.downs,
        "peak": run.peak,
        "preemptions": run.preemptions,
        "points": [_point(point) for point in run.points],
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "atMs": round(point.at_s * 1000),
        "wanted": point.wanted,
        "ready": point.ready,
        "held": point.held,
        "arrivalsPerSecond": round(point.arrivals_per_second, 3),
        "waiting": point.waiting,
    }


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)

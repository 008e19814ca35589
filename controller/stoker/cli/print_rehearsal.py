"""What `stoker rehearse` prints: a table for people, a document for machines.

In: judgements with their recordings. Out: text, or the JSON document of `stoker schema Rehearsal`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stoker.cli.style import Style
from stoker.objects.names import API_VERSION
from stoker.rehearse.judge import Count, Judgement, ServiceCount, Verdict
from stoker.rehearse.record import Recording
from stoker.rehearse.schema import ScenarioFile

__all__ = ["Played", "rehearsal_json", "rehearsal_text"]

Played = tuple[Recording, Judgement]

_HEAD = (
    *("SEED", "SERVICE", "OK", "REFUSED", "TRUNCATED", "UNAVOIDABLE", "STICKY", "LATE"),
    *("TTFT", "GAP", "READY", "STARTS", "WASTED"),
)


def rehearsal_text(scenario: ScenarioFile, played: Sequence[Played], style: Style) -> str:
    """What happened, a row a service and seed, each bar that was missed, and the end."""
    lines = [f"{scenario.metadata.name}: {scenario.spec.about}"]
    if played:
        lines.append(_where(played[0][0]))
        lines += [f"  {line}" for line in _events(played[0][0])]
    rows: list[tuple[str, ...]] = [_HEAD]
    for recording, judgement in played:
        rows += [_row(recording.seed, count) for count in judgement.services]
    if len(rows) > 1:
        lines += ["", *_table(rows), "", *_reasons(played)]
    missed = [line for one in played for line in _missed(one)]
    bars = sum(len(judgement.verdicts) for _, judgement in played)
    lines += ["", *(style.paint(line, "red") for line in missed)]
    end = f"{len(missed)} of {bars} bars missed" if missed else f"all {bars} bars hold"
    return "\n".join([*lines, f"{end}, {len(played)} seed{'s' if len(played) > 1 else ''}"]) + "\n"


def _where(recording: Recording) -> str:
    scale = "" if recording.time_scale == 1 else f", times {recording.time_scale:g} as fast"
    return f"on {recording.ground}{scale}; seed {recording.seed}:"


def _events(recording: Recording) -> list[str]:
    return [
        f"{(h.at_ms - recording.zero_ms) * recording.time_scale / 1000:7.1f}s  {h.text}"
        for h in recording.happenings
    ]


def _row(seed: int, count: ServiceCount) -> tuple[str, ...]:
    found, sticky = count.requests, count.sticky
    failed = sticky.refused + sticky.truncated + sticky.unavoidable
    return (
        *(str(seed), count.name, str(found.ok), str(found.refused), str(found.truncated)),
        *(str(found.unavoidable), str(failed), str(found.late)),
        *(_milliseconds(count.ttft_ms), _milliseconds(count.gap_ms)),
        f"{count.lowest_ready}..{count.ready_at_end}/{count.wanted}",
        *(str(count.starts), str(count.starts_wasted)),
    )


def _reasons(played: Sequence[Played]) -> list[str]:
    return [
        f"seed {recording.seed}: {count.name} {number} {why}"
        for recording, judgement in played
        for count in judgement.services
        for why, number in count.reasons
    ]


def _milliseconds(value: int | None) -> str:
    return "-" if value is None else f"{value}ms" if value < 10_000 else f"{value / 1000:.0f}s"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return [
        "  ".join(
            cell.ljust(width) if column == 1 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _missed(played: Played) -> list[str]:
    recording, judgement = played
    if not judgement.began:
        return [f"seed {recording.seed}: it never began, {recording.why}"]
    return [
        f"seed {recording.seed}: {v.of} {v.measure} {_found(v)}, "
        f"{'at least' if v.least else 'at most'} {v.bar}{_unit(v)} allowed"
        for v in judgement.verdicts
        if not v.holds
    ]


def _found(verdict: Verdict) -> str:
    return "unknown" if verdict.found is None else f"{verdict.found}{_unit(verdict)}"


def _unit(verdict: Verdict) -> str:
    return "ms" if verdict.measure == "gap" else ""


def rehearsal_json(scenario: ScenarioFile, played: Sequence[Played]) -> dict[str, Any]:
    """The document; times are milliseconds of the ground's clock from the end of the warm-up."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Rehearsal",
        "scenario": scenario.metadata.name,
        "holds": all(judgement.holds for _, judgement in played),
        "runs": [_run(recording, judgement) for recording, judgement in played],
    }


def _run(recording: Recording, judgement: Judgement) -> dict[str, Any]:
    return {
        "seed": recording.seed,
        "on": recording.ground,
        "timesAsFast": str(recording.time_scale),
        "ending": str(recording.ending),
        "why": recording.why,
        "holds": judgement.holds,
        "doubleBookedGPUs": judgement.double_booked,
        "services": [_service(count) for count in judgement.services],
        "bars": [
            {
                "of": v.of,
                "measure": v.measure,
                "found": v.found,
                "bar": v.bar,
                "least": v.least,
                "holds": v.holds,
            }
            for v in judgement.verdicts
        ],
        "events": [
            {"atMs": h.at_ms - recording.zero_ms, "text": h.text} for h in recording.happenings
        ],
        "pods": [
            {
                "name": pod.name,
                "service": pod.service,
                "node": pod.node,
                "states": [
                    {"atMs": at_ms - recording.zero_ms, "state": str(state)}
                    for at_ms, state in pod.states
                ],
            }
            for pod in sorted(recording.pods.values(), key=lambda pod: (pod.states[0][0], pod.name))
        ],
    }


def _service(count: ServiceCount) -> dict[str, Any]:
    return {
        "name": count.name,
        "requests": _count(count.requests),
        "sticky": _count(count.sticky),
        "clients": [{"name": name, **_count(found)} for name, found in count.clients],
        "ttftMs": count.ttft_ms,
        "gapMs": count.gap_ms,
        "lowestReady": count.lowest_ready,
        "floor": count.floor,
        "wanted": count.wanted,
        "readyAtEnd": count.ready_at_end,
        "starts": count.starts,
        "startsWasted": count.starts_wasted,
        "reasons": [{"why": why, "count": number} for why, number in count.reasons],
    }


def _count(count: Count) -> dict[str, int]:
    return {
        "ok": count.ok,
        "refused": count.refused,
        "truncated": count.truncated,
        "unavoidable": count.unavoidable,
        "late": count.late,
    }

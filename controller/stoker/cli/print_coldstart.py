"""What `stoker coldstart` prints: phases with a waterfall, levers with what they save, or JSON.

In: a Start and the levers that a person chose. Out: text. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stoker.cli.print_plan import duration
from stoker.cli.style import one_line
from stoker.model.times import rfc3339
from stoker.objects.names import API_VERSION
from stoker.objects.start_facts import Start
from stoker.objects.start_levers import LEVERS, Lever, Saving, left_of, savings_of
from stoker.objects.start_phases import Phase, Span

__all__ = ["coldstart_json", "coldstart_text", "headline", "phase_words", "span_words", "took"]

WIDTH = 32
"""Columns of the waterfall."""
UNKNOWN = "?"


def coldstart_text(start: Start, chosen: Sequence[Lever]) -> str:
    """All of it for a terminal, lines of at most about 120 columns."""
    lines = [headline(start), *_notes(start), "", *_phases(start)]
    savings = savings_of(start.spans)
    if savings:
        lines += ["", *_levers(start, savings)]
    if chosen:
        lines += ["", _chosen(start, chosen)]
    return "\n".join(one_line(line).rstrip() for line in lines) + "\n"


def headline(start: Start) -> str:
    """`llm/qwen-7b-… on l4-1: vllm 0.28.0, Ready after 8m34s`."""
    name = f"{start.namespace}/{start.name}" if start.namespace else start.name
    where = f" on {start.node}" if start.node else ""
    engine = f"{start.engine} {start.version}".strip()
    if start.took_ms is None:
        known = "no two instants are known"
    elif start.ready:
        known = f"Ready after {took(start.took_ms)}"
    else:
        known = f"{took(start.took_ms)} known, Ready not seen"
    return f"{name or '(unnamed pod)'}{where}: {f'{engine}, ' if engine else ''}{known}"


def took(milliseconds: int | None) -> str:
    """`3m44s`, `850ms`, `?`."""
    if milliseconds is None:
        return UNKNOWN
    return f"{milliseconds}ms" if 0 < milliseconds < 1_000 else duration(milliseconds)


def phase_words(phase: Phase) -> str:
    """`image pull` for ImagePull."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in phase).strip()


def span_words(span: Span) -> str:
    """`process + weights + engine init`."""
    return " + ".join(phase_words(phase) for phase in span.phases)


def _notes(start: Start) -> Iterable[str]:
    if start.begin_ms is not None:
        yield f"  first instant {rfc3339(start.begin_ms)}"
    pull = start.pull
    if pull.size_bytes is not None:
        yield f"  image of {pull.size_bytes / 1e9:.1f} GB"
    if pull.waited_ms:
        yield f"  {took(pull.waited_ms)} of the pull went by behind other pulls of the node"
    if start.restarts:
        yield f"  the engine restarted {start.restarts} times; its log is of the last run"
    if start.why:
        yield f"  the engine's own phases are not told apart: {start.why}"


def _phases(start: Start) -> list[str]:
    rows = [("PHASE", "AT", "TOOK", "", "LEVER")]
    rows += [
        (
            span_words(span),
            took(_offset(start, span)),
            took(span.took_ms),
            _bar(start, span),
            _lever_of(span),
        )
        for span in start.spans
    ]
    wide = max(len(row[0]) for row in rows)
    return [
        f"{name:{wide}}  {at:>7} {time:>7}  {bar:{WIDTH}}  {lever}"
        for name, at, time, bar, lever in rows
    ]


def _offset(start: Start, span: Span) -> int | None:
    if span.begin_ms is None or start.begin_ms is None:
        return None
    return span.begin_ms - start.begin_ms


def _bar(start: Start, span: Span) -> str:
    offset, whole = _offset(start, span), start.took_ms
    if offset is None or not whole or not span.took_ms:
        return ""
    begin = offset * WIDTH // whole
    end = -(-(offset + span.took_ms) * WIDTH // whole)
    return " " * begin + ("█" if len(span.phases) == 1 else "▒") * max(1, end - begin)


def _lever_of(span: Span) -> str:
    """The lever without a price that saves most of this span, and how much; one that replaces
    more phases than these only where no other helps.
    """
    savings = [each for each in savings_of([span]) if not each.lever.costs]
    savings.sort(key=lambda each: bool(each.lever.replaces))
    return f"{savings[0].lever.name} {_saves(savings[0])}" if savings else ""


def _saves(saving: Saving) -> str:
    if saving.saves_ms is not None:
        return f"-{took(saving.saves_ms)}"
    return f"at most -{took(saving.most_ms)}"


def _levers(start: Start, savings: Sequence[Saving]) -> list[str]:
    rows = [("LEVER", "SAVES", "")]
    for saving in savings:
        price = f"; costs {saving.lever.costs}" if saving.lever.costs else ""
        rows.append((saving.lever.name, _saves(saving), saving.lever.what + price))
    free = [saving.lever for saving in savings if not saving.lever.costs]
    wide = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{name:{wide[0]}}  {saves:>{wide[1]}}  {what}" for name, saves, what in rows]
    return [*lines, f"All without a price: {_change(start, free)}"]


def _chosen(start: Start, chosen: Sequence[Lever]) -> str:
    return f"With {', '.join(lever.name for lever in chosen)}: {_change(start, chosen)}"


def _change(start: Start, levers: Sequence[Lever]) -> str:
    """`1m32s -> 21s, the largest left is weights`."""
    least, most, largest = left_of(start.spans, levers)
    left = took(least) if least == most else f"between {took(least)} and {took(most)}"
    rest = f", the largest left is {phase_words(largest)}" if largest is not None else ""
    return f"{took(start.took_ms)} -> {left}{rest}"


def coldstart_json(start: Start, chosen: Sequence[Lever]) -> dict[str, Any]:
    """The document of `-o json` (stoker schema ColdStart)."""
    least, most, largest = left_of(start.spans, chosen or [x for x in LEVERS if not x.costs])
    return {
        "apiVersion": API_VERSION,
        "kind": "ColdStart",
        "namespace": start.namespace,
        "name": start.name,
        "node": start.node,
        "image": start.image,
        "engine": start.engine,
        "engineVersion": start.version,
        "ready": start.ready,
        "restarts": start.restarts,
        "unknown": start.why,
        "beginMs": start.begin_ms,
        "endMs": start.end_ms,
        "tookMs": start.took_ms,
        "pull": {
            "sizeBytes": start.pull.size_bytes,
            "waitedMs": start.pull.waited_ms,
            "present": start.pull.present,
        },
        "spans": [
            {
                "phases": [str(phase) for phase in span.phases],
                "beginMs": span.begin_ms,
                "endMs": span.end_ms,
                "tookMs": span.took_ms,
            }
            for span in start.spans
        ],
        "levers": [
            {
                "name": saving.lever.name,
                "what": saving.lever.what,
                "costs": saving.lever.costs,
                "savesMs": saving.saves_ms,
                "leastMs": saving.least_ms,
                "mostMs": saving.most_ms,
                "source": saving.lever.source,
            }
            for saving in savings_of(start.spans)
        ],
        "with": [lever.name for lever in chosen],
        "left": {
            "leastMs": least,
            "mostMs": most,
            "largest": None if largest is None else str(largest),
        },
    }

"""A rehearsal as a picture: a row a node with its pods, events as lines, failures as ticks.

In: a scenario, a recording and its judgement. Out: an SVG document with text that can be
selected and nothing to load. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import escape

from stoker.cli.svg import svg_frame
from stoker.rehearse.judge import Judgement
from stoker.rehearse.record import PodLife, PodState, Recording
from stoker.rehearse.schema import ScenarioFile

__all__ = ["rehearsal_svg"]

LABELS, WIDE, RIGHT, LANE, TOP, TICKS = 130, 700, 24, 22, 64, 26
_COLOURS = {
    PodState.PENDING: "#d9dee7",
    PodState.STARTING: "#e3c069",
    PodState.READY: "#7ec97e",
    PodState.DRAINING: "#8a93a3",
    PodState.FAILING: "#e58080",
}
_LEGEND = (PodState.STARTING, PodState.READY, PodState.DRAINING, PodState.FAILING)


def rehearsal_svg(scenario: ScenarioFile, recording: Recording, judgement: Judgement) -> str:
    """The picture, from the begin of the load to the end."""
    lanes = _lanes(recording)
    services = sorted(recording.wanted)
    height = TOP + LANE * len(lanes) + 30 + TICKS * len(services) + 62
    width = LABELS + WIDE + RIGHT
    verdict = "every bar holds" if judgement.holds else "a bar is missed"
    title = escape(f"{scenario.metadata.name}, seed {recording.seed}: {verdict}")
    parts = [
        *svg_frame(width, height, title, 26),
        f'<text class="t" x="16" y="46">{escape(scenario.spec.about)}</text>',
    ]
    below = TOP + LANE * len(lanes)
    for number, (node, pods) in enumerate(lanes):
        parts += _lane(recording, node, pods, TOP + LANE * number)
    parts += _events(recording, below)
    for number, service in enumerate(services):
        parts += _failures(recording, service, below + 30 + TICKS * number)
    parts += _axis(recording, below + 30 + TICKS * len(services))
    parts += _legend(height - 18)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lanes(recording: Recording) -> list[tuple[str, list[PodLife]]]:
    """One lane a node, more where its pods overlap; pods without a node in one at the end."""
    lanes: list[tuple[str, list[PodLife]]] = []
    for node in (*recording.nodes, ""):
        mine = [p for p in recording.pods.values() if p.node == node]
        rows: list[list[PodLife]] = [[]] if node else []
        for pod in sorted(mine, key=lambda p: (p.states[0][0], p.name)):
            for row in rows:
                if not row or _gone_ms(recording, row[-1]) <= pod.states[0][0]:
                    row.append(pod)
                    break
            else:
                rows.append([pod])
        lanes += [(node if not number else "", row) for number, row in enumerate(rows)]
    return lanes


def _gone_ms(recording: Recording, pod: PodLife) -> int:
    return pod.states[-1][0] if pod.last is PodState.GONE else recording.end_ms


def _x(recording: Recording, at_ms: int) -> float:
    whole = max(1, recording.end_ms - recording.load_ms)
    inside = min(max(at_ms, recording.load_ms), recording.end_ms) - recording.load_ms
    return round(LABELS + inside * WIDE / whole, 1)


def _lane(recording: Recording, node: str, pods: list[PodLife], y: int) -> Iterator[str]:
    if node:
        yield f'<text x="16" y="{y + 14}">{escape(node)}</text>'
    for pod in pods:
        steps = [*pod.states, (recording.end_ms, PodState.GONE)]
        for (since_ms, state), (until_ms, _) in pairwise(steps):
            left, right = _x(recording, since_ms), _x(recording, until_ms)
            if state is PodState.GONE or right <= left:
                continue
            name = escape(f"{pod.service}: {state}")
            yield (
                f'<rect x="{left}" y="{y + 2}" width="{round(right - left, 1)}" height="16" '
                f'fill="{_COLOURS[state]}"><title>{name}</title></rect>'
            )
        left, right = _x(recording, pod.states[0][0]), _x(recording, _gone_ms(recording, pod))
        if right - left > 9 * len(pod.service):
            yield f'<text x="{left + 4}" y="{y + 14}">{escape(pod.service)}</text>'


def _events(recording: Recording, below: int) -> Iterator[str]:
    free = 0.0
    for happening in recording.happenings:
        x = _x(recording, happening.at_ms)
        yield (
            f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{below + 4}" stroke="#16191f" '
            f'stroke-dasharray="2 3"/>'
        )
        if x >= free:
            text = escape(happening.text)
            room = LABELS + WIDE - x
            end = ' text-anchor="end"' if room < 6.6 * len(happening.text) else ""
            yield f'<text class="t" x="{x}" y="{below + 18}"{end}>{text}</text>'
            free = x + 7 * len(happening.text) + 8


def _failures(recording: Recording, service: str, y: int) -> Iterator[str]:
    failed = [r for r in recording.requests if r.service == service and r.failed]
    yield f'<text x="16" y="{y + 15}">{escape(service)}: {len(failed)} failed</text>'
    yield (
        f'<line x1="{LABELS}" y1="{y + 20}" x2="{LABELS + WIDE}" y2="{y + 20}" stroke="#d9dee7"/>'
    )
    at = sorted({_x(recording, r.ended_ms or r.at_ms) for r in failed})
    if at:
        strokes = " ".join(f"M{x} {y + 6}V{y + 20}" for x in at)
        yield f'<path d="{strokes}" stroke="#c43b3b" stroke-width="1.5" fill="none"/>'


def _axis(recording: Recording, y: int) -> Iterator[str]:
    whole = (recording.end_ms - recording.zero_ms) / 1000
    step = next((s for s in (10, 30, 60, 120, 300, 600, 1800) if whole / s <= 12), 3600)
    for second in range(0, round(whole) + 1, step):
        x = _x(recording, recording.zero_ms + second * 1000)
        shown = round(second * recording.time_scale)
        yield f'<text class="t" x="{x}" y="{y + 14}" text-anchor="middle">{shown}s</text>'


def _legend(y: int) -> Iterator[str]:
    x = LABELS
    for state in _LEGEND:
        yield f'<rect x="{x}" y="{y - 11}" width="14" height="14" fill="{_COLOURS[state]}"/>'
        yield f'<text class="t" x="{x + 20}" y="{y}">{state}</text>'
        x += 110
    yield (
        f'<path d="M{x + 6} {y - 11}v14" stroke="#c43b3b" stroke-width="1.5" fill="none"/>'
        f'<text class="t" x="{x + 14}" y="{y}">a request failed</text>'
    )

"""A simulation as a picture: the load, and below it a lane a policy with its replicas.

In: results of runs on one trace. Out: an SVG document with text that can be selected and nothing
to load. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from xml.sax.saxutils import escape

from stoker.cli.print_simulation import Played, promised
from stoker.cli.svg import svg_frame
from stoker.sim.run_result import Point, RunResult

__all__ = ["simulation_svg"]

LEFT, WIDE, RIGHT, TOP, LOAD, LANE, GAP = 60, 760, 24, 64, 80, 90, 44
_LOAD, _HELD, _READY, _WAITING = "#b9c0cc", "#e3c069", "#7ec97e", "#c43b3b"


def simulation_svg(played: Played) -> str:
    """The picture; all lanes have the same scale, so that they compare."""
    height = TOP + LOAD + (LANE + GAP) * len(played.runs) + 58
    width = LEFT + WIDE + RIGHT
    ground = played.ground
    title = escape(
        f"{played.trace} on {played.engine}, cold start {ground.cold_start_s:g}s, {ground.router}"
    )
    parts = svg_frame(width, height, title, 26)
    points = played.runs[0].points if played.runs else ()
    end_s = max((run.end_s for run in played.runs), default=0.0) or 1.0
    most = max((point.arrivals_per_second for point in points), default=0.0)
    parts.append(
        f'<text class="t" x="16" y="46">requests a second, at most {most:.1f}; '
        f"promised: {escape(promised(played))}</text>"
    )
    parts += _area(points, end_s, most, TOP, LOAD, _LOAD, lambda p: p.arrivals_per_second)
    peak = max((run.peak for run in played.runs), default=1)
    for number, run in enumerate(played.runs):
        parts += _lane(run, end_s, peak, TOP + LOAD + GAP + (LANE + GAP) * number)
    parts += _axis(end_s, height - 38)
    parts += _legend(height - 14)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lane(run: RunResult, end_s: float, peak: int, y: int) -> Iterator[str]:
    words = (
        f"{run.policy}: {100 * run.attainment:.1f}% kept, {run.gpu_hours:.1f} GPU hours, "
        f"peak {run.peak}, {run.cold_starts} cold starts"
    )
    yield f'<text x="16" y="{y - 8}">{escape(words)}</text>'
    yield f'<text class="t" x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{peak}</text>'
    yield f'<text class="t" x="{LEFT - 8}" y="{y + LANE}" text-anchor="end">0</text>'
    yield from _area(run.points, end_s, peak, y, LANE, _HELD, lambda p: p.held)
    yield from _area(run.points, end_s, peak, y, LANE, _READY, lambda p: p.ready)
    queued = [point for point in run.points if point.waiting]
    strokes = " ".join(f"M{_x(p.at_s, end_s)} {y + LANE}v6" for p in queued)
    if strokes:
        yield f'<path d="{strokes}" stroke="{_WAITING}" stroke-width="1.5" fill="none"/>'


def _area(
    points: Sequence[Point],
    end_s: float,
    most: float,
    y: int,
    high: int,
    colour: str,
    value: Callable[[Point], float],
) -> Iterator[str]:
    """Steps from the left to the right, filled down to the zero line."""
    zero = y + high
    line = f'<line x1="{LEFT}" y1="{zero}" x2="{LEFT + WIDE}" y2="{zero}" stroke="#d9dee7"/>'
    if not points or not most:
        yield line
        return
    parts = [f"M{_x(points[0].at_s, end_s)} {zero}"]
    before = None
    for point in points:
        top = round(zero - high * value(point) / most, 1)
        if top != before:
            parts.append(f"H{_x(point.at_s, end_s)}V{top}")
            before = top
    parts.append(f"H{LEFT + WIDE}V{zero}Z")
    yield f'<path d="{"".join(parts)}" fill="{colour}"/>'
    yield line


def _x(at_s: float, end_s: float) -> float:
    return round(LEFT + min(at_s, end_s) * WIDE / end_s, 1)


def _axis(end_s: float, y: int) -> Iterator[str]:
    step = next((s for s in (10, 30, 60, 120, 300, 600, 1800) if end_s / s <= 12), 3600)
    for second in range(0, int(end_s) + 1, step):
        words = f"{second}s" if step < 60 else f"{second // 60}m"
        x = _x(second, end_s)
        yield f'<text class="t" x="{x}" y="{y}" text-anchor="middle">{words}</text>'


def _legend(y: int) -> Iterator[str]:
    x = LEFT
    for colour, words in ((_READY, "serve"), (_HELD, "start or leave"), (_LOAD, "load")):
        yield f'<rect x="{x}" y="{y - 11}" width="14" height="14" fill="{colour}"/>'
        yield f'<text class="t" x="{x + 20}" y="{y}">{words}</text>'
        x += 130
    yield (
        f'<path d="M{x + 6} {y - 9}v8" stroke="{_WAITING}" stroke-width="1.5" fill="none"/>'
        f'<text class="t" x="{x + 14}" y="{y}">requests wait</text>'
    )

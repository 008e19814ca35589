"""A start as a picture: one bar a phase, text that can be selected, nothing loaded.

In: a Start. Out: an SVG document. Pure.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from stoker.cli.print_coldstart import headline, span_words, took
from stoker.cli.style import one_line
from stoker.cli.svg import svg_frame
from stoker.objects.start_facts import Start
from stoker.objects.start_phases import Phase, Span

__all__ = ["coldstart_svg"]

LABELS, BARS, TIMES, ROW, TOP = 250, 520, 110, 28, 62
NODE, IMAGE, WEIGHTS, ENGINE, REST = "#8a93a3", "#82aaff", "#7ec97e", "#e3c069", "#b9c0cc"
_COLOURS = {
    Phase.QUEUE: NODE,
    Phase.NODE: NODE,
    Phase.SCHEDULE: NODE,
    Phase.IMAGE_PULL: IMAGE,
    Phase.DOWNLOAD: WEIGHTS,
    Phase.WEIGHTS: WEIGHTS,
    Phase.PROCESS: ENGINE,
    Phase.CONFIG: ENGINE,
    Phase.DEVICE: ENGINE,
    Phase.COMPILE: ENGINE,
    Phase.GRAPHS: ENGINE,
    Phase.ENGINE_INIT: ENGINE,
    Phase.CRASHES: "#e58080",
}


def coldstart_svg(start: Start) -> str:
    """The picture, as wide as a page; unknown phases have a name and no bar."""
    width = LABELS + BARS + TIMES
    height = TOP + ROW * len(start.spans) + 16
    title = escape(one_line(headline(start)))
    parts = svg_frame(width, height, title, 28)
    for number, span in enumerate(start.spans):
        parts += _row(start, span, TOP + ROW * number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _row(start: Start, span: Span, y: int) -> list[str]:
    text = f'y="{y + 14}"'
    parts = [f'<text x="16" {text}>{escape(_short(span_words(span)))}</text>']
    whole, begin = start.took_ms, start.begin_ms
    end = LABELS
    if span.took_ms is not None and span.begin_ms is not None and whole and begin is not None:
        x = LABELS + round((span.begin_ms - begin) * BARS / whole, 1)
        wide = max(1.0, round(span.took_ms * BARS / whole, 1))
        shade = "" if len(span.phases) == 1 else ' fill-opacity="0.5"'
        colour = _COLOURS.get(span.phases[0], REST)
        parts.append(
            f'<rect x="{x}" y="{y}" width="{wide}" height="20" rx="2" fill="{colour}"{shade}/>'
        )
        end = round(x + wide)
    parts.append(f'<text class="t" x="{end + 6}" {text}>{escape(took(span.took_ms))}</text>')
    return parts


def _short(words: str) -> str:
    return words if len(words) <= 36 else words[:35] + "…"

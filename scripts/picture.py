#!/usr/bin/env python3
"""Draw docs/pictures/: what `stoker demo` prints, one pass, and the example of a cold start.

In: the demo's own output, played in memory (about ten seconds), the stages of a pass as listed
below, examples/coldstart, examples/traces, runs on the in-memory cluster (picture_runs.py). Out: SVG files with selectable text and no fonts or links from elsewhere.
Run by hand when the demo's output changes; tests/shape/test_docs_pictures.py says when.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
sys.path[:0] = [str(ROOT / "controller"), str(ROOT / "scripts")]

CHARACTER = 7.8
LINE = 18
MARGIN = 18
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"
DARK, LIGHT, DIM = "#16191f", "#d9dee7", "#8a93a3"
GREEN, YELLOW, RED, BLUE = "#7ec97e", "#e3c069", "#e58080", "#82aaff"

STAGES = (
    ("source", "which revision is wanted", "Git"),
    ("observe", "nodes, pods, objects", "watch caches"),
    ("shape", "what a pod asks for, rev", "render jail"),
    ("decide", "where, how many, in which order", "nothing: pure"),
    ("render", "manifests with the decisions", "render jail"),
    ("check", "go or stop, unit by unit", "nothing"),
    ("diff", "which fields differ, what left", "API server, dry run"),
    ("apply", "server-side apply, drain, prune", "API server"),
    ("report", "conditions, status, mirrors", "Git, API server"),
)
"""Name, what it answers, whom it talks to; the order of controller/stoker/reconcile.py."""
SIMULATED = ("fixed=4", "hpa-average:in-flight=20", "stoker", "clairvoyant")
"""The policies of the simulation's picture, as docs/simulate.md asks for them."""


def main() -> int:
    """Write all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "coldstart.svg").write_text(cold_start(), encoding="utf-8")
    (PICTURES / "simulation.svg").write_text(simulation(), encoding="utf-8")
    (PICTURES / "pass.svg").write_text(one_pass(), encoding="utf-8")
    (PICTURES / "demo.svg").write_text(terminal("make demo", demo_lines()), encoding="utf-8")
    for name, text in runs().items():
        (PICTURES / name).write_text(text, encoding="utf-8")
    return 0


def runs() -> dict[str, str]:
    """The pictures of readiness, placement and a notice, by name of the file."""
    import picture_runs

    return {
        "readiness.svg": picture_runs.readiness(),
        "placement.svg": picture_runs.placement(),
        "notice.svg": picture_runs.notice(),
    }


def cold_start() -> str:
    """What `stoker coldstart examples/coldstart/lab -o svg` prints."""
    from stoker.cli.coldstart_recorded import read_recorded_start
    from stoker.cli.coldstart_svg import coldstart_svg
    from stoker.objects.start_facts import start_from
    from stoker.source import shipped_log_profiles

    found = read_recorded_start(ROOT / "examples" / "coldstart" / "lab")
    return coldstart_svg(start_from(found.pod, found.events, found.log, shipped_log_profiles()))


def simulation() -> str:
    """What `stoker simulate --trace examples/traces/surge.csv -o svg`, with SIMULATED, prints."""
    from stoker.cli.app import run

    out = io.StringIO()
    trace = str(ROOT / "examples" / "traces" / "surge.csv")
    policies = [f"--policy={name}" for name in SIMULATED]
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        run(["simulate", "--trace", trace, *policies, "-o", "svg"])
    return out.getvalue()


def demo_lines() -> list[str]:
    """What the demo prints, without the folder of this run."""
    from stoker.cli.demo_scenes import play
    from stoker.cli.demo_stage import Stage
    from stoker.log import configure

    configure("error")
    out = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="stoker-picture-") as folder:
        stage = Stage(Path(folder), out)
        try:
            if not play(stage):
                message = f"the demo did not end well:\n{out.getvalue()}"
                raise SystemExit(message)
        finally:
            stage.close()
        return out.getvalue().replace(folder, "a temporary folder").splitlines()


def lines_of(svg: str) -> list[str]:
    """The text of a terminal picture, line by line."""
    found = re.findall(r'<text class="l"[^>]*>(.*?)</text>', svg)
    plain = (re.sub(r"<[^>]+>", "", line) for line in found)
    return [p.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for p in plain]


# ------------------------------------------------------------------------- terminal
def terminal(title: str, lines: Iterable[str]) -> str:
    """Lines of text as a terminal window."""
    rows = [f"$ {title}", *lines]
    width = round(max(len(row) for row in rows) * CHARACTER + 2 * MARGIN)
    height = len(rows) * LINE + 2 * MARGIN + 22
    parts = [
        _head(width, height, f"Terminal: {title}"),
        f"<style>.l{{font:13px {MONOSPACE};fill:{LIGHT};white-space:pre}}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{DARK}"/>',
        *(
            f'<circle cx="{MARGIN + 18 * n}" cy="16" r="5" fill="{colour}"/>'
            for n, colour in enumerate((RED, YELLOW, GREEN))
        ),
    ]
    for number, row in enumerate(rows):
        if not row:
            continue
        y = MARGIN + 22 + LINE * number + 10
        spans = "".join(_span(start, text, colour) for start, text, colour in _segments(row))
        parts.append(f'<text class="l" y="{y}" xml:space="preserve">{spans}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


_COLOURS = (
    (re.compile(r"\$ .*$"), BLUE),
    (re.compile(r"^\[\d/\d\]"), YELLOW),
    (re.compile(r"(?<=\d\d:\d\d )(ready|status)"), GREEN),
    (re.compile(r"(?<=\d\d:\d\d )(plan|repair|pruned)"), YELLOW),
    (re.compile(r"\+ create"), GREEN),
)


def _segments(row: str) -> Iterator[tuple[int, str, str]]:
    """Column, text and colour of each piece; pieces also end where two blanks do."""
    colours = [""] * len(row)
    for pattern, colour in _COLOURS:
        for found in pattern.finditer(row):
            colours[found.start() : found.end()] = [colour] * len(found[0])
    start = 0
    for column in range(1, len(row) + 1):
        here = row[column - 2 : column] == "  " and row[column : column + 1].strip()
        if column == len(row) or here or colours[column] != colours[column - 1]:
            yield start, row[start:column], colours[start]
            start = column


def _span(column: int, text: str, colour: str) -> str:
    """One piece at its column, so that columns align whatever the font's width is."""
    x = round(MARGIN + column * CHARACTER, 1)
    fill = f' fill="{colour}"' if colour else ""
    return f'<tspan x="{x}"{fill}>{escape(text)}</tspan>'


# ------------------------------------------------------------------------- one pass
def one_pass() -> str:
    """Nine boxes between a commit and its status, with what each of them talks to."""
    width, box, gap, top = 964, 280, 30, 64
    height = top + 3 * 96 + 40
    parts = [
        _head(width, height, "One pass: from a commit to status"),
        (
            f"<style>text{{font-family:{SANS}}}.n{{font-size:17px;font-weight:bold}}"
            ".w{font-size:13px}.t{font-size:12px}</style>"
        ),
        f'<rect width="{width}" height="{height}" rx="8" fill="{DARK}"/>',
        (
            f'<text x="{MARGIN}" y="36" class="w" fill="{LIGHT}">'
            "A commit of the fleet repository goes in; the cluster is what it says, and status "
            "comes back as a commit.</text>"
        ),
    ]
    for number, (name, answer, talks) in enumerate(STAGES):
        row, column = divmod(number, 3)
        x, y = MARGIN + 12 + column * (box + gap), top + row * 96
        pure = talks.startswith("nothing")
        parts += [
            (
                f'<rect x="{x}" y="{y}" width="{box}" height="72" rx="6" fill="#20252e" '
                f'stroke="{GREEN if pure else BLUE}" stroke-width="1.5"/>'
            ),
            f'<text x="{x + 14}" y="{y + 24}" class="n" fill="{LIGHT}">{number + 1} {name}</text>',
            f'<text x="{x + 14}" y="{y + 44}" class="w" fill="{LIGHT}">{escape(answer)}</text>',
            f'<text x="{x + 14}" y="{y + 62}" class="t" fill="{DIM}">{escape(talks)}</text>',
        ]
        if column < 2:
            parts.append(_arrow(x + box + 3, y + 36, x + box + gap - 4, y + 36))
        elif row < 2:
            parts.append(_turn(x + box, y + 36, MARGIN + 12, y + 96 + 36))
    parts.append(
        f'<text x="{MARGIN}" y="{height - 18}" class="t" fill="{DIM}">diff and plan stop after 7, '
        "apply and run go on to 9. What could not be read is unknown, and unknown deletes "
        "nothing.</text>"
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _head(width: int, height: int, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{escape(label)}">\n'
        f"<title>{escape(label)}</title>"
    )


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    tip = f"M{x2 - 6} {y2 - 4}L{x2} {y2}L{x2 - 6} {y2 + 4}"
    return f'<path d="M{x1} {y1}H{x2}{tip}" fill="none" stroke="{DIM}" stroke-width="1.5"/>'


def _turn(x1: float, y1: float, x2: float, y2: float) -> str:
    """From the end of a row round to the start of the next."""
    middle = (y1 + y2) / 2
    path = f"M{x1} {y1}h10V{middle}H{x2 - 10}V{y2}h8m-6 -4l6 4l-6 4"
    return f'<path d="{path}" fill="none" stroke="{DIM}" stroke-width="1.5"/>'


if __name__ == "__main__":
    sys.exit(main())

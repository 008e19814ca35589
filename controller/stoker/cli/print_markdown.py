"""`-o markdown` of diff and plan: one fleet as a block for a pull-request comment; pure.

Tables say what it comes to, details hold the fields and steps, fenced, cut where a comment
would grow too long. Everything comes masked from the text forms.
"""

from __future__ import annotations

import re

from stoker.cli.print_plan import Cost, cost_of, duration, moving, plan_rows, plan_steps
from stoker.cli.style import Style
from stoker.diff import Summary
from stoker.diff.classes import classes_of
from stoker.model.change import ChangeSet
from stoker.model.fleet import Desired
from stoker.model.plan import Plan
from stoker.model.snapshot import Snapshot
from stoker.sim.foresee import Forecast

__all__ = ["MARKER", "MAX_COMMENT", "diff_markdown", "plan_markdown"]

MARKER = "<!-- stoker:plan -->"
"""First line of a comment: by it the comment is found again and edited in place."""
MAX_COMMENT = 60_000
"""Characters of one document; forges refuse comments over 65,536."""
_PLAIN = Style(no_color=True)
_FIELDS_SHARE = 0.7
"""Of what is left of a plan's document after the tables, the part that fields may take."""


def diff_markdown(
    changes: ChangeSet, desired: Desired, plan: Plan, last: Summary, text: str, header: str
) -> str:
    """The difference of one fleet; `text` is what `diff_text` gives without colours."""
    top = [
        MARKER,
        f"### Stoker diff: {_title(last)} ({_cell(desired.fleet.name)})",
        "",
        *_counts(last),
        *_consequences(changes, plan, last, None),
    ]
    bottom = ["", f"<sub>{_cell(header)}</sub>", ""]
    room = MAX_COMMENT - _size(top) - _size(bottom)
    return "\n".join([*top, *_details("Fields", text, room), *bottom])


def plan_markdown(
    desired: Desired,
    before: Snapshot,
    plan: Plan,
    forecasts: tuple[Forecast, Forecast],
    changes: ChangeSet,
    last: Summary,
    text: str,
    header: str,
) -> str:
    """The consequences of one fleet; `forecasts` are the likely and the slow one.

    `text` is what `diff_text` gives without colours.
    """
    likely, slow = forecasts
    rows = plan_rows(desired, before, plan, likely, slow)
    heads = ("fleet", "service", "replicas", "model revision", "restarts", "cold starts",
             "lowest Ready", "done P50 / P90", "USD/h")  # fmt: skip
    top = [
        MARKER,
        f"### Stoker plan: {_title(last)} ({_cell(desired.fleet.name)})",
        "",
        *(_table(heads, [(desired.fleet.name, *row) for row in rows]) if rows else ()),
        *_consequences(changes, plan, last, cost_of(before, plan, likely)),
    ]
    steps = "\n".join(
        plan_steps(desired, decision, likely, slow, _PLAIN)
        for decision in plan.decisions
        if moving(decision, likely)
    )
    bottom = ["", f"<sub>{_cell(header)} · decided again at apply if capacity moved</sub>", ""]
    room = MAX_COMMENT - _size(top) - _size(bottom)
    fields_room = min(room - 200, max(int(room * _FIELDS_SHARE), room - len(steps) - 200))
    shown = _details("Fields", text, fields_room)
    return "\n".join([*top, *_details("Steps", steps, room - _size(shown)), *shown, *bottom])


def _title(last: Summary) -> str:
    if not last.differs:
        return "no effect"
    told = [
        f"{count} {word}"
        for count, word in (
            (last.create, "to create"),
            (last.change, "to change"),
            (last.replace, "to replace"),
            (last.delete, "to delete"),
            (last.wait, "waiting"),
            (last.error, "in error"),
        )
        if count
    ]
    return f"**{', '.join(told)}**"


def _counts(last: Summary) -> list[str]:
    heads = ("create", "change", "replace", "delete", "unchanged", "in error", "GPUs")
    counts = (last.create, last.change, last.replace, last.delete, last.unchanged, last.error)
    return _table(heads, [(*(str(count) for count in counts), _gpus(last))])


def _gpus(last: Summary) -> str:
    peak = max(last.gpus_peak, last.gpus_before, last.gpus_after)
    return f"GPUs {last.gpus_before} → {last.gpus_after}, peak {peak}"


def _consequences(changes: ChangeSet, plan: Plan, last: Summary, cost: Cost | None) -> list[str]:
    """What somebody who merges should have read, one line each.

    With the cost of all steps the figures are those of the whole plan, else of the next step.
    """
    found = sorted(classes_of(changes, plan))
    restarts = last.pods_restarted if cost is None else cost.restarts
    cold = last.cold_starts if cost is None else cost.cold_starts
    cold_ms = last.cold_start_ms if cost is None else cost.cold_ms
    lines = [""]
    if found:
        lines.append(f"⚠️ **Classes:** {', '.join(found)}")
    if restarts:
        lines.append(f"⚠️ **Pods restarted:** {restarts}")
    if cold:
        lines.append(f"⚠️ **Cold starts:** {cold}, about {duration(cold_ms)} one after another")
    if cost is not None:
        lines.append(f"**GPUs:** {last.gpus_before} now, at most {cost.gpus_peak} on the way")
    if last.error:
        lines.append(f"❌ **In error:** {last.error}; nothing of them is sent")
    if not last.delete:
        lines.append("✅ Nothing is deleted")
    return [*lines, ""]


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return lines + [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows] + [""]


def _cell(text: str) -> str:
    """Text that nothing in it can turn into markup."""
    plain = " ".join(text.replace("->", "→").split())
    return re.sub(r"([\\`*_{}\[\]<>|#@!])", r"\\\1", plain)


def _details(title: str, text: str, room: int) -> list[str]:
    """A fenced block below a fold, no longer than `room`; nothing for no text."""
    if not text.strip():
        return []
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    frame = [f"<details><summary>{title}</summary>", "", f"{fence}text", fence, "</details>", ""]
    return [*frame[:3], _cut(text.rstrip("\n"), room - _size(frame)), *frame[3:]]


def _cut(text: str, room: int) -> str:
    """Whole lines that fit, and how many do not."""
    if len(text) <= room:
        return text
    lines = text.splitlines()
    kept: list[str] = []
    left = room - 60
    for line in lines:
        if left < len(line) + 1:
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join([*kept, f"… {len(lines) - len(kept)} more lines: run the command yourself"])


def _size(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)

"""A count that follows load in words: which rule decided, and what the others would have said.

In: the scaling block and what was found. Out: lines of `stoker explain`. Called by explain.
"""

from __future__ import annotations

from collections.abc import Iterator

from stoker.model.scale_verdict import ScaleVerdict
from stoker.model.scaling import Scaling
from stoker.model.times import span

__all__ = ["scale_lines"]

_COLUMNS = ("RULE", "COUNT", "WHY")


def scale_lines(spec: Scaling, verdict: ScaleVerdict) -> Iterator[str]:
    """Bounds, what keeps the count, every rule's answer, and what would change it."""
    bounds = f"{spec.min_replicas} to {spec.max_replicas}"
    looks = f"looks every {span(spec.interval_ms)}"
    steps = "" if verdict.desired == verdict.replicas else f", on the way to {verdict.desired}"
    yield f"       {verdict.algorithm}, {bounds}, {looks}{steps}"
    if verdict.limited:
        yield f"       limited: {verdict.limited}"
    if verdict.held:
        yield f"       held: {verdict.held}"
    for name, why in verdict.unmeasurable:
        yield f"       not measured: {name}: {why}"
    rows = [
        _COLUMNS,
        *((s.rule, "-" if s.replicas is None else str(s.replicas), s.why) for s in verdict.said),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for row in rows if verdict.said else ():
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  " + "  ".join([*cells, row[2]]).rstrip()
    for change in verdict.changes:
        yield f"       would change it: {change}"

"""What every kind may say about order and waiting: schema blocks, their checks, conversion.

Used by the schemas of all kinds; compile calls `flow_of` for units, schema_fleet the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from stoker.decide.cron import parse, zone_of
from stoker.model.flow import ChangeWindow, Flow, WindowKind
from stoker.model.refs import UnitRef
from stoker.source.places import Field as FieldPath
from stoker.source.schema import Duration, LabelName, Line, Strict

__all__ = [
    "ChangeWindowBlock",
    "FlowSpec",
    "PaceSpec",
    "flow_of",
    "pace_problems",
    "window_problems",
    "windows_of",
]

LONGEST_WINDOW_MS = 31 * 86_400_000
_Window = tuple[FieldPath, str, str, str]


class DependencyBlock(Strict):
    """A unit of this fleet that must be applied, and Healthy or ready, first."""

    kind: Literal["ModelService", "Bundle"]
    """Kind of the unit."""
    namespace: LabelName | None = None
    """Namespace of the unit; without it the namespace of the unit that waits."""
    name: LabelName
    """Name of the unit."""
    ready: Annotated[str, Field(min_length=1)] | None = None
    """CEL about its live `objects`, in place of Healthy: true when this unit may go on."""


class PaceSpec(Strict):
    """Fields of every kind; those of the Fleet are the defaults of its units."""

    suspend: bool = False
    """Write, prune, move and scale nothing; what runs stays as it is."""
    timeout: Duration | None = None
    """How long a unit may take from apply to Healthy before it is Stalled; else no limit."""
    retry_interval: Duration | None = None
    """Wait before a refused object is sent again; without it 5s, doubling up to 5m."""


class FlowSpec(PaceSpec):
    """Fields of every unit."""

    depends_on: list[DependencyBlock] = Field(default_factory=list)
    """Units that must have applied this revision and be Healthy (or `ready`) before this changes."""


class ChangeWindowBlock(Strict):
    """A recurring time in which new revisions are applied, or are not."""

    name: LabelName
    """Name, for status."""
    kind: Literal["Allow", "Deny"] = "Allow"
    """Allow: changes only in such windows. Deny: never in this one; Deny wins."""
    schedule: Annotated[Line, Field(max_length=200)]
    """When it opens: five cron fields, for instance "0 9 * * 1-5"."""
    duration: Duration
    """How long it stays open, at most 31 days."""
    time_zone: Line = "UTC"
    """Zone of the schedule, an IANA name."""


def flow_of(spec: FlowSpec, namespace: str, fleet: Flow) -> Flow:
    """The flow of a unit. `fleet` has the Fleet's own timeout and retry interval."""
    asked = {
        (UnitRef(d.kind, d.namespace or namespace, d.name), d.ready or "") for d in spec.depends_on
    }
    return Flow(
        suspend=spec.suspend,
        depends_on=tuple(sorted({ref for ref, _ in asked})),
        ready=tuple(sorted(asked)) if any(text for _, text in asked) else (),
        timeout_ms=spec.timeout if spec.timeout is not None else fleet.timeout_ms,
        retry_ms=spec.retry_interval if spec.retry_interval is not None else fleet.retry_ms,
    )


def pace_problems(spec: PaceSpec) -> Iterator[_Window]:
    """Field, code, message and hint of what single fields cannot show."""
    for name, value in (("timeout", spec.timeout), ("retryInterval", spec.retry_interval)):
        if value is not None and value < 1000:
            yield ("spec", name), "invalid-value", "must be at least 1s", ""


def windows_of(blocks: Sequence[ChangeWindowBlock]) -> tuple[ChangeWindow, ...]:
    """The windows of a Fleet file, in its order."""
    return tuple(
        ChangeWindow(b.name, WindowKind(b.kind), b.schedule, b.duration, b.time_zone)
        for b in blocks
    )


def window_problems(blocks: Sequence[ChangeWindowBlock]) -> Iterator[_Window]:
    """Field, code, message and hint of everything wrong with the windows."""
    seen: set[str] = set()
    for index, block in enumerate(blocks):
        at: FieldPath = ("spec", "changeWindows", index)
        if block.name in seen:
            yield (*at, "name"), "duplicate-window", f"two windows are named {block.name!r}", ""
        seen.add(block.name)
        try:
            parse(block.schedule)
        except ValueError as error:
            hint = "for instance 0 9 * * 1-5"
            yield (*at, "schedule"), "invalid-schedule", str(error), hint
        try:
            zone_of(block.time_zone)
        except ValueError as error:
            yield (*at, "timeZone"), "unknown-time-zone", str(error), "for instance Europe/Berlin"
        if not 60_000 <= block.duration <= LONGEST_WINDOW_MS:
            yield (*at, "duration"), "invalid-value", "must be from 1m to 744h (31 days)", ""

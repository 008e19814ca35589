"""A plan that was looked at, kept in a file: `plan --out FILE`, then `apply FILE`.

It names the committed revision and everything that would be written. `apply` makes the same
look again and goes on only if nothing has moved. Secrets stand in it masked, as everywhere.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stoker.errors import Stalled
from stoker.model.change import Action, ChangeSet
from stoker.model.codec import digest
from stoker.model.plan import Plan
from stoker.objects.names import API_VERSION
from stoker.report import decision_digest

__all__ = ["PlanFile", "moved", "plan_file_of", "read_plan_file", "write_plan_file"]

KIND = "PlanFile"


@dataclass(frozen=True, slots=True)
class PlanFile:
    """What was decided and what would be written. `digest` covers everything else."""

    fleet: str
    fleet_path: str
    fleet_id: str
    revision: str
    """The commit, 40 or 64 hex digits."""
    lines: tuple[str, ...]
    """Decisions and changes, a line each: what a person reads when they have moved."""

    @property
    def digest(self) -> str:
        """64 hex digits; equal for equal plans."""
        return digest(asdict(self))


def plan_file_of(
    changes: ChangeSet, plan: Plan, *, fleet: str, fleet_path: str, fleet_id: str, revision: str
) -> PlanFile:
    """Everything that applying would write, without instants and estimates."""
    lines = (f"decisions {decision_digest(plan)}", *_lines(changes))
    return PlanFile(fleet, fleet_path, fleet_id, revision, lines)


def _lines(changes: ChangeSet) -> Iterator[str]:
    for unit in changes.units:
        for change in unit.changes:
            if change.action is Action.UNCHANGED:
                continue
            takes = f" for {change.replaces.name}" if change.replaces is not None else ""
            why = f" [{change.code}]" if change.code else ""
            yield f"{change.action} {change.ref}{takes}{why}"
            for field in change.fields:
                before, after = (json.dumps(v, default=str) for v in (field.before, field.after))
                yield f"  {field.path}: {before} -> {after}"
            if change.action is Action.CREATE and change.manifest is not None:
                yield f"  content {change.manifest.digest}"
        yield from (f"retire {unit.unit} {r.name}" for r in unit.retirements)


def write_plan_file(path: Path, plan: PlanFile) -> None:
    """Write it; raises Stalled when the file cannot be written."""
    data = {"apiVersion": API_VERSION, "kind": KIND, **asdict(plan), "digest": plan.digest}
    try:
        path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise Stalled(f"{path}: {error.strerror}", code="plan-file-unwritable") from error


def read_plan_file(path: Path) -> PlanFile | None:
    """The plan of a file; None when it is none, Stalled when somebody has changed it."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(data, dict) or data.get("kind") != KIND:
        return None
    try:
        plan = PlanFile(
            fleet=str(data["fleet"]),
            fleet_path=str(data["fleet_path"]),
            fleet_id=str(data["fleet_id"]),
            revision=str(data["revision"]),
            lines=tuple(str(line) for line in data["lines"]),
        )
    except (KeyError, TypeError) as error:
        raise _damaged(path) from error
    if data.get("digest") != plan.digest:
        raise _damaged(path)
    return plan


def _damaged(path: Path) -> Stalled:
    return Stalled(
        f"{path} is not as `stoker plan --out` wrote it",
        code="plan-file-damaged",
        hint="make it anew",
    )


def moved(planned: PlanFile, now: PlanFile) -> tuple[str, ...]:
    """What has moved since, as lines of a diff; empty when the plan still holds."""
    if planned.digest == now.digest:
        return ()
    found = difflib.unified_diff(planned.lines, now.lines, "planned", "now", lineterm="", n=0)
    lines = tuple(line for line in found if not line.startswith(("---", "+++", "@@")))
    return lines or (
        f"-fleet {planned.fleet} {planned.fleet_id}",
        f"+fleet {now.fleet} {now.fleet_id}",
    )

"""A ChangeSet for programs and patches: unified, names and JSON; pure. Text is print_diff's.

Everything printed went through objects.masks, in the diff stage or here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from stoker.cli.narrow import body_of, replaced_name
from stoker.cli.style import one_line
from stoker.errors import Finding
from stoker.model.change import Action, Change, ChangeSet, FieldChange
from stoker.model.fleet import Desired
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.objects.known_secrets import KnownSecrets, known_secrets
from stoker.objects.masks import masked

__all__ = ["diff_json", "diff_names", "diff_unified", "secrets_of"]


# --------------------------------------------------------------- unified and names
def diff_unified(changes: ChangeSet, secrets: KnownSecrets | None = None) -> str:
    """One `---`/`+++` block an object: new ones whole, changed ones field by field.

    `secrets` are those of the whole fleet; without them, those of these changes.
    """
    lines: list[str] = []
    known = secrets_of(changes) if secrets is None else secrets
    for change in _written(changes):
        old = change.replaces or change.ref
        created = change.action is Action.CREATE and change.replaces is None
        before = "/dev/null" if created else f"live/{_path(old)}"
        after = "/dev/null" if change.action is Action.DELETE else f"git/{_path(change.ref)}"
        lines += [f"--- {before}", f"+++ {after}"]
        lines += _whole(change, known) if created else _hunks(change.fields)
    return "\n".join(lines) + ("\n" if lines else "")


def _path(ref: ObjectRef) -> str:
    return ref.key.lstrip("/")


def _written(changes: ChangeSet) -> Iterator[Change]:
    written = {Action.CREATE, Action.CHANGE, Action.RECREATE, Action.DELETE}
    return (c for unit in changes.units for c in unit.changes if c.action in written)


def secrets_of(changes: ChangeSet) -> KnownSecrets:
    """The values of every Secret that the ChangeSet is about."""
    return known_secrets(body_of(c) for unit in changes.units for c in unit.changes)


def _whole(change: Change, secrets: KnownSecrets) -> list[str]:
    import yaml

    body = secrets.hide(masked(change.ref.kind, (), body_of(change)))
    text = yaml.dump(body, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return [f"+{line}" for line in text.splitlines()]


def _hunks(fields: Iterable[FieldChange]) -> list[str]:
    lines = []
    for field in fields:
        lines.append(f"@@ {one_line(field.path)} @@")
        if field.before is not None:
            lines.append(f"-{json.dumps(field.before, sort_keys=True, default=str)}")
        if field.after is not None:
            lines.append(f"+{json.dumps(field.after, sort_keys=True, default=str)}")
    return lines


def diff_names(changes: ChangeSet) -> str:
    """`ACTION KIND/NAMESPACE/NAME` a line, for scripts; nothing for what stays."""
    lines = []
    for unit in changes.units:
        for change in unit.changes:
            if change.action is not Action.UNCHANGED:
                action = "replace" if change.replaces is not None else str(change.action)
                place = f"{change.ref.namespace}/" if change.ref.namespace else ""
                lines.append(f"{action} {change.ref.kind}/{place}{change.ref.name}")
        lines += [f"retire Deployment/{unit.unit.namespace}/{r.name}" for r in unit.retirements]
    return "".join(f"{line}\n" for line in lines)


# ---------------------------------------------------------------------------- JSON
def diff_json(changes: ChangeSet, desired: Desired, last: dict[str, Any]) -> dict[str, Any]:
    """The versioned JSON form: `stoker schema Diff` describes it."""
    units = []
    for unit in changes.units:
        objects = [
            _object(change)
            for change in unit.changes
            if change.action is not Action.UNCHANGED or change.left_to_others or change.code
        ]
        retiring = [
            {"name": r.name, "stage": str(r.stage), "reason": r.reason} for r in unit.retirements
        ]
        findings = [_finding(f) for f in unit.findings]
        if objects or retiring or findings:
            units.append(
                {
                    "unit": str(unit.unit),
                    "objects": objects,
                    "retiring": retiring,
                    "findings": findings,
                }
            )
    return {
        "apiVersion": f"{names.GROUP}/{names.VERSION}",
        "kind": "Diff",
        "fleet": desired.fleet.name,
        "revision": str(desired.revision),
        "units": units,
        "pruneHold": changes.prune_hold,
        "summary": {_camel(name): count for name, count in last.items()},
    }


def _object(change: Change) -> dict[str, Any]:
    return {
        "action": "replace" if change.replaces is not None else str(change.action),
        "kind": change.ref.kind,
        "apiVersion": change.ref.api_version,
        "namespace": change.ref.namespace,
        "name": change.ref.name,
        "impact": str(change.impact),
        **({"code": change.code} if change.code else {}),
        **({"note": change.note} if change.note else {}),
        **({"replaces": replaced_name(change)} if change.replaces is not None else {}),
        "fields": [{"path": f.path, "before": f.before, "after": f.after} for f in change.fields],
        "leftToOthers": [{"path": path, "owner": owner} for path, owner in change.left_to_others],
        "heldBack": list(change.held_back),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "message": finding.message,
        "path": finding.location.path,
        "line": finding.location.line,
        "column": finding.location.column,
    }


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)

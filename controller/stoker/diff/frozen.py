"""Keeps a live pod template as it is while its rev stands (design section 4).

A payload, the live object and our manager come in; the payload with the live template goes
out, and what Git wants otherwise as `held_back`. Labels, injected defaults or a new Stoker
never restart a pod; what somebody else took or deleted is put back. Called by verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker.diff.adopted_template import came_with, is_adopted_workload, under_its_selector
from stoker.model.live import LiveObject
from stoker.model.manifest import Manifest
from stoker.model.workload import LWS_KIND
from stoker.objects import names
from stoker.objects.compare import compare, dotted, live_has_more
from stoker.objects.conflicts import rivals_of
from stoker.objects.fieldset import FieldSet, fieldset_from_manifest
from stoker.objects.fieldset_trees import Tree, members, tree_from_paths
from stoker.objects.kinds import pod_template_paths
from stoker.objects.owned import our_fields, owned, projected
from stoker.objects.schema_table import ListSchema
from stoker.objects.ssa_merge import merge

__all__ = ["Frozen", "freeze"]

_METADATA = (("f:metadata", "f:labels"), ("f:metadata", "f:annotations"))

_SELECTING = frozenset(
    f"f:{label}"
    for label in (
        names.FLEET_LABEL,
        names.PLACEMENT_LABEL,
        names.SERVICE_LABEL,
        names.TRAFFIC_LABEL,
    )
)
"""Labels of every template version there ever was: where one is missing, it was removed."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """The payload to send, and the paths of its template that wait for the next rev."""

    payload: dict[str, Any] = field(hash=False)
    held_back: tuple[str, ...] = ()


def freeze(
    manifest: Manifest, payload: dict[str, Any], live: LiveObject, manager: str, schema: ListSchema
) -> Frozen:
    """Re-send the live template while the live rev equals the rendered one.

    Equal revs mean that the template was applied with the same fields and values, labels,
    annotations and the decided place aside. So a field of it that is no longer in our entry
    was taken or deleted by somebody and is sent again; a label or annotation that nobody
    owns is new in Git and waits.
    """
    if is_adopted_workload(manifest):
        kept = came_with(payload, live, manager, schema)
        if kept is not None:
            return Frozen(*kept)
        payload = under_its_selector(payload, live)
    if not manifest.frozen_template or _rev(payload) != _rev(live.body) or not _rev(payload):
        return Frozen(payload)
    ours = our_fields(live.body, manager)
    key = _frozen_key(payload)
    standing = (owned(live.body, manager).get("spec") or {}).get(key)
    if not standing:
        return Frozen(payload)  # none of it is ours yet
    rendered = _below_template(fieldset_from_manifest(payload, schema), key)
    here = _below_template(ours, key)
    missing = rendered.difference(here)
    labels = _label_paths(payload)
    held = {path for path in missing.elements() if _is_new(path, labels, live, manager)}
    back = tree_from_paths(path for path in missing.elements() if path not in held)
    template = _with(key, standing, payload, back, schema)
    held |= set(here.difference(rendered).elements())
    held |= _differing(key, payload, live, here, schema)
    frozen = {**payload, "spec": {**payload["spec"], key: template}}
    return Frozen(frozen, tuple(sorted(dotted(path) for path in held)))


def _rev(body: dict[str, Any]) -> str:
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(names.REV, ""))


def _frozen_key(payload: dict[str, Any]) -> str:
    """What of the spec is kept: the pod template, or all that the pods of a group are made of."""
    return "leaderWorkerTemplate" if payload.get("kind") == LWS_KIND else "template"


def _label_paths(payload: dict[str, Any]) -> set[tuple[str, ...]]:
    """Where labels and annotations of pods stand."""
    group = str(payload.get("apiVersion", "")).rpartition("/")[0]
    templates = pod_template_paths(group, str(payload.get("kind", "")))
    return {(*(f"f:{key}" for key in path), *below) for path in templates for below in _METADATA}


def _below_template(fields: FieldSet, key: str) -> FieldSet:
    template = fields.tree["f:spec"][f"f:{key}"]
    return FieldSet({"f:spec": {f"f:{key}": template}})


def _is_new(
    path: tuple[str, ...], labels: set[tuple[str, ...]], live: LiveObject, manager: str
) -> bool:
    """Whether a field outside our entry is new in Git, rather than taken from us."""
    if path[:-1] not in labels or path[-1] in _SELECTING:
        return False
    return not any(path in rival.fields for rival in rivals_of(live.body, manager))


def _with(
    key: str, standing: dict[str, Any], payload: dict[str, Any], back: Tree, schema: ListSchema
) -> dict[str, Any]:
    """The live template with fields of the rendered one laid over it."""
    if not back:
        return standing
    part = projected(payload, back, schema.root)
    laid: dict[str, Any] = merge({"spec": {key: standing}}, part, schema.root)
    template: dict[str, Any] = laid["spec"][key]
    return template


def _differing(
    key: str, payload: dict[str, Any], live: LiveObject, here: FieldSet, schema: ListSchema
) -> set[tuple[str, ...]]:
    """Fields of the template that are ours and that Git now gives another value.

    Whatever a webhook added to a list stays, and is nothing that waits: while the rev
    stands, Git has not taken it away.
    """
    template = {"spec": {key: payload["spec"][key]}}
    found = compare(template, live.body, schema)
    written = set(members(found.written))
    added = {d.elements for d in found.differences if live_has_more(d)}
    held = {path for path in written if path in here and path not in added}
    held |= {d.elements for d in found.differences if d.elements[-1] == "f:(order)"}
    return held

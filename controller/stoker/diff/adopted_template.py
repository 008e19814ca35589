"""Keeps the pod template and selector that a Deployment came with when a service adopts it.

The payload of the one Deployment of a service with `spec.adopt`, and the live object, come
in. While the rev of the adoption stands the live template is sent back, whatever Git
renders, so nothing restarts; a new rev replaces it, under the live selector and with every
label that Services may select by. Called by frozen.
"""

from __future__ import annotations

from typing import Any

from stoker.model.live import LiveObject
from stoker.model.manifest import Manifest
from stoker.objects import names
from stoker.objects.compare import compare, dotted
from stoker.objects.consent import consents_in_git
from stoker.objects.fieldset_trees import Tree, union
from stoker.objects.owned import Owner, our_fields, owners, projected
from stoker.objects.schema_table import ListSchema
from stoker.objects.takeover import gives_way

__all__ = ["came_with", "is_adopted_workload", "under_its_selector"]

_KEPT = "adopted"
"""Value of names.TEMPLATE."""


def is_adopted_workload(manifest: Manifest) -> bool:
    """Whether the manifest is the workload of a service with `spec.adopt`."""
    return manifest.frozen_template and consents_in_git(manifest.body).adopt


def came_with(
    payload: dict[str, Any], live: LiveObject, manager: str, schema: ListSchema
) -> tuple[dict[str, Any], tuple[str, ...]] | None:
    """The payload with the live template, and what Git renders otherwise.

    None once a template of ours stands, or is to. A rev that is not ours to say was left
    behind by a fleet that gave the Deployment up.
    """
    said = _annotations(live.body)
    stamped = ("f:metadata", "f:annotations", f"f:{names.REV}") in our_fields(live.body, manager)
    if stamped and (
        said.get(names.TEMPLATE) != _KEPT
        or said.get(names.REV) != _annotations(payload).get(names.REV)
    ):
        return None
    payload = _with_selector(payload, live)
    spec, metadata = payload["spec"], payload["metadata"]
    rendered = {"spec": {"template": spec["template"]}}
    found = compare(rendered, live.body, schema)
    held = tuple(sorted({dotted(difference.elements) for difference in found.differences}))
    tree: Tree = {}
    for owner in owners(live.body):
        if _speaks(owner, manager):
            tree = union(tree, _below(owner))
    template = projected(live.body, {"f:spec": tree}, schema.root)["spec"] if tree else {}
    kept = {key: value for key, value in spec.items() if key != "template"}
    annotations = {**(metadata.get("annotations") or {}), names.TEMPLATE: _KEPT}
    return {
        **payload,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**kept, **template},
    }, held


def under_its_selector(payload: dict[str, Any], live: LiveObject) -> dict[str, Any]:
    """The rendered template under the live selector, with the labels that pods have now."""
    payload = _with_selector(payload, live)
    standing = ((live.body.get("spec") or {}).get("template") or {}).get("metadata") or {}
    selected = ((live.body.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    template = payload["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = {**(standing.get("labels") or {}), **(metadata.get("labels") or {}), **selected}
    template = {**template, "metadata": {**metadata, "labels": labels}}
    return {**payload, "spec": {**payload["spec"], "template": template}}


def _with_selector(payload: dict[str, Any], live: LiveObject) -> dict[str, Any]:
    selector = (live.body.get("spec") or {}).get("selector")
    return {**payload, "spec": {**payload["spec"], "selector": selector}}


def _speaks(owner: Owner, manager: str) -> bool:
    """Whether the owner is ours or one whose place Git takes."""
    ours = owner.manager == manager and owner.is_apply
    return ours or (not owner.subresource and gives_way(owner.manager))


def _below(owner: Owner) -> Tree:
    """The owner's fields of the pod template, from spec on."""
    template = owner.fields.tree.get("f:spec", {}).get("f:template")
    return {} if template is None else {"f:template": template}


def _annotations(body: dict[str, Any]) -> dict[str, Any]:
    return (body.get("metadata") or {}).get("annotations") or {}

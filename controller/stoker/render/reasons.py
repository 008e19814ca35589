"""Every reason code of shape and render, each with one line for people.

The published, closed list: `stoker explain CODE` and docs/reasons.md print it. A test finds
each code that this folder uses in it, and nothing else.
"""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS: dict[str, str] = {
    "conflict-marker": "The file holds an unresolved merge conflict.",
    "engine-container-missing": "Exactly one Deployment must have a container called engine.",
    "invalid-encoding": "The file is not plain UTF-8 text.",
    "invalid-manifest": "What the file or template gives is no Kubernetes object.",
    "invalid-pod-template": "spec.podTemplate cannot be merged into the template's pod.",
    "invalid-yaml": "The file is no YAML that can be read.",
    "jail-unavailable": "The kernel lacks a part of the render jail, and the settings require it.",
    "lfs-pointer": "The file is a Git LFS pointer, not the content; LFS is not supported.",
    "not-decided": "Nothing was decided about this service, so nothing of it is changed.",
    "not-implemented-yet": "The design has this field, this version does not obey it yet.",
    "nothing-rendered": "The unit renders no object; nothing of it is changed or pruned.",
    "pool-not-found": "A placement names a pool that the Fleet file does not have.",
    "render-crashed": "The render process died on this unit; it is tried again later.",
    "render-timeout": "The unit takes too long to render; it is tried again later.",
    "render-too-large": "The unit needs more memory, or renders to more, than is allowed.",
    "render-unavailable": "Render processes do not start on this machine.",
    "template-error": "A template is wrong, or uses something that is not there.",
    "template-not-found": "Neither the fleet nor Stoker has a template of that name.",
}

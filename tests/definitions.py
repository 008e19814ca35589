"""Custom resource definitions of kinds that tests need and nothing more is known of."""

from __future__ import annotations

from typing import Any


def a_definition(
    group: str, version: str, kind: str, plural: str, scope: str = "Namespaced"
) -> dict[str, Any]:
    """A kind whose objects may hold anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }

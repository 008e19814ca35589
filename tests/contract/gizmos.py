"""The custom resource of the contract: every list type, a default, status and scale."""

from __future__ import annotations

GIZMO = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gizmos.stoker.dev"},
    "spec": {
        "group": "stoker.dev",
        "names": {"kind": "Gizmo", "plural": "gizmos"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "mode": {
                                        "type": "string",
                                        "default": "A",
                                        "enum": ["A", "B"],
                                    },
                                    "nothing": {"type": "integer", "nullable": True},
                                    "share": {"x-kubernetes-int-or-string": True},
                                    "plain": {"type": "array", "items": {"type": "string"}},
                                    "things": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"a": {"type": "string"}},
                                        },
                                    },
                                    "set": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "byname": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "name": {"type": "string"},
                                                "v": {"type": "string"},
                                            },
                                            "required": ["name"],
                                        },
                                    },
                                    "defaulted": {
                                        "type": "array",
                                        "default": ["x"],
                                        "items": {"type": "string"},
                                    },
                                    "map": {
                                        "type": "object",
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "any": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "selector": {"type": "string"},
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "type": {"type": "string"},
                                                "status": {"type": "string"},
                                            },
                                            "required": ["type"],
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}

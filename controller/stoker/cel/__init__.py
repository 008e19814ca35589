"""CEL expressions about Kubernetes objects: compiled with places, evaluated within bounds."""

from __future__ import annotations

from stoker.cel.evaluator import PACKAGE, Cel

__all__ = ["PACKAGE", "Cel"]

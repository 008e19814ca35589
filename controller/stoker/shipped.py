"""Finds the folders that ship beside the package: templates, overlays, policies, examples.

In a wheel they lie inside the package, in a checkout at its top. Called by render and cli.
"""

from __future__ import annotations

from pathlib import Path

from stoker.errors import Stalled

__all__ = ["NEWEST_TEMPLATE", "shipped_folder"]

NEWEST_TEMPLATE = "vllm/v2"
"""What `stoker init` renders a new fleet's services with. A file that names no template stays
with vllm/v1: a new default would restart every pod.
"""
_PACKAGE = Path(__file__).resolve().parent


def shipped_folder(kind: str, package: Path = _PACKAGE) -> Path:
    """The folder called `kind`; raises Stalled where the installation lacks it."""
    inside = package / "_shipped" / kind
    if inside.is_dir():
        return inside
    checkout = package.parent.parent
    beside = checkout / kind
    if (checkout / "pyproject.toml").is_file() and beside.is_dir():
        return beside
    raise Stalled(
        f"this installation of stoker has no {kind} folder",
        code="shipped-files-missing",
        hint="install the wheel again, or run from a whole checkout",
    )

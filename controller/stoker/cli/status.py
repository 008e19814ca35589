"""`stoker status`: what the fleet is, from the status branch."""

from __future__ import annotations

__all__ = ["status"]


def status() -> int:
    """Placeholder until the layout is there."""
    return 0

"""How fast a service moves, as the heading of its steps in `stoker plan` says it; pure."""

from __future__ import annotations

from stoker.model.fleet import ModelService
from stoker.source.durations import duration_text

__all__ = ["pace"]


def pace(service: ModelService | None, *, updating: bool) -> str:
    """How many moves there are at once, and where an update waits."""
    if service is None:
        return "disruption.maxConcurrentMoves 1"
    update = service.update
    most = update.max_concurrent if updating else None
    text = f"disruption.maxConcurrentMoves {service.max_concurrent_moves}"
    if most is not None:
        text = f"update.maxConcurrent {most}"
    if updating and update.pause.duration_ms:
        text += f"; pauses after step {update.pause.after_replicas} for "
        text += duration_text(update.pause.duration_ms)
    return text

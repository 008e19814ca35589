"""What earlier passes learned about the updates of one service; part of its history.

Revs are template hashes, commits whole ids; empty means not known. An entry that cannot be
read is an empty one: a pause then counts from what the pods say, and nothing is blocked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

__all__ = ["NO_UPDATE", "UpdateHistory", "update_history_from"]


@dataclass(frozen=True, slots=True)
class UpdateHistory:
    """`good_rev` was the last one of which all replicas were Ready, as of `good_commit`.

    `blocked_rev` failed beside an older one that served: nothing is bought of it until Git
    has another rev. `tried_rev` is the rev of the update under way, and `tried_since_ms`
    when as many of it as `update.pause` asks for were Ready; None for not yet.
    """

    good_rev: str = ""
    good_commit: str = ""
    blocked_rev: str = ""
    blocked_commit: str = ""
    blocked_why: str = ""
    tried_rev: str = ""
    tried_since_ms: int | None = None


NO_UPDATE = UpdateHistory()


def update_history_from(data: Any) -> UpdateHistory:
    """Read what `to_data` gave; raises ValueError for anything else."""
    known = {each.name for each in fields(UpdateHistory)}
    if not isinstance(data, dict) or not set(data) <= known:
        raise ValueError
    since_ms = data.get("tried_since_ms")
    if since_ms is not None and type(since_ms) is not int:
        raise ValueError
    if not all(isinstance(v, str) for k, v in data.items() if k != "tried_since_ms"):
        raise ValueError
    return UpdateHistory(**data)

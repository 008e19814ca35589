"""Whether the objects of a unit are ready for what depends on it: `dependsOn[].ready`.

In: the objects that the unit was last rendered to, the live view, the expression of the
file. Out: ready, not ready or unknown, with why. Unknown is neither: what depends on the
unit waits, and nothing is undone. Pure; called by holding for each dependency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stoker.model.expression import Expressions, Truth
from stoker.model.live import LiveView
from stoker.model.refs import ObjectRef
from stoker.objects.health import not_settled

__all__ = ["Readiness", "Ready", "readiness"]


class Ready(StrEnum):
    """Whether one may go on."""

    READY = "ready"
    NOT_READY = "not ready"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Readiness:
    """One answer. `message` says why not, and is empty when ready."""

    state: Ready
    message: str = ""


def readiness(
    members: Sequence[ObjectRef], live: LiveView, expression: str, expressions: Expressions
) -> Readiness:
    """Ask the expression about `objects`: the live objects of a unit, in the order given.

    An object that is absent, on its way out, or of a generation that its controller has not
    seen makes the unit not ready whatever the expression says: its status tells of something
    else, and `all` over a list that lacks it would hold. An expression that fails is unknown.
    """
    found: list[dict[str, Any]] = []
    for ref in members:
        why = live.why_unknown(ref)
        if why:
            return Readiness(Ready.UNKNOWN, f"whether {ref} is ready is not known: {why}")
        there = live.get(ref)
        if there is None:
            return Readiness(Ready.NOT_READY, f"{ref} does not exist")
        early = not_settled(there.body)
        if early is not None:
            return Readiness(Ready.NOT_READY, f"{ref}: {early.message}")
        found.append(there.body)
    answer = expressions.about_all(found).ask(expression)
    match answer.truth:
        case Truth.TRUE:
            return Readiness(Ready.READY)
        case Truth.FALSE:
            return Readiness(Ready.NOT_READY, f"it is not ready: {expression} is false")
        case Truth.ERROR:
            told = f"whether it is ready is not known: {answer.message} (asked: {expression})"
            return Readiness(Ready.UNKNOWN, told)

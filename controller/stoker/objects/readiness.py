"""Whether a live object is ready for what depends on it: `dependsOn[].ready`.

In: the object as the caches have it (None: known to be absent), the expression of the
file, the checks in force. Out: ready, not ready or unknown, with why. Unknown is neither:
what depends on the object waits, and nothing is undone. Pure; called for each dependency.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stoker.model.expression import Truth
from stoker.model.outcome import Health
from stoker.objects.health import health_of, not_settled
from stoker.objects.health_fields import mapping
from stoker.objects.health_rules import HealthRules

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


def readiness(manifest: dict[str, Any] | None, expression: str, rules: HealthRules) -> Readiness:
    """Judge one dependency: by its expression, or without one by its health.

    An object on its way out, or of a generation that its controller has not seen, is not
    ready whatever the expression says: its status tells of something else. An expression
    that fails is unknown, except while the object has no status at all.
    """
    if manifest is None:
        return Readiness(Ready.NOT_READY, "does not exist")
    early = not_settled(manifest)
    if early is not None:
        return Readiness(Ready.NOT_READY, early.message)
    if not expression:
        return _by_health(manifest, rules)
    answer = rules.expressions.about(manifest).ask(expression)
    match answer.truth:
        case Truth.TRUE:
            return Readiness(Ready.READY)
        case Truth.FALSE:
            return Readiness(Ready.NOT_READY, f"not yet: {expression}")
        case Truth.ERROR:
            if not mapping(manifest, "status") and not rules.expressions.missing:
                return Readiness(Ready.NOT_READY, "no status yet")
            return Readiness(Ready.UNKNOWN, f"{expression}: {answer.message}")


def _by_health(manifest: dict[str, Any], rules: HealthRules) -> Readiness:
    verdict = health_of(manifest, rules)
    told = f"{verdict.reason}: {verdict.message}" if verdict.message else verdict.reason
    match verdict.status:
        case Health.HEALTHY:
            return Readiness(Ready.READY)
        case Health.UNKNOWN:
            return Readiness(Ready.UNKNOWN, told)
        case _:
            return Readiness(Ready.NOT_READY, told)

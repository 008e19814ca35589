"""The verdict, and tolerant reading of live manifests: a field of the wrong type is absent.

Used by the rules of health; a custom resource may hold anything below `status`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker.model.outcome import Health

__all__ = [
    "HealthVerdict",
    "condition",
    "degraded",
    "healthy",
    "integer",
    "items",
    "mapping",
    "progressing",
    "text",
]


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """How an object is. `reason` is one CamelCase word, `message` may be empty.

    `by` is the health file that says so, empty for the built-in rules.
    """

    status: Health
    reason: str
    message: str = ""
    by: str = ""


def healthy(reason: str = "Healthy", message: str = "") -> HealthVerdict:
    """As it should be."""
    return HealthVerdict(Health.HEALTHY, reason, message)


def progressing(reason: str, message: str = "") -> HealthVerdict:
    """On its way, nothing known to be wrong."""
    return HealthVerdict(Health.PROGRESSING, reason, message)


def degraded(reason: str, message: str = "") -> HealthVerdict:
    """Wrong, and will not get better by waiting alone."""
    return HealthVerdict(Health.DEGRADED, reason, message)


def mapping(parent: dict[str, Any], key: str) -> dict[str, Any]:
    """The object below a key, or an empty one."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def items(parent: dict[str, Any], key: str) -> tuple[dict[str, Any], ...]:
    """The objects of a list below a key; other entries are left out."""
    value = parent.get(key)
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, dict))


def integer(parent: dict[str, Any], key: str, default: int) -> int:
    """A whole number below a key."""
    value = parent.get(key)
    return value if isinstance(value, int) else default


def text(parent: dict[str, Any], key: str, default: str = "") -> str:
    """A string below a key; an empty one counts as absent."""
    value = parent.get(key)
    return value if isinstance(value, str) and value else default


def condition(manifest: dict[str, Any], kind: str) -> dict[str, Any]:
    """The condition of that type in status.conditions, or an empty object."""
    conditions = items(mapping(manifest, "status"), "conditions")
    return next((entry for entry in conditions if entry.get("type") == kind), {})

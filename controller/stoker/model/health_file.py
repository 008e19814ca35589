"""One check of a health file: how to tell the state of the objects of one kind.

Made by source from policies/health/*.yaml (the fleet's and the shipped ones), used by
objects.health_rules.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HealthCheck"]


@dataclass(frozen=True, slots=True, order=True)
class HealthCheck:
    """What the files say of one kind, whatever its version. Empty expressions are absent.

    `path` names the file to people. `problem` says why the check cannot be used; then its
    objects are Unknown, for another rule might call well what this one would not.
    """

    group: str
    kind: str
    path: str
    current: str = ""
    in_progress: str = ""
    failed: str = ""
    suspended: str = ""
    message: str = ""
    problem: str = ""

"""A fault of a unit's file that only shows where several fields are read together."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.errors import Severity
from stoker.source.places import Field

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a field that only shows beside others. A warning leaves the unit usable."""

    field: Field
    code: str
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR

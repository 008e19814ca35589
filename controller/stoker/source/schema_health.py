"""The health file: its schema. health_files.py reads it and compiles its expressions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stoker.source.schema import ApiVersion, Line, Strict

__all__ = ["EXPRESSIONS", "HealthPolicyFile"]

EXPRESSIONS = ("current", "inProgress", "failed", "suspended", "message")
"""The fields of a check that hold CEL."""


class HealthMetadata(Strict):
    """How the file is called."""

    name: Line
    """Any name; people see the path of the file."""


class CheckBlock(Strict):
    """How to tell the state of the objects of one kind: an entry of Flux's healthCheckExprs."""

    api_version: Line
    """Group and version, as in a manifest; the version makes no difference."""
    kind: Line
    """The kind."""
    current: str
    """CEL: true when the object is as it should be."""
    in_progress: str = ""
    """CEL: true while the object is on its way; asked first."""
    failed: str = ""
    """CEL: true when waiting alone will not help; asked after inProgress."""
    suspended: str = ""
    """CEL: true when somebody paused it on purpose; asked after failed."""
    message: str = ""
    """CEL that comes to text: what to tell people while the object is not current."""


class HealthSpec(Strict):
    """What the file says."""

    checks: Annotated[list[CheckBlock], Field(min_length=1)]
    """One entry a kind."""


class HealthPolicyFile(Strict):
    """How to read the status of custom kinds, in CEL; stands in policies/health/."""

    api_version: ApiVersion
    """Always stoker.dev/v1alpha1."""
    kind: Literal["HealthPolicy"]
    """Always HealthPolicy."""
    metadata: HealthMetadata
    """How the file is called."""
    spec: HealthSpec
    """What the file says."""

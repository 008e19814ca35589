"""The log profile file: its schema. log_profiles.py reads it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stoker.source.schema import ApiVersion, Line, Strict

__all__ = ["LogProfileFile", "MarkBlock", "ProfileBlock"]


def _version(written: str) -> str:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", written):
        message = "a version is whole numbers with dots, like 0.28"
        raise ValueError(message)
    return written


Version = Annotated[str, AfterValidator(_version)]
"""`0.28`, without a v."""
Words = Annotated[str, Field(min_length=1, max_length=200)]
"""A part of a line."""


class LogMetadata(Strict):
    """How the file is called."""

    name: Line
    """Any name; people see the path of the file."""


class MarkBlock(Strict):
    """A milestone, and the lines that tell it."""

    milestone: Literal[
        "Imported",
        "Configured",
        "Loading",
        "Downloaded",
        "Loaded",
        "Compiled",
        "Captured",
        "Serving",
    ]
    """A milestone that only the log tells, of objects.start_phases."""
    texts: Annotated[list[Words], Field(min_length=1)]
    """A line that holds any of these tells it."""
    last: bool = False
    """Whether the last such line counts, not the first."""


class ProfileBlock(Strict):
    """One range of versions."""

    since: Version
    """The first version."""
    before: Version = ""
    """The first version that it no longer holds for; absent: none."""
    marks: Annotated[list[MarkBlock], Field(min_length=1)]
    """Its milestones."""


class LogSpec(Strict):
    """What the file says."""

    engine: Line
    """The engine's name."""
    images: Annotated[list[Words], Field(min_length=1)]
    """Parts of image names that tell the engine."""
    version_after: Annotated[list[Words], Field(min_length=1)]
    """What stands before the version in the log."""
    profiles: Annotated[list[ProfileBlock], Field(min_length=1)]
    """Ranges of versions; the first that holds is used."""


class LogProfileFile(Strict):
    """How the log of an engine tells the phases of a start; stands in policies/logs/."""

    api_version: ApiVersion
    """Always stoker.dev/v1alpha1."""
    kind: Literal["LogProfile"]
    """Always LogProfile."""
    metadata: LogMetadata
    """How the file is called."""
    spec: LogSpec
    """What the file says."""

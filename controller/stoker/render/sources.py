"""Template and manifest texts by name, as jobs carry them and children get them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.model.codec import digest

__all__ = ["TEMPLATE_NAME", "Source", "SourceSet", "source_set"]

TEMPLATE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
"""Names reach generated code (CVE-2024-56201), so they are plain paths and nothing else."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file. `oid` identifies the text, `path` is what errors show."""

    oid: str
    path: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SourceSet:
    """Files by the name that templates know them by. Equal keys mean equal sets."""

    key: str
    named: Mapping[str, Source] = field(hash=False, compare=False)


def source_set(named: Mapping[str, Source]) -> SourceSet:
    """A set with its key: a hash of names, paths and object ids."""
    rows = sorted((name, source.path, source.oid) for name, source in named.items())
    return SourceSet(digest(rows), named)

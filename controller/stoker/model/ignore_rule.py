"""A rule of `Fleet.spec.ignore`: made by source, obeyed by diff and apply, checked by check."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IgnoreRule"]


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Fields of objects that are somebody else's to write. Empty parts of a target fit all.

    `paths` are JSON pointers, sorted; selectors are spelled as kubectl's -l.
    """

    paths: tuple[str, ...]
    kind: str = ""
    name: str = ""
    namespace: str = ""
    label_selector: str = ""
    annotation_selector: str = ""

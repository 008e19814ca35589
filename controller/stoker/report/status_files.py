"""Reads files of a status branch, which whoever may push to it can have written.

In: the bytes of one file. Out: its mapping, or None for one that is not read: then what it
said is unknown. Called by previous and by the command line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from stoker.report.plain_yaml_read import MAX_DEPTH, PlainReader

__all__ = ["MAX_FILE_BYTES", "StatusFile", "StatusReader"]

MAX_FILE_BYTES = 1_048_576
"""A longer file on the status branch is not ours and is not read."""
MAX_NODES = 100_000
"""As of fleet files; the longest file we write holds a tenth."""
MAX_OPEN_BRACKETS = 1000
"""Above it the scanner's own work grows with the square, before it hands out one event."""
MAX_PLAIN_CHARACTERS = 4096
"""Of a text without quotes: YAML takes `1:1:1:…` for one number, in the square of its length."""

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader, in C where PyYAML was built with it."""
_BRACKET = re.compile(rb"[\[\]{}]")


@dataclass(frozen=True, slots=True)
class StatusFile:
    """What a file holds. `edited` says that it is not as we write it, and may hold any type."""

    data: dict[str, Any]
    edited: bool


class StatusReader:
    """Reads files one after the other; equal lines of what we wrote share their values."""

    def __init__(self) -> None:
        self._plain = PlainReader()

    def read(self, content: bytes) -> StatusFile | None:
        """The mapping in a file; None for no mapping, and over the limits of size and depth.

        Anchors and tags are over the limits too: we write none, and a few of them hold a lot.
        """
        if not content or len(content) > MAX_FILE_BYTES:
            return None
        if (plain := self._plain.read(content)) is not None:
            return StatusFile(plain, edited=False)
        try:
            data = yaml.load(content, Loader=_LOADER) if _is_bounded(content) else None  # noqa: S506 - a safe loader
        except (yaml.YAMLError, ValueError, RecursionError):
            return None
        return StatusFile(data, edited=True) if isinstance(data, dict) else None


def _is_bounded(content: bytes) -> bool:
    """Whether a YAML reader may be let loose on it; raises what a broken file makes it raise."""
    opened = 0
    for found in _BRACKET.finditer(content):
        opened = opened + 1 if found[0] in b"[{" else max(0, opened - 1)
        if opened > MAX_OPEN_BRACKETS:
            return False
    loader = _LOADER(content)
    try:
        return _are_bounded(loader)
    finally:
        loader.dispose()


def _are_bounded(loader: Any) -> bool:
    depth = nodes = 0
    while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.NodeEvent):
            nodes += 1
            depth += isinstance(event, yaml.CollectionStartEvent)
            if depth > MAX_DEPTH or nodes > MAX_NODES or not _is_simple(event):
                return False
    return True


def _is_simple(event: Any) -> bool:
    if event.anchor is not None or isinstance(event, yaml.AliasEvent) or event.tag is not None:
        return False
    plain = isinstance(event, yaml.ScalarEvent) and event.implicit[0]
    return not plain or len(event.value) <= MAX_PLAIN_CHARACTERS

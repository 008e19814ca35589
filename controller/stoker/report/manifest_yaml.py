"""Writes manifests as people write them: block style, long texts as literal blocks.

In: one manifest as plain JSON values. Out: YAML text that kubectl and `stoker` read back as
the same values; keys stay in the order given. Called by the command line for `import`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stoker.report.plain_yaml import plain_text

__all__ = ["manifest_text"]


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """One document, ended by a newline."""
    lines: list[str] = []
    _map(manifest, "", lines, "")
    return "\n".join(lines) + "\n"


def _map(value: Mapping[str, Any], indent: str, lines: list[str], first: str) -> None:
    """The fields of a map; `first` stands before the first of them instead of the indent."""
    start = first or indent
    for key, item in value.items():
        _item(item, f"{start}{plain_text(str(key))}:", indent, lines)
        start = indent


def _item(value: Any, head: str, indent: str, lines: list[str]) -> None:
    """A value behind `head`: on its line, or below it."""
    if isinstance(value, Mapping) and value:
        lines.append(head)
        _map(value, indent + "  ", lines, "")
    elif isinstance(value, list) and value:
        lines.append(head)
        _list(value, indent, lines)
    elif isinstance(value, str) and _fits_a_block(value):
        mark = "|" if value.endswith("\n") else "|-"
        lines.append(f"{head} {mark}")
        body = value.removesuffix("\n")
        lines += [f"{indent}  {line}" if line else "" for line in body.split("\n")]
    else:
        lines.append(f"{head} {_scalar(value)}")


def _list(values: list[Any], indent: str, lines: list[str]) -> None:
    for item in values:
        if isinstance(item, Mapping) and item:
            _map(item, indent + "  ", lines, f"{indent}- ")
        elif isinstance(item, list) and item:
            lines.append(f"{indent}-")
            _list(item, indent + "  ", lines)
        else:
            _item(item, f"{indent}-", indent, lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, Mapping | list):
        return "{}" if isinstance(value, Mapping) else "[]"
    return json.dumps(value)


def _fits_a_block(text: str) -> bool:
    """Whether a literal block gives the text back as it is: one newline at most at its end."""
    lines = text.split("\n")
    if len(lines) < 2 or text.endswith("\n\n") or not lines[0].strip():
        return False
    return not lines[0].startswith((" ", "\t")) and all(
        line.isprintable() or line.replace("\t", "").isprintable() for line in lines
    )

"""Read back what plain_yaml writes: the same data as a YAML reader, in a tenth of its time.

In: the bytes of a status file. Out: its mapping, or None where a line is not as we write it
(then a YAML reader has to look). Equal lines of many files, such as conditions that changed
in the same second, share one value: what comes out must not be changed. Called by previous.
"""

from __future__ import annotations

import re
from typing import Any

from stoker.model.parsing import parsed_json
from stoker.report.plain_yaml import PLAIN, UNPRINTABLE, plain_text

__all__ = ["MAX_DEPTH", "PlainReader"]

MAX_DEPTH = 100
"""Levels of indent that are read; we write a handful."""

_ATOM = rf'(?:"(?:[^"\\]|\\.)*"|{PLAIN.pattern}|-[0-9]+)'
"""A text with or without quotes, a number or a word."""
_ENTRY = re.compile(rf"({_ATOM}):(?: (.+))?", re.ASCII)
_SCALAR = re.compile(_ATOM, re.ASCII)
_PAIR = re.compile(rf"({_ATOM}): ({_ATOM})", re.ASCII)
_FLOW_MAPPING = re.compile(rf"\{{(?:{_ATOM}: {_ATOM}(?:, {_ATOM}: {_ATOM})*)?\}}", re.ASCII)
_FLOW_LIST = re.compile(rf"\[(?:{_ATOM}(?:, {_ATOM})*)?\]", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]", re.ASCII)
"""JSON joins two of them to one character, YAML does not; we write none."""
_WORDS: dict[str, bool | None] = {"null": None, "true": True, "false": False}
_LONGEST_KEY = 1000
"""YAML takes no longer text for a key (1,024 characters)."""


class _NotPlainError(Exception):
    """A line that is not as plain_yaml writes it."""


class PlainReader:
    """Reads files one after the other and remembers the values of their lines."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._lines: list[str] = []

    def read(self, content: bytes) -> dict[str, Any] | None:
        """The mapping in a file that `dump` wrote; None for one that it cannot have written."""
        try:
            text = content.decode()
            self._lines = text.split("\n")
            if self._lines.pop() or UNPRINTABLE.search(text):
                return None
            data, end = self._block(0, "")
        except (_NotPlainError, ValueError, RecursionError):
            return None
        return data if end == len(self._lines) and data else None

    def _block(self, at: int, indent: str) -> tuple[dict[str, Any], int]:
        """The mapping whose keys stand behind that indent, and the line after it."""
        data: dict[str, Any] = {}
        lines, column = self._lines, len(indent)
        while at < len(lines) and lines[at].startswith(indent):
            entry = _ENTRY.fullmatch(lines[at], column)
            if entry is None:
                raise _NotPlainError
            key, value = self._scalar(entry[1]), entry[2]
            if not isinstance(key, str) or len(key) > _LONGEST_KEY:
                raise _NotPlainError
            if value is not None:
                data[key], at = self._value(value), at + 1
            else:
                data[key], at = self._below(at + 1, indent)
        return data, at

    def _below(self, at: int, indent: str) -> tuple[Any, int]:
        """What a key without a value on its line holds: a list beside it or a mapping below."""
        if len(indent) >= 2 * (MAX_DEPTH - 1):
            raise _NotPlainError
        following = self._lines[at] if at < len(self._lines) else ""
        if following.startswith(f"{indent}-"):
            return self._list(at, indent)
        if following.startswith(f"{indent}  "):
            return self._block(at, f"{indent}  ")
        raise _NotPlainError

    def _list(self, at: int, indent: str) -> tuple[list[Any], int]:
        values: list[Any] = []
        lines, deeper = self._lines, f"{indent}  "
        while at < len(lines) and lines[at].startswith(f"{indent}-"):
            rest = lines[at][len(deeper) :]
            if lines[at] == f"{indent}-" and at + 1 < len(lines):
                value, at = self._below(at + 1, deeper)
                if not isinstance(value, list):
                    raise _NotPlainError
            elif not lines[at].startswith(f"{indent}- "):
                raise _NotPlainError
            elif _ENTRY.fullmatch(rest):
                lines[at] = f"{deeper}{rest}"
                value, at = self._block(at, deeper)
            else:
                value, at = self._value(rest), at + 1
            values.append(value)
        return values, at

    def _value(self, text: str) -> Any:
        """What stands on one line; the same object for the same text."""
        if text in self._values:
            return self._values[text]
        value: Any
        if _FLOW_MAPPING.fullmatch(text):
            value = {self._scalar(k): self._scalar(v) for k, v in _PAIR.findall(text)}
            if not all(isinstance(key, str) and len(key) <= _LONGEST_KEY for key in value):
                raise _NotPlainError
        elif _FLOW_LIST.fullmatch(text):
            value = [self._scalar(item) for item in _SCALAR.findall(text)]
        elif _SCALAR.fullmatch(text):
            value = self._scalar(text)
        else:
            raise _NotPlainError
        self._values[text] = value
        return value

    def _scalar(self, atom: str) -> str | int | bool | None:
        if atom.startswith('"'):
            if _SURROGATE.search(atom):
                raise _NotPlainError
            text = parsed_json(atom)
            assert isinstance(text, str)
            return text
        if atom in _WORDS:
            return _WORDS[atom]
        if _NUMBER.fullmatch(atom):
            return int(atom)
        if plain_text(atom) != atom:  # a reader takes it for a time, another number or a word
            raise _NotPlainError
        return atom

"""Manifest text to documents: the only YAML loader for manifests.

Text of one file comes in, one plain JSON value and its line come out per document. Built
on the parser's events, not on PyYAML's constructors: no tags, no recursion in C, depth and
alias budgets, duplicate keys refused. Runs in render children only (worker).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from stoker.errors import BadInput, Finding, SourceLocation
from stoker.render import scalars

__all__ = ["MAX_ALIASED_NODES", "MAX_DEPTH", "Document", "load_documents"]

MAX_DEPTH = 100
"""Nested maps and lists; manifests stay below 40 (OpenAPI schemas in CRDs are the deepest)."""
MAX_ALIASED_NODES = 100_000
"""Nodes that aliases may add when written out: nine levels of nine would be billions."""

_MERGE_KEY = "<<"
_NO_KEY = object()
_MERGE = object()

_SCALAR, _MAPPING, _SEQUENCE = yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent

_TAGS = {True: ("!", "tag:yaml.org,2002:map"), False: ("!", "tag:yaml.org,2002:seq")}

_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Only its event stream is used: libyaml's, thirty times faster, or PyYAML's own."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document that is not empty; `line` (from 1) is where its first value stands."""

    line: int
    value: Any


def load_documents(text: str, path: str) -> tuple[Document, ...]:
    """Read every document of a file, empty ones left out.

    Scalars mean what they mean to kubectl (see scalars). Raises BadInput with one
    `invalid-yaml` finding at the first thing that is wrong.
    """
    try:
        events = _event_source(text)
        return tuple(_Reader(events, path).documents())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "this is not YAML"
        if mark is None:
            raise _bad(path, 0, 0, what) from error
        raise _bad(path, mark.line + 1, mark.column + 1, what) from error
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode(errors="ignore")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        raise _bad(path, line, column, f"{error.reason} (#x{_code(error):04x})") from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise _bad(path, 0, 0, "this is not YAML") from error


def _event_source(text: str) -> Callable[[], Any]:
    parser = _PARSER(text.removeprefix("\ufeff"))
    get: Callable[[], Any] = parser.get_event
    return get


def _code(error: yaml.reader.ReaderError) -> int:
    character = error.character
    return character if isinstance(character, int) else ord(character)


def _bad(path: str, line: int, column: int, message: str, hint: str = "") -> BadInput:
    return BadInput(
        (Finding(SourceLocation(path, line, column), "invalid-yaml", message, hint=hint),)
    )


@dataclass(slots=True)
class _Frame:
    """An open map or list. `nodes` counts what it holds, aliases written out."""

    container: Any
    anchor: str | None
    is_map: bool
    key: Any = _NO_KEY
    nodes: int = 1
    merged: tuple[dict[str, Any], ...] = ()


def _is_placed(event: Any, frame: _Frame) -> bool:
    """Put a scalar where it belongs, if it is as nearly all are; else nothing has happened."""
    text: str = event.value
    if event.tag is not None:
        return False
    value: Any = text
    if event.implicit[0]:
        try:
            value = scalars.plain_value(text)
        except ValueError:
            return False
    if not frame.is_map:
        frame.container.append(value)
    elif frame.key is _NO_KEY:
        if type(value) is not str or value in frame.container or text == _MERGE_KEY:
            return False
        frame.key = value
    elif frame.key is _MERGE:
        return False
    else:
        frame.container[frame.key] = value
        frame.key = _NO_KEY
    frame.nodes += 1
    return True


class _Reader:
    def __init__(self, events: Callable[[], Any], path: str) -> None:
        self._next = events
        self._path = path
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._aliased = 0

    def documents(self) -> list[Document]:
        found: list[Document] = []
        line = 0
        while True:
            event = self._next()
            kind = type(event)
            if kind is yaml.StreamEndEvent:
                return found
            if kind is yaml.DocumentStartEvent:
                self._anchors = {}
                self._aliased = 0
            elif kind is not yaml.StreamStartEvent and kind is not yaml.DocumentEndEvent:
                line = event.start_mark.line + 1
                value = self._value(event)
                if value is not None:
                    found.append(Document(line, value))

    def _value(self, event: Any) -> Any:
        """Build one value from its first event on, with a stack of our own."""
        stack: list[_Frame] = []
        following = self._next
        while True:
            kind = type(event)
            nodes = 1
            if kind is _SCALAR:
                if stack and event.anchor is None and _is_placed(event, stack[-1]):
                    event = following()
                    continue
                value = self._scalar(event, stack)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (value, 1)
            elif kind is _MAPPING or kind is _SEQUENCE:
                self._open(event, stack, is_map=kind is _MAPPING)
                event = following()
                continue
            elif kind is yaml.AliasEvent:
                value, nodes = self._alias(event)
            else:
                frame = stack.pop()
                value = self._close(frame)
                nodes = frame.nodes
                if frame.anchor is not None:
                    self._anchors[frame.anchor] = (value, nodes)
            if not stack:
                return value
            self._place(event, stack[-1], value, nodes)
            event = following()

    def _open(self, event: Any, stack: list[_Frame], *, is_map: bool) -> None:
        if len(stack) >= MAX_DEPTH:
            raise self._error(event, f"more than {MAX_DEPTH} maps and lists inside each other")
        if event.tag is not None and event.tag not in _TAGS[is_map]:
            raise self._error(event, f"the tag {_spelled(event.tag)} has no place in a manifest")
        if event.anchor is not None:
            # An alias inside its own anchor must not find an older value of that name.
            self._anchors.pop(event.anchor, None)
        stack.append(_Frame({} if is_map else [], event.anchor, is_map))

    def _scalar(self, event: Any, stack: list[_Frame]) -> Any:
        text = event.value
        try:
            if event.tag is not None:
                return scalars.tagged_value(event.tag, text)
            if not event.implicit[0]:
                return text
            if text == _MERGE_KEY and stack and stack[-1].is_map and stack[-1].key is _NO_KEY:
                return _MERGE
            return scalars.plain_value(text)
        except LookupError:
            message = f"the tag {_spelled(event.tag)} has no place in a manifest"
        except ValueError:
            message = "this scalar has no JSON value"
            if event.tag is not None:
                message = f"this scalar is not a {_spelled(event.tag)}"
        raise self._error(event, message)

    def _alias(self, event: Any) -> tuple[Any, int]:
        if event.anchor not in self._anchors:
            raise self._error(event, "this alias names no anchor that is complete before it")
        value, nodes = self._anchors[event.anchor]
        self._aliased += nodes
        if self._aliased > MAX_ALIASED_NODES:
            raise self._error(event, f"aliases add more than {MAX_ALIASED_NODES} values")
        return value, nodes

    def _place(self, event: Any, frame: _Frame, value: Any, nodes: int) -> None:
        frame.nodes += nodes
        if not frame.is_map:
            frame.container.append(value)
            return
        if frame.key is _NO_KEY:
            frame.key = value if value is _MERGE else self._key(event, frame, value)
            return
        if frame.key is _MERGE:
            self._merge(event, frame, value)
        else:
            frame.container[frame.key] = value
        frame.key = _NO_KEY

    def _key(self, event: Any, frame: _Frame, value: Any) -> str:
        if isinstance(value, dict | list):
            raise self._error(event, "a map key must be a scalar")
        try:
            key = scalars.key_text(value)
        except ValueError:
            raise self._error(event, "a map key is empty or null") from None
        if key in frame.container:
            raise self._error(event, f"the key {key!r} stands twice in this map")
        return key

    def _merge(self, event: Any, frame: _Frame, value: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._error(event, "`<<` takes a map or a list of maps")
        frame.merged += tuple(sources)

    def _close(self, frame: _Frame) -> Any:
        if not frame.merged:
            return frame.container
        merged: dict[str, Any] = {}
        for source in reversed(frame.merged):
            merged.update(source)
        return merged | frame.container

    def _error(self, event: Any, message: str) -> BadInput:
        mark = event.start_mark
        return _bad(self._path, mark.line + 1, mark.column + 1, message)


def _spelled(tag: str | None) -> str:
    """Write a tag as people do: `!!binary` for the long form."""
    return str(tag).replace("tag:yaml.org,2002:", "!!")[:80]

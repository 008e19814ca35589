"""Strict YAML: bytes of one file in, values with the line and column of every field out.

Reads libyaml's events and builds values itself, so that depth, aliases, tags, duplicate
keys and ambiguous scalars are met before anything is expanded (a parser that recurses in C
can be crashed by 60 kB of brackets). Called for every fleet file and unit file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from stoker.errors import Finding, SourceLocation
from stoker.model.text_file import conflict_offset
from stoker.source.places import Field, dotted
from stoker.source.scalars import AMBIGUOUS, plain_value

__all__ = ["Document", "YamlFile", "read_yaml"]

MAX_DEPTH = 100
MAX_NODES = 100_000
"""Budget of a document after aliases are expanded: stops a billion laughs."""

MAX_OPEN_BRACKETS = 1000
"""Above it the scanner's own work grows with the square, before it hands out one event."""

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOMS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"\x00\x00\xfe\xff", "UTF-32"))
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BRACKET = re.compile(rb"[\[\]{}]")


@dataclass(frozen=True, slots=True)
class Document:
    """One document. `places` has every mapping key and list item; `bad` the disputed fields.

    Values may share parts (aliases): treat them as read-only. `texts` has where each text
    itself begins and its style (`|`, `>`, a quote, or empty), if that was asked for.
    """

    value: Any
    location: SourceLocation
    places: dict[Field, SourceLocation]
    findings: tuple[Finding, ...] = ()
    bad: tuple[Field, ...] = ()
    texts: dict[Field, tuple[SourceLocation, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The documents of a file; empty ones are left out.

    `broken` says why reading stopped: what follows, and what came before, is not to be
    trusted as the whole of the file.
    """

    documents: tuple[Document, ...] = ()
    broken: Finding | None = None


def read_yaml(path: str, data: bytes, *, texts: bool = False) -> YamlFile:
    """Read all documents of a file. Never raises: what is wrong comes as findings.

    `texts` asks for the places of texts too, which only files with expressions need.
    """
    problem = _unreadable(path, data)
    if problem is not None:
        return YamlFile(broken=problem)
    documents: list[Document] = []
    loader = _LOADER(data.removeprefix(b"\xef\xbb\xbf"))
    try:
        while not loader.check_event(yaml.StreamEndEvent):
            event = loader.get_event()
            if isinstance(event, yaml.DocumentStartEvent):
                document = _Composer(path, loader, keep_texts=texts).document()
                if document.value is not None or document.findings:
                    documents.append(document)
    except _Stop as stop:
        return YamlFile(tuple(documents), stop.finding)
    except yaml.YAMLError as error:
        return YamlFile(tuple(documents), _syntax(path, data, error))
    finally:
        loader.dispose()
    return YamlFile(tuple(documents))


class _Stop(Exception):
    """The rest of the file cannot be read safely."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(slots=True)
class _Anchor:
    """An anchored node; `nodes` is its expanded size, 0 while it is still being read."""

    value: Any = None
    nodes: int = 0


@dataclass(slots=True)
class _Composer:
    """Builds one document from events."""

    path: str
    loader: Any
    keep_texts: bool = False
    nodes: int = 0
    places: dict[Field, SourceLocation] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    bad: list[Field] = field(default_factory=list)
    anchors: dict[str, _Anchor] = field(default_factory=dict)
    texts: dict[Field, tuple[SourceLocation, str]] = field(default_factory=dict)

    def document(self) -> Document:
        """Read up to the end of the document whose start was just read."""
        first = self.loader.get_event()
        location = self.location(first)
        value = self.node(first, (), 1)
        self.loader.get_event()
        findings, bad = tuple(self.findings), tuple(self.bad)
        return Document(value, location, self.places, findings, bad, self.texts)

    def location(self, event: Any) -> SourceLocation:
        mark = event.start_mark
        return SourceLocation(self.path, mark.line + 1, mark.column + 1)

    def complain(self, event: Any, at: Field, code: str, message: str, hint: str = "") -> None:
        self.findings.append(Finding(self.location(event), code, message, dotted(at), hint))
        self.bad.append(at)

    def stop(self, event: Any, at: Field, code: str, message: str) -> _Stop:
        return _Stop(Finding(self.location(event), code, message, dotted(at)))

    def count(self, event: Any, at: Field, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise self.stop(
                event, at, "yaml-too-large", f"more than {MAX_NODES} values after aliases"
            )

    def node(self, event: Any, at: Field, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, at)
        before = self.nodes
        self.count(event, at, 1)
        anchor = _Anchor()
        if event.anchor is not None:
            self.anchors[event.anchor] = anchor
        if event.tag is not None and event.tag != "!":
            self.complain(event, at, "yaml-tag", f"the tag {event.tag!r} is not allowed")
        if isinstance(event, yaml.ScalarEvent):
            value = self.scalar(event, at)
        elif depth > MAX_DEPTH:
            raise self.stop(event, (), "yaml-too-deep", f"nested more than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self.sequence(at, depth)
        else:
            value = self.mapping(at, depth)
        anchor.value, anchor.nodes = value, self.nodes - before
        return value

    def alias(self, event: Any, at: Field) -> Any:
        anchor = self.anchors.get(event.anchor)
        if anchor is None:
            raise self.stop(event, at, "invalid-yaml", f"no anchor {event.anchor!r} before this")
        if not anchor.nodes:
            raise self.stop(event, at, "invalid-yaml", f"anchor {event.anchor!r} contains itself")
        self.count(event, at, anchor.nodes)
        return anchor.value

    def scalar(self, event: Any, at: Field) -> Any:
        text: str = event.value
        if self.keep_texts:
            self.texts[at] = (self.location(event), event.style or "")
        if not event.implicit[0]:
            return text
        value = plain_value(text)
        if value is AMBIGUOUS:
            self.complain(
                event,
                at,
                "ambiguous-scalar",
                f"readers of YAML disagree on what {text!r} is",
                hint=f'write "{text}" in quotes if it is text',
            )
            return text
        return value

    def sequence(self, at: Field, depth: int) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := self.loader.get_event(), yaml.SequenceEndEvent):
            here = (*at, len(values))
            self.places[here] = self.location(event)
            values.append(self.node(event, here, depth + 1))
        return values

    def mapping(self, at: Field, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := self.loader.get_event(), yaml.MappingEndEvent):
            key = self.key(event, at, depth)
            here = (*at, key)
            if key in values:
                first = self.places[here]
                self.complain(
                    event, here, "duplicate-key", f"given twice, first in line {first.line}"
                )
                self.node(self.loader.get_event(), here, depth + 1)
                continue
            self.places[here] = self.location(event)
            values[key] = self.node(self.loader.get_event(), here, depth + 1)
        return values

    def key(self, event: Any, at: Field, depth: int) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self.stop(event, at, "invalid-yaml", "a key must be text")
        self.count(event, at, 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchor(event.value, 1)
        text: str = event.value
        if event.tag is not None and event.tag != "!":
            self.complain(event, (*at, text), "yaml-tag", f"the tag {event.tag!r} is not allowed")
        elif event.implicit[0] and text == "<<":
            self.complain(
                event,
                (*at, text),
                "merge-key",
                "merge keys are not allowed",
                hint="write the fields out, or use defaults of the Fleet",
            )
        elif event.implicit[0] and not isinstance(plain_value(text), str):
            self.complain(
                event,
                (*at, text),
                "ambiguous-scalar",
                f"the key {text!r} is not text to every reader",
                hint=f'write "{text}" in quotes',
            )
        del depth
        return text


def _unreadable(path: str, data: bytes) -> Finding | None:
    """What stops us before any parser sees the bytes: encoding, control characters, markers."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            message = f"the file is {name}; UTF-8 is wanted"
            return Finding(SourceLocation(path, 1, 1), "invalid-encoding", message)
    found = _CONTROL.search(data)
    if found is not None:
        message = f"the control character 0x{data[found.start()]:02x} is not allowed"
        return Finding(_at(path, data, found.start()), "invalid-encoding", message)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        return Finding(_at(path, data, error.start), "invalid-encoding", message)
    conflict = conflict_offset(data)
    if conflict is not None:
        return Finding(
            _at(path, data, conflict),
            "conflict-marker",
            "an unresolved merge conflict",
            hint="resolve it and delete the marker lines",
        )
    return _bracketed(path, data)


def _bracketed(path: str, data: bytes) -> Finding | None:
    """Refuse absurd nesting, counted without regard to quotes: balanced text never adds up."""
    if data.count(b"[") + data.count(b"{") <= MAX_OPEN_BRACKETS:
        return None
    opened = 0
    for found in _BRACKET.finditer(data):
        opened = opened + 1 if found[0] in b"[{" else max(0, opened - 1)
        if opened > MAX_OPEN_BRACKETS:
            message = f"nested more than {MAX_DEPTH} levels"
            return Finding(_at(path, data, found.start()), "yaml-too-deep", message)
    return None


def _at(path: str, data: bytes, offset: int) -> SourceLocation:
    start = data.rfind(b"\n", 0, offset) + 1
    column = len(data[start:offset].decode("utf-8", "replace")) + 1
    return SourceLocation(path, data.count(b"\n", 0, offset) + 1, column)


def _syntax(path: str, data: bytes, error: yaml.YAMLError) -> Finding:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    message = f"{problem} {context}" if context else problem
    hint = ""
    location = SourceLocation(path, 1, 1)
    if mark is not None:
        location = SourceLocation(path, mark.line + 1, mark.column + 1)
        lines = data.splitlines()
        line = lines[mark.line] if mark.line < len(lines) else b""
        if b"\t" in line[: len(line) - len(line.lstrip())]:
            message, hint = "a tab indents this line", "indent with spaces"
    return Finding(location, "invalid-yaml", message, hint=hint)

"""The program of a render child: everything that reads repository text runs here.

Started by pool as `python -I`; goes to jail, says which parts hold, then answers one item
at a time until its input ends. It keeps nothing between items but compiled templates.
"""

from __future__ import annotations

import gc
import json
import os
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml

from stoker.errors import BadInput, Finding, SourceLocation
from stoker.render import frames
from stoker.render.documents import load_documents
from stoker.render.jail import JailLimits, allow_cpu, enter_jail
from stoker.render.jinja_env import StokerEnvironment, render_text
from stoker.render.sources import Source
from stoker.render.template_errors import finding_from, mask_values

__all__ = ["Tracked", "answer", "main", "source_sets"]

_INPUT = 0
_OUTPUT = 1
_TRACKED = ("decision", "placement")


class Tracked(dict[str, Any]):
    """Data that remembers whether a template looked at it."""

    looked_at = False

    def __getitem__(self, key: str) -> Any:
        self.looked_at = True
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:
        self.looked_at = True
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        """As dict.get."""
        self.looked_at = True
        return super().get(key, default)

    def items(self) -> Any:
        """As dict.items."""
        self.looked_at = True
        return super().items()

    def values(self) -> Any:
        """As dict.values."""
        self.looked_at = True
        return super().values()


def main() -> None:
    """Answer requests until the pool closes the pipe."""
    settings = json.loads(sys.argv[1])
    limits = JailLimits(address_space_bytes=settings["addressSpaceBytes"])
    gc.set_threshold(50_000)
    gc.freeze()
    _warm_up()
    parts = enter_jail(_readable(), limits)
    max_bytes = settings["outputBytes"]
    _write(frames.encode({"jail": parts}))
    while (request := _read()) is not None:
        sets = source_sets(request)
        for item in request["items"]:
            allow_cpu(settings["cpuSeconds"], limits)
            _write_bounded(answer(item, sets[item["set"]], max_bytes), item["path"], max_bytes)


def source_sets(request: Mapping[str, Any]) -> dict[str, dict[str, Source]]:
    """The sources of a request, by set and name."""
    texts = request["texts"]
    return {
        key: {name: Source(oid, path, texts[oid]) for name, (oid, path) in names.items()}
        for key, names in request["sets"].items()
    }


def answer(
    item: Mapping[str, Any], sources: Mapping[str, Source], max_bytes: int
) -> dict[str, Any]:
    """Render and read one item.

    `item` has `yaml` (names of plain files) or `jinja` (names of templates, with `data`).
    Gives `documents` as [path, line, value], `findings`, and `decided`: the paths whose
    templates looked at a decision.
    """
    documents: list[list[Any]] = []
    findings: list[Finding] = []
    decided: list[str] = []
    try:
        if "yaml" in item:
            for name in item["yaml"]:
                _collect(sources[name].text, sources[name].path, documents, findings)
        else:
            for name in item["jinja"]:
                _render(name, sources, item, max_bytes, (documents, findings, decided))
    except MemoryError:
        documents.clear()
        gc.collect()
        message = "rendering this needs more memory than a render may use"
        findings.append(Finding(SourceLocation(item["path"]), "render-too-large", message))
        return _answer([], findings, [], item) | {"retire": True}
    return _answer(documents, findings, decided, item)


def _answer(
    documents: list[list[Any]], findings: list[Finding], decided: list[str], item: Mapping[str, Any]
) -> dict[str, Any]:
    data = item.get("data", {})
    return {
        "documents": documents,
        "findings": [
            {
                "path": finding.location.path,
                "line": finding.location.line,
                "column": finding.location.column,
                "code": finding.code,
                "message": mask_values(finding.message, data.get("values")),
                "hint": mask_values(finding.hint, data.get("values")),
            }
            for finding in findings
        ],
        "decided": decided,
    }


def _collect(
    text: str, path: str, documents: list[list[Any]], findings: list[Finding], *, made: bool = False
) -> None:
    """Read the documents of one text; lines of rendered text mean nothing to a person."""
    try:
        found = load_documents(text, path)
    except BadInput as error:
        finding = error.findings[0]
        if made:
            where = f" (line {finding.location.line} of the rendered text)"
            finding = Finding(SourceLocation(path), finding.code, finding.message + where)
        findings.append(finding)
        return
    documents.extend([path, 0 if made else document.line, document.value] for document in found)


def _render(
    name: str,
    sources: Mapping[str, Source],
    item: Mapping[str, Any],
    max_bytes: int,
    out: tuple[list[list[Any]], list[Finding], list[str]],
) -> None:
    """Render one template in a fresh environment, so that nothing leaks to the next."""
    documents, findings, decided = out
    data = {
        key: Tracked(value) if key in _TRACKED else value for key, value in item["data"].items()
    }
    path = sources[name].path
    try:
        text = render_text(StokerEnvironment(sources, data), name, data, max_bytes)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - templates can raise anything; this is one unit's turn
        findings.append(finding_from(error, sources, name))
        return
    if any(isinstance(value, Tracked) and value.looked_at for value in data.values()):
        decided.append(path)
    _collect(text, path, documents, findings, made=True)


def _warm_up() -> None:
    """Use each library once, so that nothing is imported in jail for the first time."""
    source = Source("", "warm.up", "{% for a in b %}{{ a | to_json }}{% endfor %}\n")
    environment = StokerEnvironment({"warm.up": source}, {"b": [1]})
    load_documents(render_text(environment, "warm.up", {"b": [1]}, 100), "warm.up")
    for text, data in (("{{ b.c }}", {"b": {"cc": 1}}), ("{{ ", {})):
        source = Source(text, "warm.up", text)
        try:
            environment = StokerEnvironment({"warm.up": source}, data)
            render_text(environment, "warm.up", data, 100)
        except jinja2.TemplateError as error:
            finding_from(error, {"warm.up": source}, "warm.up")


def _readable() -> tuple[str, ...]:
    """Folders of the Python installation and of the libraries in use."""
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= set(site.getsitepackages())
    folders |= {str(Path(str(module.__file__)).parent) for module in (jinja2, yaml)}
    folders.add(str(Path(__file__).parent.parent))
    return tuple(sorted(folders))


def _read() -> Any:
    header = _read_exactly(frames.HEADER_BYTES)
    if not header:
        return None
    return frames.decode(_read_exactly(frames.length_of(header)))


def _read_exactly(count: int) -> bytes:
    pieces: list[bytes] = []
    while count:
        piece = os.read(_INPUT, min(count, 1 << 20))
        if not piece:
            return b""
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _write_bounded(data: dict[str, Any], path: str, max_bytes: int) -> None:
    raw = frames.encode(data)
    if len(raw) > max_bytes + frames.SLACK_BYTES:
        message = f"this unit is larger than {max_bytes} bytes when rendered"
        finding = Finding(SourceLocation(path), "render-too-large", message)
        raw = frames.encode(_answer([], [finding], [], {}))
    _write(raw)


def _write(frame: bytes) -> None:
    raw = memoryview(frame)
    while raw:
        raw = raw[os.write(_OUTPUT, raw) :]

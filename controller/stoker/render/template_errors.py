"""What goes wrong in a template, as a finding with file, line, column and no values.

Exceptions of jinja2 and of what templates call come in; one `Finding` goes out. Texts of
exceptions may hold values (cases.md row 147), so only texts known to be free of them are
kept, and every value of the data is masked in what remains. Runs in render children only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import jinja2
from jinja2.exceptions import SecurityError

from stoker.errors import Finding, SourceLocation
from stoker.render.jinja_env import OutputTooLarge
from stoker.render.sources import Source
from stoker.render.undefined import NameMissing

__all__ = ["finding_from", "mask_values"]

_SHORTEST_MASKED = 4
"""Shorter values are ordinary words and digits; masking them would eat the message."""
_MASK = "***"


def finding_from(error: BaseException, sources: Mapping[str, Source], main: str) -> Finding:
    """Describe a failed render of the source called `main`."""
    by_path = {source.path: source for source in sources.values()}
    path, line = _place(error, by_path, sources[main].path)
    text = by_path[path].text if path in by_path else ""
    message, needle, hint = _said(error, text)
    column = _column(text, line, needle) if line else 0
    code = "render-too-large" if _is_size(error) else "template-error"
    return Finding(SourceLocation(path, line, column), code, message, hint=hint)


def mask_values(text: str, data: Any) -> str:
    """The text with every value of the data blotted out."""
    found = sorted({leaf for leaf in _leaves(data) if leaf in text}, key=lambda leaf: -len(leaf))
    for leaf in found:
        text = text.replace(leaf, _MASK)
    return text


def _leaves(data: Any) -> Iterable[str]:
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif not isinstance(value, bool) and value is not None:
            spelled = str(value)
            lines = spelled.splitlines() if "\n" in spelled else []
            for leaf in (spelled, repr(spelled)[1:-1], *lines):
                if len(leaf) >= _SHORTEST_MASKED:
                    yield leaf


def _is_size(error: BaseException) -> bool:
    return isinstance(error, OutputTooLarge | MemoryError)


def _place(error: BaseException, by_path: Mapping[str, Source], main_path: str) -> tuple[str, int]:
    """File and line: of the syntax error, else of the innermost template frame."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        path = error.filename or main_path
        return (path if path in by_path else main_path), error.lineno
    found = (main_path, 0)
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path in by_path:
            found = (path, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _said(error: BaseException, source: str) -> tuple[str, str, str]:
    """The message, the text to look for in the line, and the hint."""
    if isinstance(error, NameMissing):
        if error.name not in source:
            return "a key made while rendering is undefined", "", ""
        hint = f"did you mean {error.near!r}?" if error.near else ""
        return str(error), error.name, hint
    if isinstance(error, jinja2.TemplatesNotFound):
        return "none of these templates exist", "", ""
    if isinstance(error, jinja2.TemplateNotFound):
        name = str(error.name)
        shown = f"there is no template {name!r}" if name in source else "there is no such template"
        return shown, name if name in source else "", "only files named by the fleet can be used"
    if isinstance(error, OutputTooLarge):
        return "the rendered text is over the size limit", "", ""
    if isinstance(error, MemoryError):
        return "rendering needs more memory than a render may use", "", ""
    if isinstance(error, RecursionError):
        return "templates or macros call each other too deeply", "", ""
    if isinstance(error, jinja2.TemplateSyntaxError | SecurityError | jinja2.TemplateRuntimeError):
        return str(error.message or type(error).__name__), "", ""
    if isinstance(error, TypeError):
        # TypeErrors name types, not values.
        return f"TypeError: {error}"[:300], "", ""
    return f"{type(error).__name__} while rendering", "", ""


def _column(source: str, line: int, needle: str) -> int:
    """Where in the line the fault is: the name if it is there, else the first tag."""
    lines = source.splitlines()
    if not 0 < line <= len(lines):
        return 0
    text = lines[line - 1]
    if needle:
        spelled = rf"(?:[A-Za-z_][A-Za-z0-9_]*[.])*\b{re.escape(needle)}\b"
        if match := re.search(spelled, text):
            return match.start() + 1
    tag = re.search(r"\{[{%]", text)
    return tag.start() + 1 if tag else 1

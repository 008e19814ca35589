"""Structured logs: dotted past-tense events with key-values, on stderr.

`text` is for people (`14:02:11 pass.ended revision=9be0a17 …`), `json` for machines.
Values are cut and stripped of control characters; known secret values are replaced.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from typing import Any, TextIO

from stoker.model.times import rfc3339

__all__ = ["Log", "configure", "get_log", "hide_value"]

MAX_VALUE_CHARACTERS = 500

_hidden_lock = threading.Lock()
_hidden: set[str] = set()


def hide_value(secret: str) -> None:
    """Never print this value again in any log; values under 6 characters are ignored."""
    if len(secret) >= 6:
        with _hidden_lock:
            _hidden.add(secret)


def _without_secrets(text: str) -> str:
    with _hidden_lock:
        for secret in sorted(_hidden):
            text = text.replace(secret, "***")
    return text


def _clean(value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = _without_secrets(str(value))
    text = "".join(c if c.isprintable() else " " for c in text)
    return text[:MAX_VALUE_CHARACTERS]


class Log:
    """One logger; `bind` gives a child with more fixed values."""

    def __init__(self, name: str, bound: dict[str, Any] | None = None) -> None:
        self._logger = logging.getLogger(f"stoker.{name}")
        self._bound = bound or {}

    def bind(self, **values: Any) -> Log:
        """A logger that adds these values to every event."""
        child = Log.__new__(Log)
        child._logger = self._logger  # noqa: SLF001 - the same class
        child._bound = {**self._bound, **values}  # noqa: SLF001
        return child

    def debug(self, event: str, **values: Any) -> None:
        """Log one event per object."""
        self._write(logging.DEBUG, event, values)

    def info(self, event: str, **values: Any) -> None:
        """Log one event per stage or real change."""
        self._write(logging.INFO, event, values)

    def warning(self, event: str, **values: Any) -> None:
        """Log what a person may have to look at."""
        self._write(logging.WARNING, event, values)

    def error(self, event: str, **values: Any) -> None:
        """Log what a person must look at."""
        self._write(logging.ERROR, event, values)

    def exception(self, event: str, **values: Any) -> None:
        """Log a bug with its traceback."""
        self._write(logging.ERROR, event, values, traceback=True)

    def _write(
        self, level: int, event: str, values: dict[str, Any], *, traceback: bool = False
    ) -> None:
        if self._logger.isEnabledFor(level):
            cleaned = {key: _clean(item) for key, item in {**self._bound, **values}.items()}
            self._logger.log(level, event, extra={"values": cleaned}, exc_info=traceback)


class _Formatter(logging.Formatter):
    """Tracebacks end with messages of foreign libraries, which may quote what was sent."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        return _without_secrets(super().formatException(ei))


class _Text(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] = getattr(record, "values", {})
        moment = rfc3339(int(record.created * 1000))[11:19]
        pairs = " ".join(f"{key}={_quoted(value)}" for key, value in values.items())
        line = f"{moment} {record.levelname.lower():7} {record.getMessage()} {pairs}".rstrip()
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _quoted(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text or text == "" else text


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] = getattr(record, "values", {})
        data = {
            "time": rfc3339(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **values,
        }
        if record.exc_info:
            data["exception"] = self.formatException(record.exc_info)
        return json.dumps(data, ensure_ascii=False, default=str)


def configure(level: str = "info", style: str = "text", stream: TextIO | None = None) -> None:
    """Send all events of `level` and above to `stream` (stderr) in `style` text or json."""
    root = logging.getLogger("stoker")
    root.setLevel(level.upper())
    root.propagate = False
    for old in list(root.handlers):
        root.removeHandler(old)
    output = logging.StreamHandler(stream or sys.stderr)
    output.setFormatter(_Json() if style == "json" else _Text())
    root.addHandler(output)


def get_log(name: str) -> Log:
    """The logger of a part (`loop`, `publish`, …)."""
    return Log(name)

"""What a template gets for a name that is not there: an error that names it fully.

Made per render by jinja_env; `placement.nod` is reported with its whole path, found by
looking for the object in the data the template was given, and with the nearest key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import jinja2
from jinja2.utils import missing

__all__ = ["NameMissing", "is_bare_name", "undefined_for"]

_MAX_VISITED = 20_000


class NameMissing(jinja2.UndefinedError):
    """A template used a name that is not defined.

    `path` is the longest spelling known (`values.models[0].port`), `name` its last part,
    `near` an existing name close to it or empty.
    """

    def __init__(self, path: str, name: str, near: str) -> None:
        super().__init__(f"{path!r} is undefined")
        self.path = path
        self.name = name
        self.near = near


def undefined_for(roots: Mapping[str, Any]) -> type[jinja2.StrictUndefined]:
    """A StrictUndefined that can say where in `roots` the name was looked for."""

    class Missing(jinja2.StrictUndefined):
        __slots__ = ()

        def __init__(
            self,
            hint: str | None = None,
            obj: Any = missing,
            name: str | None = None,
            exc: type[jinja2.TemplateRuntimeError] = jinja2.UndefinedError,
        ) -> None:
            super().__init__(hint, obj, name, exc)
            if hint is None and exc is jinja2.UndefinedError:
                # Jinja raises whatever this callable gives for its own message.
                described: Any = lambda _message: _described(obj, name, roots)  # noqa: E731
                self._undefined_exception = described

    return Missing


def is_bare_name(value: object) -> bool:
    """Whether this is an undefined variable, not a missing key of something."""
    return (
        isinstance(value, jinja2.Undefined)
        and value._undefined_obj is missing  # noqa: SLF001 - jinja2 has no public reader for it
        and value._undefined_hint is None  # noqa: SLF001 - the same
    )


def _described(holder: Any, name: Any, roots: Mapping[str, Any]) -> NameMissing:
    spelled = str(name)
    if holder is missing:
        return NameMissing(spelled, spelled, _near(spelled, roots))
    path = next((path for path, found in _walk(roots) if found is holder), "")
    if path:
        path += f"[{name}]" if isinstance(name, int) else f".{name}"
    near = _near(spelled, holder) if isinstance(holder, Mapping) else ""
    return NameMissing(path or spelled, spelled, near)


def _near(name: str, candidates: Mapping[str, Any]) -> str:
    names = sorted(str(candidate) for candidate in candidates)
    return next(iter(get_close_matches(name, names, n=1, cutoff=0.6)), "")


def _walk(roots: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every map and list of the data with its path, nearest first, up to a bound."""
    waiting: deque[tuple[str, Any]] = deque((str(key), value) for key, value in roots.items())
    for _ in range(_MAX_VISITED):
        if not waiting:
            return
        path, value = waiting.popleft()
        if isinstance(value, Mapping):
            yield path, value
            waiting.extend((f"{path}.{key}", item) for key, item in value.items())
        elif isinstance(value, list):
            yield path, value
            waiting.extend((f"{path}[{index}]", item) for index, item in enumerate(value))

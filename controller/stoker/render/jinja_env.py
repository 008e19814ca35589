"""The only way a template is rendered: an immutable sandbox over given sources.

Sources and data come in, text goes out; `BadInput` with file, line and column otherwise.
No file, no network, no clock and no randomness are in reach, and an undefined name is an
error. Runs in render children only (worker).
"""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Mapping, MutableMapping
from types import CodeType
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from stoker.render.sources import TEMPLATE_NAME, Source
from stoker.render.undefined import is_bare_name, undefined_for

__all__ = ["OutputTooLarge", "StokerEnvironment", "render_text"]

_REMOVED_FILTERS = ("attr", "pprint", "random", "urlize", "xmlattr")
"""Not deterministic, of no use in manifests, or with a record of advisories."""
_REMOVED_GLOBALS = ("lipsum",)
_MAX_COMPILED = 2048
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What JSON may hold as it is and YAML may not, or takes for a line break."""
_ADDRESS = re.compile(r"<[^<>\n]{1,200} at 0x[0-9a-f]{6,}>")


class OutputTooLarge(Exception):
    """The text grew over the limit."""


class _Loader(jinja2.BaseLoader):
    """Finds templates among the given sources only; keeps compiled code by object id."""

    compiled: dict[tuple[str, str, str], CodeType] = {}  # noqa: RUF012 - one cache per child, on purpose

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources

    def load(
        self,
        environment: jinja2.Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002 - jinja2's own parameter
    ) -> jinja2.Template:
        source = self._sources.get(name)
        if source is None or TEMPLATE_NAME.fullmatch(name) is None:
            raise jinja2.TemplateNotFound(name)
        key = (source.oid, name, source.path)
        code = self.compiled.get(key)
        if code is None:
            if len(self.compiled) >= _MAX_COMPILED:
                self.compiled.clear()
            code = environment.compile(source.text, name, source.path)
            self.compiled[key] = code
        return environment.template_class.from_code(environment, code, globals or {}, None)


class StokerEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox with keys before attributes and includes relative to the including file."""

    def __init__(self, sources: Mapping[str, Source], roots: Mapping[str, Any]) -> None:
        super().__init__(
            loader=_Loader(sources),
            undefined=undefined_for(roots),
            finalize=_printable,
            autoescape=False,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._names = frozenset(sources)
        for name in _REMOVED_FILTERS:
            del self.filters[name]
        for name in _REMOVED_GLOBALS:
            del self.globals[name]
        self.filters |= _FILTERS

    def getitem(self, obj: Any, argument: Any) -> Any:
        """`obj[argument]`; for a map only its keys count."""
        if isinstance(obj, Mapping):
            if _is_key(obj, argument):
                return obj[argument]
            return self.undefined(obj=obj, name=argument)
        return super().getitem(obj, argument)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """`obj.attribute`; a key of that name comes before a method (`values.items`)."""
        if isinstance(obj, Mapping) and _is_key(obj, attribute):
            return obj[attribute]
        return super().getattr(obj, attribute)

    def join_path(self, template: str, parent: str) -> str:
        """Look beside the including file first, then from the top."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(parent), template))
        return beside if beside in self._names else template


def render_text(environment: StokerEnvironment, name: str, data: Any, max_bytes: int) -> str:
    """Render one template; raises OutputTooLarge past `max_bytes` and what Jinja raises."""
    pieces: list[str] = []
    size = 0
    for piece in environment.get_template(name).generate(**data):
        size += len(piece)
        if size > max_bytes:
            raise OutputTooLarge
        pieces.append(piece)
    text = "".join(pieces)
    if _ADDRESS.search(text):
        message = "the text holds the address of a Python object, which differs at each render"
        raise jinja2.TemplateRuntimeError(message)
    return text


def _is_key(mapping: Mapping[Any, Any], key: Any) -> bool:
    try:
        return key in mapping
    except TypeError:
        return False


def _printable(value: Any) -> Any:
    """What `{{ }}` prints: text and numbers as they are, all other data as JSON.

    Methods, generators and other objects are errors: their text holds an address, which
    would differ at each render.
    """
    if isinstance(value, str | jinja2.Undefined):
        return value
    if value is None or isinstance(value, bool | int | float | list | tuple | dict):
        return _to_json(value)
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        message = f"this prints the method {name!r}: call it, or use ['{name}'] for the key"
        raise jinja2.TemplateRuntimeError(message)
    message = f"this prints a {type(value).__name__}: add `| list` or another filter"
    raise jinja2.TemplateRuntimeError(message)


def _to_json(value: Any) -> str:
    """JSON that is YAML too: the safe way to print any value."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_not_json)
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _not_json(value: Any) -> Any:
    if isinstance(value, jinja2.Undefined):
        return str(value)
    message = f"a {type(value).__name__} has no JSON form: add `| list` or another filter"
    raise jinja2.TemplateRuntimeError(message)


def _quote(value: Any) -> str:
    """The value as a quoted string, whatever its type."""
    if isinstance(value, bool):
        return _to_json("true" if value else "false")
    return _to_json(str(value))


def _seconds(milliseconds: int) -> int:
    """Whole seconds, rounded up."""
    return -(-milliseconds // 1000)


def _quantity(size_bytes: int) -> str:
    """Bytes as a Kubernetes quantity, exact: `16Gi`."""
    for suffix, factor in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor}{suffix}"
    return str(size_bytes)


def _b64encode(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _sha256(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def _default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    """Fill in a missing field; a variable that does not exist at all is still an error."""
    if is_bare_name(value):
        str(value)
    if isinstance(value, jinja2.Undefined) or (boolean and not value):
        return default_value
    return value


_FILTERS: dict[str, Callable[..., Any]] = {
    "b64encode": _b64encode,
    "d": _default,
    "default": _default,
    "quantity": _quantity,
    "quote": _quote,
    "seconds": _seconds,
    "sha256": _sha256,
    "to_json": _to_json,
}

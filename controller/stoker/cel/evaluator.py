"""Compiles CEL expressions and asks them about live objects.

The runtime is a C++ library that the operating system may lack: it is loaded with the
first expression, and without it every answer is an error that says so. Called by source
(faults, with their places) and, through the port, by the rules of health and readiness.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from stoker.cel.library import LEFT_OUT, declarations
from stoker.cel.sums import joining_sums
from stoker.model.expression import Answer, Fault, Truth

__all__ = ["ALL_VARIABLES", "MAX_CHARACTERS", "PACKAGE", "VARIABLES", "Cel"]

PACKAGE = "cel-expr-python"

VARIABLES = ("object", "self", "apiVersion", "kind", "metadata", "spec", "status", "data")
"""Names an expression may use: the object (as admission policies and CRD rules call it) and
its fields at the top (as Flux has them). A field that the object lacks is an empty map."""

ALL_VARIABLES = ("objects",)
"""The names of an expression about all objects of a unit: the list of them."""

_CONFIGURATION = "name: stoker\nextensions:\n" + "".join(
    f"- name: {name}\n" for name in ("optional", "math", "bindings", "two-var-comprehensions")
)
"""Strings, lists and regex are left out: they multiply values without bound. Of sets, one
call compares everything with everything. The library has what people use of them."""

MAX_CHARACTERS = 4096
"""Of one expression; those we ship have 400."""

_REMEMBERED = 2048
_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): ([^\n]*)")
_NOISE = re.compile(r" expecting \{.*|,? ?\(in container ''\)| \[[A-Z_]+\]$")
_UNDECLARED = re.compile(r"undeclared reference to '([^'.]+)")
_STATUS_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_MAX_MESSAGE = 300


class Cel:
    """The evaluator: what is compiled is remembered by its text, for the process."""

    def about(self, manifest: Mapping[str, Any]) -> _Asked:
        """Questions about a live object, which must not change meanwhile."""
        return _Asked(VARIABLES, lambda: _variables(manifest))

    def about_all(self, manifests: Sequence[Mapping[str, Any]]) -> _Asked:
        """Questions about `objects`, the list of these, which must not change meanwhile."""
        return _Asked(ALL_VARIABLES, lambda: {"objects": list(manifests)})

    def faults(
        self, expression: str, *, text: bool = False, about_all: bool = False
    ) -> tuple[Fault, ...]:
        """Why the expression cannot be used, in its order; empty when it can.

        Without the package every expression passes: nobody can tell.
        """
        names = ALL_VARIABLES if about_all else VARIABLES
        if _runtime(names) is None:
            return ()
        compiled = _compiled(expression, names)
        if compiled.faults:
            return compiled.faults
        wanted = ("STRING", "DYN") if text else ("BOOL", "DYN")
        if compiled.gives not in wanted:
            what = "text" if text else "true or false"
            return (Fault(f"comes to {compiled.gives}; {what} is wanted"),)
        return ()

    @property
    def missing(self) -> str:
        """The package that is not installed here, empty when it is; it is not loaded for that."""
        return "" if _is_installed() else PACKAGE


@dataclass(slots=True)
class _Asked:
    """Questions with these names; their values are made and converted for the first one."""

    names: tuple[str, ...]
    values: Callable[[], dict[str, Any]]
    activation: Any = field(default=None)

    def ask(self, expression: str) -> Answer:
        """Whether the expression holds. Never raises."""
        value, message = self._value(expression)
        if message:
            return Answer(Truth.ERROR, message)
        if not isinstance(value, bool):
            kind = value.kind if isinstance(value, _Other) else "STRING"
            return Answer(Truth.ERROR, f"comes to {kind}; true or false is wanted")
        return Answer(Truth.TRUE if value else Truth.FALSE)

    def text(self, expression: str) -> str:
        """The text that the expression comes to; empty where it fails or is no text."""
        value, message = self._value(expression)
        return value if isinstance(value, str) and not message else ""

    def _value(self, expression: str) -> tuple[Any, str]:
        """A text, true, false or what else it is, or why there is none.

        Other values are not converted: a list of lists may be small and its copy huge.
        """
        runtime = _runtime(self.names)
        if runtime is None:
            return None, f"the package {PACKAGE} is not installed"
        compiled = _compiled(expression, self.names)
        if compiled.faults:
            return None, compiled.faults[0].message
        try:
            if self.activation is None:
                self.activation = runtime.environment.Activation(self.values())
            result = compiled.program.eval(self.activation)
            kind = result.type().name()
            if kind == "ERROR":
                return None, _plain(str(result.value()))
            return (result.value() if kind in {"BOOL", "STRING"} else _Other(kind)), ""
        except (RuntimeError, ValueError, TypeError, MemoryError, OverflowError) as error:
            return None, _plain(str(error)) or type(error).__name__


@dataclass(frozen=True, slots=True)
class _Other:
    """A value that is neither text nor true nor false."""

    kind: str


def _variables(manifest: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"object": manifest, "self": manifest}
    for name in VARIABLES[2:]:
        absent: Any = "" if name in {"apiVersion", "kind"} else {}
        value = manifest.get(name)
        found[name] = absent if value is None else value
    return found


@dataclass(frozen=True, slots=True)
class _Runtime:
    environment: Any


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: Any = None
    gives: str = ""
    faults: tuple[Fault, ...] = ()


@lru_cache(maxsize=1)
def _is_installed() -> bool:
    return find_spec("cel_expr_python") is not None


@lru_cache(maxsize=2)
def _runtime(names: tuple[str, ...]) -> _Runtime | None:
    """The library with our functions and these variables; None where it is not installed."""
    try:
        from cel_expr_python import cel
    except ImportError:
        return None
    return _Runtime(
        cel.NewEnv(
            config=cel.NewEnvConfigFromYaml(_CONFIGURATION),
            variables=dict.fromkeys(names, cel.Type.DYN),
            functions=declarations(cel),
        )
    )


@lru_cache(maxsize=_REMEMBERED)
def _compiled(expression: str, names: tuple[str, ...]) -> _Compiled:
    if len(expression) > MAX_CHARACTERS:
        message = f"has {len(expression)} characters; {MAX_CHARACTERS} are allowed"
        return _Compiled(faults=(Fault(message),))
    runtime = _runtime(names)
    assert runtime is not None, "asked before"
    try:
        program = runtime.environment.compile(expression)
    except (RuntimeError, ValueError, TypeError) as error:
        return _Compiled(faults=_faults(str(error)))
    sums = joining_sums(expression, program.serialize())
    return _Compiled(program, program.return_type().name(), sums)


def _faults(text: str) -> tuple[Fault, ...]:
    """What the compiler says, by place."""
    found = [
        Fault(_cut(_explained(_NOISE.sub("", message))), int(line), int(column))
        for line, column, message in _PLACE.findall(text)
    ]
    return tuple(found) or (Fault(_plain(text)),)


def _explained(message: str) -> str:
    """A name that Kubernetes has is no slip of the pen: say that it is left out."""
    named = _UNDECLARED.search(message)
    if named is None or named[1] not in LEFT_OUT:
        return message
    return f"{message}; Kubernetes has it, here it is left out"


def _plain(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    return _cut(_STATUS_CODE.sub("", first))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"

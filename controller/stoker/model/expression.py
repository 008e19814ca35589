"""The port to CEL: questions about live objects, answered with true, false or an error.

Implemented by cel; the rules that ask (objects.health_rules, objects.readiness) are pure and
see this only. An error is its own answer: it never counts as true, nor as false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

__all__ = ["Answer", "Expressions", "Fault", "Questions", "Truth"]


class Truth(StrEnum):
    """What came of a yes-or-no expression."""

    TRUE = "true"
    FALSE = "false"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `message` says what went wrong and is empty otherwise."""

    truth: Truth
    message: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an expression cannot be used. Line and column count from 1 within its text."""

    message: str
    line: int = 1
    column: int = 1


class Questions(Protocol):
    """Questions about one object, or about all objects of a unit."""

    def ask(self, expression: str) -> Answer:
        """Whether the expression holds. Never raises."""
        ...

    def text(self, expression: str) -> str:
        """The text that the expression comes to; empty where it fails or is no text."""
        ...


class Expressions(Protocol):
    """The evaluator. Usable from several threads at once."""

    def about(self, manifest: Mapping[str, Any]) -> Questions:
        """Questions about a live object, which must not change meanwhile."""
        ...

    def about_all(self, manifests: Sequence[Mapping[str, Any]]) -> Questions:
        """Questions about live objects together, which must not change meanwhile."""
        ...

    def faults(
        self, expression: str, *, text: bool = False, about_all: bool = False
    ) -> tuple[Fault, ...]:
        """Why the expression cannot be used, in its order; empty when it can.

        `text` says that it must come to text instead of true or false; `about_all` that it
        is about several objects.
        """
        ...

    @property
    def missing(self) -> str:
        """What is not installed without which no expression can be evaluated; else empty."""
        ...

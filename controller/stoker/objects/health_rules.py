"""Health of kinds that files describe: the fleet's own files first, then the shipped ones.

In: checks (data of source) and the CEL evaluator (a port). Out: a verdict that names the
file, or None where no file speaks of the kind. Called by health after its first rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from stoker.model.expression import Expressions, Questions, Truth
from stoker.model.health_file import HealthCheck
from stoker.model.outcome import Health
from stoker.objects.health_fields import HealthVerdict, degraded, healthy, mapping, progressing

__all__ = ["HealthRules"]

Shipped = Callable[[], Iterable[HealthCheck]]


class HealthRules:
    """The checks in force. Of two for one kind the first is used, a given one before a shipped.

    `shipped` is called when a kind is first looked for that no given check names.
    """

    def __init__(
        self,
        expressions: Expressions,
        checks: Iterable[HealthCheck] = (),
        shipped: Shipped = tuple,
    ) -> None:
        self.expressions = expressions
        self.checks = tuple(checks)
        self._shipped = shipped
        self._table = _table(self.checks)
        self._rest: dict[tuple[str, str], HealthCheck] | None = None

    def own(self, group: str, kind: str) -> HealthCheck | None:
        """The check that the fleet's own files have for a kind."""
        return self._table.get((group, kind))

    def shipped(self, group: str, kind: str) -> HealthCheck | None:
        """The check that comes with Stoker for a kind."""
        if self._rest is None:
            self._rest = _table(self._shipped())
        return self._rest.get((group, kind))

    def judge(self, check: HealthCheck, manifest: dict[str, Any]) -> HealthVerdict:
        """What the check says of an object, in Flux's order: the first that holds.

        None that holds is progress. An expression that fails makes the object Unknown,
        never healthy; an object without any status is one that nobody looked at yet.
        """
        if check.problem:
            return _unknown(check, "HealthFileWrong", check.problem)
        if self.expressions.missing:
            missing = f"the package {self.expressions.missing} is not installed"
            return _unknown(check, "ExpressionsMissing", missing)
        questions = self.expressions.about(manifest)
        for name, expression, verdict in (
            ("inProgress", check.in_progress, progressing("InProgress")),
            ("failed", check.failed, degraded("Failed")),
            ("suspended", check.suspended, HealthVerdict(Health.SUSPENDED, "Suspended")),
            ("current", check.current, healthy("Current")),
        ):
            if not expression:
                continue
            answer = questions.ask(expression)
            if answer.truth is Truth.ERROR:
                if not mapping(manifest, "status"):
                    return progressing("NotObserved", "no status yet")
                return _unknown(check, "ExpressionFailed", f"{name}: {answer.message}")
            if answer.truth is Truth.TRUE:
                return _told(check, verdict, questions)
        return _told(check, progressing("NotCurrent"), questions)


def _table(checks: Iterable[HealthCheck]) -> dict[tuple[str, str], HealthCheck]:
    found: dict[tuple[str, str], HealthCheck] = {}
    for check in checks:
        found.setdefault((check.group, check.kind), check)
    return found


def _told(check: HealthCheck, verdict: HealthVerdict, questions: Questions) -> HealthVerdict:
    """The verdict with the file's own words; a healthy object needs none."""
    if verdict.status is Health.HEALTHY or not check.message:
        return replace(verdict, by=check.path)
    return replace(verdict, message=questions.text(check.message), by=check.path)


def _unknown(check: HealthCheck, reason: str, message: str) -> HealthVerdict:
    return HealthVerdict(Health.UNKNOWN, reason, message, by=check.path)

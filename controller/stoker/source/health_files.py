"""Health files: policies/health/*.yaml of the fleet repository, and those that ship.

Bytes in, checks and findings out. A file that is wrong stops no unit: what of it can be
read is used, and kinds whose expressions are wrong are Unknown rather than judged by some
other rule. Called by source; the shipped ones by reconcile, once a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from stoker.errors import Finding, Severity, SourceLocation, Stalled
from stoker.model.expression import Expressions, Fault
from stoker.model.health_file import HealthCheck
from stoker.shipped import shipped_folder
from stoker.source.parsed import parsed
from stoker.source.places import Field, closest, dotted
from stoker.source.schema_health import EXPRESSIONS, CheckBlock, HealthPolicyFile
from stoker.source.text_places import place_in_text, text_lines
from stoker.source.unit_file import unusable
from stoker.source.yaml_strict import Document, read_yaml

__all__ = [
    "HEALTH_FILES",
    "HealthFile",
    "in_force",
    "missing_runtime",
    "read_health_file",
    "shipped_checks",
]

HEALTH_FILES = "policies/health/*.yaml"
"""From the root of the fleet repository."""

SHIPPED = " of Stoker"
"""Follows the path of a shipped file where people see it, for the fleet may have the same."""


@dataclass(frozen=True, slots=True)
class HealthFile:
    """The checks of one file in its order, each with its place, and what is wrong with it."""

    checks: tuple[tuple[HealthCheck, SourceLocation], ...] = ()
    findings: tuple[Finding, ...] = ()


def read_health_file(path: str, data: bytes, expressions: Expressions | None) -> HealthFile:
    """Read one file, and compile its expressions where an evaluator is given. Never raises."""
    problem = unusable(path, data)
    if problem is not None:
        return HealthFile(findings=(problem,))
    file = read_yaml(path, data, texts=True)
    broken = (file.broken,) if file.broken is not None else ()
    if not file.documents and not broken:
        return HealthFile()
    lines = text_lines(data)
    checks: list[tuple[HealthCheck, SourceLocation]] = []
    findings: list[Finding] = [*broken]
    for document in file.documents:
        findings += document.findings
        policy, problems = parsed(document, HealthPolicyFile, "HealthPolicy")
        findings += problems
        for index, block in enumerate(policy.spec.checks if policy is not None else ()):
            at: Field = ("spec", "checks", index)
            wrong = []
            if expressions is not None:
                wrong = _expression_findings(document, lines, at, block, expressions)
            findings += wrong
            place = closest(document.places, at, document.location)
            checks.append((_check(path, block, wrong), place))
    return HealthFile(tuple(checks), tuple(findings))


def in_force(files: Sequence[HealthFile]) -> tuple[tuple[HealthCheck, ...], list[Finding]]:
    """The checks of all files, the first of each kind, with a finding for each further one."""
    findings: list[Finding] = []
    first: dict[tuple[str, str], tuple[HealthCheck, SourceLocation]] = {}
    for check, place in (pair for file in files for pair in file.checks):
        known = first.setdefault((check.group, check.kind), (check, place))
        if known[0] is not check:
            name = f"{check.kind} of {check.group}" if check.group else check.kind
            message = f"{name} is checked in {known[1]} already, which is used"
            findings.append(Finding(place, "duplicate-health-check", message, "spec.checks"))
    return tuple(check for check, _ in first.values()), findings


def missing_runtime(expressions: Expressions) -> tuple[Finding, ...]:
    """The one finding of an installation that cannot evaluate expressions."""
    if not expressions.missing:
        return ()
    message = (
        f"the package {expressions.missing} is not installed: kinds that health files "
        "describe are Unknown; built-in kinds are judged as ever"
    )
    hint = f"pip install {expressions.missing}"
    where = SourceLocation()
    return (Finding(where, "expressions-missing", message, hint=hint, severity=Severity.WARNING),)


@lru_cache(maxsize=1)
def shipped_checks() -> tuple[HealthCheck, ...]:
    """The checks that come with Stoker, by file name; none where the installation lacks them.

    Not compiled: tests do that, and a fleet has objects of few of their kinds.
    """
    try:
        folder = shipped_folder("policies") / "health"
    except Stalled:
        return ()
    files = [
        read_health_file(f"policies/health/{file.name}", file.read_bytes(), None)
        for file in sorted(folder.glob("*.yaml"))
    ]
    return tuple(replace(check, path=check.path + SHIPPED) for check in in_force(files)[0])


def _expression_findings(
    document: Document,
    lines: Sequence[str],
    at: Field,
    block: CheckBlock,
    expressions: Expressions,
) -> list[Finding]:
    """Everything the compiler says about one check, at its line and column of the file."""
    findings = []
    texts = (block.current, block.in_progress, block.failed, block.suspended, block.message)
    for name, text in zip(EXPRESSIONS, texts, strict=True):
        if not text:
            continue
        field = (*at, name)
        for fault in expressions.faults(text, text=name == "message"):
            place = _place(document, lines, field, text, fault)
            findings.append(Finding(place, "invalid-expression", fault.message, dotted(field)))
    return findings


def _place(
    document: Document, lines: Sequence[str], field: Field, text: str, fault: Fault
) -> SourceLocation:
    start, style = document.texts.get(field, (None, ""))
    if start is None:
        return closest(document.places, field, document.location)
    return place_in_text(lines, start, style, text, fault.line, fault.column)


def _check(path: str, block: CheckBlock, wrong: list[Finding]) -> HealthCheck:
    return HealthCheck(
        group=block.api_version.rpartition("/")[0],
        kind=block.kind,
        path=path,
        current=block.current,
        in_progress=block.in_progress,
        failed=block.failed,
        suspended=block.suspended,
        message=block.message,
        problem=f"{wrong[0].location}: {wrong[0].message}" if wrong else "",
    )

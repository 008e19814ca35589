"""The error tree, by what happens next.

    StokerError
    ├── Waiting      the outside world must change first; the pass goes on without this unit
    ├── Retryable    the same request may work later
    │   └── Unreachable   the other side did not answer at all
    ├── Stalled      a person must act; retrying alone changes nothing
    │   ├── BadInput      files, flags or manifests are wrong (carries findings)
    │   └── Refused       the API server or Git said no for good
    └── Bug          an invariant of ours broke

Boundary code translates library errors into this tree once and chains the
cause. `Finding` is what a person sees: reference, what, where, why, what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "BadInput",
    "Bug",
    "Finding",
    "Refused",
    "Retryable",
    "Severity",
    "SourceLocation",
    "Stalled",
    "StokerError",
    "Unreachable",
    "Waiting",
]

MAX_MESSAGE_CHARACTERS = 1024
"""Bodies of foreign error answers are cut here, so that logs never hold a manifest."""


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A place in the repository. Line and column count from 1; 0 means unknown."""

    path: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.path
        return f"{self.path}:{self.line}:{self.column}"


class Severity(StrEnum):
    """How bad a finding is: an ERROR stops its unit, a WARNING is printed."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing wrong, in the five parts a person needs.

    `code` is a stable kebab-case reason from the published list (docs/reasons.md).
    """

    location: SourceLocation
    code: str
    message: str
    field: str = ""
    hint: str = ""
    severity: Severity = Severity.ERROR
    unit: str = ""

    def __str__(self) -> str:
        """Lay it out as `file:line:col: field: reason (hint)`."""
        parts = [str(self.location)] if self.location.path else []
        if self.field:
            parts.append(self.field)
        text = f"{self.message} [{self.code}]"
        if self.hint:
            text += f" ({self.hint})"
        return ": ".join([*parts, text])


class StokerError(Exception):
    """The root. `code` is the stable reason shown to people."""

    code = "error"

    def __init__(self, message: str, *, code: str = "", hint: str = "") -> None:
        super().__init__(message[:MAX_MESSAGE_CHARACTERS])
        self.message = message[:MAX_MESSAGE_CHARACTERS]
        self.hint = hint
        if code:
            self.code = code


class Waiting(StokerError):
    """Something else must happen first; `refs` says on what."""

    code = "waiting"

    def __init__(
        self, message: str, *, code: str = "", hint: str = "", refs: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.refs = refs


class Retryable(StokerError):
    """The same request may work later, not sooner than `after_ms` if that is set."""

    code = "retryable"

    def __init__(
        self, message: str, *, code: str = "", hint: str = "", after_ms: int | None = None
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.after_ms = after_ms


class Unreachable(Retryable):
    """No answer came back; whether a write happened is unknown."""

    code = "unreachable"


class Stalled(StokerError):
    """A person must act."""

    code = "stalled"


class BadInput(Stalled):
    """Files, flags or manifests are wrong; `findings` has every one of them."""

    code = "bad-input"

    def __init__(self, findings: tuple[Finding, ...], *, code: str = "") -> None:
        first = str(findings[0]) if findings else "bad input"
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        super().__init__(first + more, code=code or (findings[0].code if findings else ""))
        self.findings = findings


class Refused(Stalled):
    """The other side said no, and will say it again."""

    code = "refused"


class Bug(StokerError):
    """An invariant of ours broke; reported, counted, never swallowed."""

    code = "bug"

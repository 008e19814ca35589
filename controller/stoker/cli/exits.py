"""Exit codes, one table for all commands, and how errors become them."""

from __future__ import annotations

import sys
import traceback
from enum import IntEnum

from stoker.errors import BadInput, Finding, Severity, StokerError

__all__ = [
    "Exit",
    "exit_code_of",
    "is_wrong_use",
    "print_crash",
    "print_error",
    "print_findings",
]


class Exit(IntEnum):
    """What a command's exit status means."""

    OK = 0
    """Did its job; no differences."""
    DIFFERENCES = 1
    """Differences found or goal not reached (`diff`, `plan --exit-code`, `status --check`), or a
    bar missed (`rehearse`).
    """
    USAGE = 2
    """Wrong use or invalid files; also a context that is not the fleet's cluster."""
    UNDECIDED = 3
    """Could not decide or finish: unreachable, stalled, a file that cannot be written."""
    CRASH = 70
    """A bug."""
    INTERRUPTED = 130
    """Ctrl-C."""


_USAGE_CODES = frozenset(
    {
        "file-exists",
        "fleet-file-missing",
        "no-such-pod",
        "no-such-unit",
        "not-in-cluster",
        "ref-ambiguous",
        "ref-invalid",
        "ref-not-found",
        "repository-url-refused",
        "source-not-carried",
        "source-not-found",
        "usage",
        "wrong-cluster",
    }
)
"""What a person typed or chose wrongly, whatever class the error has."""


def exit_code_of(error: StokerError) -> Exit:
    """Bad input and wrong use are 2, everything that could not be decided is 3."""
    wrong = isinstance(error, BadInput) or is_wrong_use(error.code)
    return Exit.USAGE if wrong else Exit.UNDECIDED


def is_wrong_use(code: str) -> bool:
    """Whether a reason code says that a person chose or typed something wrong."""
    return code in _USAGE_CODES or code.startswith("kubeconfig-")


def _clean(text: str) -> str:
    """Control characters of foreign text never reach the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)


def print_findings(findings: tuple[Finding, ...]) -> None:
    """All at once on stderr, errors before warnings: a line each, a hint without place below."""
    for finding in sorted(findings, key=lambda f: (f.severity is Severity.WARNING, f)):
        if not finding.location.path and finding.severity is Severity.ERROR:
            _print_placeless(finding.field, finding.message, finding.code, finding.hint)
            continue
        mark = "warning: " if finding.severity is Severity.WARNING else ""
        sys.stderr.write(_clean(f"{mark}{finding}") + "\n")


def print_error(error: StokerError) -> None:
    """One error in its parts: what, why, what to do."""
    if isinstance(error, BadInput):
        print_findings(error.findings)
        return
    _print_placeless("", error.message, error.code, error.hint)


def _print_placeless(field: str, message: str, code: str, hint: str) -> None:
    text = f"error: {field + ': ' if field else ''}{message} [{code}]"
    sys.stderr.write(_clean(f"{text}\n  {hint}" if hint else text) + "\n")


def print_crash(error: BaseException, *, debug: bool) -> None:
    """A bug: say so shortly, with the traceback only on request."""
    if debug:
        traceback.print_exception(error)
    sys.stderr.write(
        f"stoker crashed: {type(error).__name__}: {_clean(str(error))[:500]}\n"
        "  this is a bug; run again with --debug for the traceback\n"
    )

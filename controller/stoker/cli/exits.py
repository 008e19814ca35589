"""Exit codes, one table for all commands, and how errors become them."""

from __future__ import annotations

import sys
import traceback
from enum import IntEnum

from stoker.errors import BadInput, Finding, Retryable, Severity, StokerError, Waiting

__all__ = ["Exit", "exit_code_of", "print_crash", "print_error", "print_findings"]


class Exit(IntEnum):
    """What a command's exit status means."""

    OK = 0
    """Did its job; no differences."""
    DIFFERENCES = 1
    """Differences found or goal not reached (diff, plan --exit-code, status --check)."""
    USAGE = 2
    """Wrong use or invalid files; also a context that is not the fleet's cluster."""
    UNDECIDED = 3
    """Could not decide or finish: unreachable, stalled, stale plan."""
    CRASH = 70
    """A bug."""
    INTERRUPTED = 130
    """Ctrl-C."""


_USAGE_CODES = frozenset(
    {"wrong-cluster", "usage", "invalid-kubeconfig", "kubeconfig-exec-refused"}
)


def exit_code_of(error: StokerError) -> Exit:
    """Bad input and wrong use are 2, everything that could not be decided is 3."""
    if isinstance(error, BadInput) or error.code in _USAGE_CODES:
        return Exit.USAGE
    if isinstance(error, Retryable | Waiting):
        return Exit.UNDECIDED
    return Exit.UNDECIDED


def _clean(text: str) -> str:
    """Control characters of foreign text never reach the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)


def print_findings(findings: tuple[Finding, ...]) -> None:
    """All at once, one a line, errors before warnings, on stderr."""
    for finding in sorted(findings, key=lambda f: (f.severity is Severity.WARNING, f)):
        mark = "warning: " if finding.severity is Severity.WARNING else ""
        sys.stderr.write(_clean(f"{mark}{finding}") + "\n")


def print_error(error: StokerError) -> None:
    """One error in its parts: what, why, what to do."""
    if isinstance(error, BadInput):
        print_findings(error.findings)
        return
    text = f"error: {error.message} [{error.code}]"
    if error.hint:
        text += f"\n  {error.hint}"
    sys.stderr.write(_clean(text) + "\n")


def print_crash(error: BaseException, *, debug: bool) -> None:
    """A bug: say so shortly, with the traceback only on request."""
    if debug:
        traceback.print_exception(error)
    sys.stderr.write(
        f"stoker crashed: {type(error).__name__}: {_clean(str(error))[:500]}\n"
        "  this is a bug; run again with --debug for the traceback\n"
    )

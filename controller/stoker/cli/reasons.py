"""The closed list of reason codes with a line each, joined from the stages that use them."""

from __future__ import annotations

__all__ = ["all_reasons", "reason_of"]

_OWN = {
    "shipped-files-missing": "The installation lacks its templates; install the wheel again.",
    "usage": "The command was used wrongly.",
    "file-exists": "A file would be overwritten; nothing was written.",
    "no-such-unit": "No unit of the fleet has this name.",
    "wrong-cluster": "The cluster's UID is not the one in the Fleet file; nothing was done.",
    "kubeconfig-missing": "The kubeconfig file is not there.",
    "state-namespace-missing": "The namespace of inventory and lease is missing.",
    "invalid-snapshot": "The recorded snapshot cannot be read by this version.",
    "credentials-unreadable": "The credentials file cannot be read.",
}


def all_reasons() -> dict[str, str]:
    """Code -> one line, sorted by code."""
    from stoker.apply import REASONS as APPLY
    from stoker.check import REASONS as CHECK
    from stoker.diff import REASONS as DIFF
    from stoker.render import REASONS as RENDER
    from stoker.report import REASONS as REPORT
    from stoker.source import REASONS as SOURCE

    return dict(sorted({**SOURCE, **RENDER, **CHECK, **DIFF, **APPLY, **REPORT, **_OWN}.items()))


def reason_of(code: str) -> str | None:
    """The line of a code; None when it is no code."""
    return all_reasons().get(code)

"""The closed list of reason codes with a line each, joined from the stages that use them."""

from __future__ import annotations

__all__ = ["all_reasons", "reason_of"]

_OWN = {
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
    from stoker.source import REASONS

    return dict(sorted({**REASONS, **_OWN}.items()))


def reason_of(code: str) -> str | None:
    """The line of a code; None when it is no code."""
    return all_reasons().get(code)

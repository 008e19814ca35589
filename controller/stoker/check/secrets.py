"""Warns of secrets that stand in Git for everyone to read."""

from __future__ import annotations

from stoker.errors import Finding, Severity
from stoker.model.manifest import Manifest

__all__ = ["check_secrets"]


def check_secrets(manifests: tuple[Manifest, ...]) -> list[Finding]:
    """Warnings `secret-in-git` for Secrets with values; base64 is no protection."""
    findings: list[Finding] = []
    for manifest in manifests:
        if (manifest.ref.group, manifest.ref.kind) != ("", "Secret"):
            continue
        if manifest.body.get("data") or manifest.body.get("stringData"):
            message = f"the values of {manifest.ref} can be read by everyone who can read Git"
            hint = "create it from a secret store, and name it from here"
            findings.append(
                Finding(
                    manifest.source, "secret-in-git", message, hint=hint, severity=Severity.WARNING
                )
            )
    return findings

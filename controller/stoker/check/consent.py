"""Annotations by which a file speaks of one object: known keys, known values, fitting kinds.

Called by check for every unit. A word that nobody obeys would be trusted all the same.
"""

from __future__ import annotations

from stoker.errors import Finding
from stoker.model.manifest import Manifest
from stoker.objects.consent import problems_of

__all__ = ["check_consent"]


def check_consent(manifests: tuple[Manifest, ...]) -> list[Finding]:
    """Findings `invalid-consent`, at the manifest's place."""
    return [
        Finding(
            manifest.source,
            "invalid-consent",
            f"{manifest.ref}: {message}",
            field=f"metadata.annotations[{key}]",
            hint=hint,
        )
        for manifest in manifests
        for key, message, hint in problems_of(manifest.ref, manifest.body)
    ]

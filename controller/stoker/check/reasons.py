"""Every reason code of check, each with one line for people.

The published, closed list: `stoker explain CODE` and docs/reasons.md print it. A test finds
each code that this folder uses in it, and nothing else.
"""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS: dict[str, str] = {
    "deadline-below-starts": "coldStart.deadline is shorter than this fleet's own starts take.",
    "hold-below-starts": "Requests wait for less than a start takes, so the first client gets an error.",
    "dev-mode-exposed": "The engine's development endpoints would be open to everyone.",
    "device-limit-differs": "A device request must equal its limit.",
    "drain-exceeds-grace": "The pod is killed before its drain is over.",
    "engine-container-missing": "Exactly one Deployment must have a container called engine.",
    "gpu-count-differs": "The engine's GPU limit is not gpu.count.",
    "ignore-covers-decision": "An ignore rule covers the count or the place of one of our services.",
    "invalid-annotation": "An annotation is outside the limits of the API server.",
    "invalid-consent": "A stoker.dev annotation has a key, a value or a kind that is not obeyed.",
    "invalid-label": "A label is outside the limits of the API server.",
    "invalid-name": "The name is outside what the kind takes (DNS names for most).",
    "object-defined-twice": "Two files define one object; every unit that does is stopped.",
    "object-too-large": "An object is over 1 MiB.",
    "root-disk-unchecked": "Nobody looks whether a disk is mounted at cache.path before weights come.",
    "secret-in-git": "The values of a Secret can be read by everyone who can read Git.",
    "unit-too-large": "The objects of one unit are over 32 MiB together.",
}

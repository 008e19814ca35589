"""Consent in commit messages: `Stoker-Allow-Delete: ModelService/llm/qwen-7b` or `all`.

Read from the trailers of the commit that is applied, as git reads them: lines `Name: value`
in the closing paragraphs. A sentence that mentions the trailer is no consent.
"""

from __future__ import annotations

import re

__all__ = ["ALLOW_DELETE", "allowed_deletes"]

ALLOW_DELETE = "Stoker-Allow-Delete"

_TRAILER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)\s*:\s*(.*)")
_CONTINUED = re.compile(r"[ \t]+\S")


def allowed_deletes(message: str) -> tuple[str, ...]:
    """Arguments of the trailer (unit refs or `all`), sorted, each once."""
    found: set[str] = set()
    for name, value in _trailers(message):
        if name.lower() == ALLOW_DELETE.lower():
            found.update(word for word in re.split(r"[\s,]+", value) if word)
    return tuple(sorted(found))


def _trailers(message: str) -> list[tuple[str, str]]:
    """Trailers of the last paragraphs, as long as they hold nothing else; never the subject."""
    paragraphs = [
        p for p in re.split(r"\n[ \t]*\n", message.replace("\r\n", "\n").strip()) if p.strip()
    ]
    found: list[tuple[str, str]] = []
    for paragraph in reversed(paragraphs[1:]):
        here: list[tuple[str, str]] = []
        for line in paragraph.splitlines():
            match = _TRAILER.fullmatch(line)
            if match is not None:
                here.append((match[1], match[2]))
            elif here and _CONTINUED.match(line):
                name, value = here[-1]
                here[-1] = (name, f"{value} {line.strip()}")
            else:
                return found
        found += here
    return found

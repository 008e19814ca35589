"""Secrets by value: what stands in a rendered Secret is hidden wherever else it would be printed.

Rendered manifests come in; `KnownSecrets` hides their values in fields and messages. It adds
to objects.masks, which knows secrets by place, name and shape. Used by diff and its prints,
by report for all that it tells, and by the client for what the API server says.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from stoker.model.change import Change, FieldChange
from stoker.objects.masks import HIDDEN, HIDDEN_CHANGED

__all__ = ["KnownSecrets", "joined", "known_secrets"]

SHORTEST = 4
"""Characters of a value that is hidden where it stands alone; shorter ones hide nothing."""
SHORTEST_INSIDE = 8
"""The same where it is part of a longer text: short words stand everywhere by chance. In quotes,
as the API server cites what it refuses, they are hidden all the same."""
_HTML = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&"})
_WORDS = frozenset({"true", "false", "none", "null", "default", "admin", "root", "user"})


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """Values to hide; `inside` are those that are looked for within texts, longest first,
    `quoted` the short ones among them with the quotes around them.
    """

    alone: frozenset[str] = frozenset()
    inside: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.alone)

    def hide(self, value: Any) -> Any:
        """A copy of a printed value without them; keys of maps stay."""
        if isinstance(value, str):
            return HIDDEN if value.strip() in self.alone else self.hide_text(value)
        if isinstance(value, dict):
            return {key: self.hide(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.hide(item) for item in value]
        return value

    def hide_text(self, text: str) -> str:
        """A message without them."""
        if len(text) < SHORTEST:
            return text
        for secret in self.inside:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        for secret in self.quoted:
            if secret in text:
                text = text.replace(secret, f"{secret[0]}{HIDDEN}{secret[0]}")
        return text

    def hide_in(self, change: Change) -> Change:
        """A change fit for print; what is sent stays as it is."""
        fields = tuple(self._field(item) for item in change.fields)
        note = self.hide_text(change.note)
        if fields == change.fields and note == change.note:
            return change
        return replace(change, fields=fields, note=note)

    def _field(self, item: FieldChange) -> FieldChange:
        before, after = self.hide(item.before), self.hide(item.after)
        if before == item.before and after == item.after:
            return item
        if before == after:
            after = HIDDEN_CHANGED
        return FieldChange(item.path, before, after)


def joined(parts: Iterable[KnownSecrets]) -> KnownSecrets:
    """All of them together."""
    found = [part for part in parts if part]
    inside = {text for part in found for text in part.inside}
    quoted = {text for part in found for text in part.quoted}
    alone = frozenset[str]().union(*(part.alone for part in found))
    return KnownSecrets(alone, _longest_first(inside), _longest_first(quoted))


def known_secrets(bodies: Iterable[dict[str, Any]]) -> KnownSecrets:
    """The values of all Secrets among the manifests: plain, in base64, and as they are cited."""
    found = {text for body in bodies if body.get("kind") == "Secret" for text in _values(body)}
    found = {text for text in found if len(text) >= SHORTEST and text.lower() not in _WORDS}
    cited = found | {form for text in found for form in _cited(text)}
    inside = {text for text in cited if len(text) >= SHORTEST_INSIDE}
    quoted = {f"{mark}{text}{mark}" for text in cited - inside for mark in ("'", '"', "`")}
    return KnownSecrets(frozenset(found), _longest_first(inside), _longest_first(quoted))


def _longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def _cited(text: str) -> Iterator[str]:
    """How Go's %q and its JSON write a text; the latter escapes what HTML would read."""
    for form in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        yield form[1:-1]
        yield form[1:-1].translate(_HTML)


def _values(secret: dict[str, Any]) -> Iterator[str]:
    plain, data = secret.get("stringData"), secret.get("data")
    for text in plain.values() if isinstance(plain, dict) else ():
        if isinstance(text, str):
            yield text.strip()
            yield base64.b64encode(text.encode()).decode()
    for text in data.values() if isinstance(data, dict) else ():
        if isinstance(text, str):
            yield text.strip()
            try:
                yield base64.b64decode(text).decode().strip()
            except (binascii.Error, ValueError):
                continue

"""Selectors as kubectl spells them: `app=x,tier!=y,zone in (a,b),!old`.

A text comes in, a `Selector` that answers for labels (or annotations) goes out. Used by the
fleet's ignore rules and by `-l` of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

__all__ = ["Selector", "parse_selector", "selector_text"]

_KEY = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_EQUALS = re.compile(rf"(?P<key>{_KEY})\s*(?P<not>!)?={{1,2}}\s*(?P<value>[^\s,()!=]*)")
_SET = re.compile(rf"(?P<key>{_KEY})\s+(?P<op>in|notin)\s+\((?P<values>[^()]*)\)")
_EXISTS = re.compile(rf"(?P<not>!)?\s*(?P<key>{_KEY})")


@dataclass(frozen=True, slots=True)
class _Term:
    """One requirement: `values` None asks only for the key; `negated` turns it round."""

    key: str
    values: tuple[str, ...] | None
    negated: bool

    def holds(self, given: Mapping[str, object]) -> bool:
        if self.values is None:
            return (self.key in given) != self.negated
        return (self.key in given and given[self.key] in self.values) != self.negated


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; an empty one matches everything."""

    terms: tuple[_Term, ...] = ()

    def matches(self, given: Mapping[str, object] | None) -> bool:
        """Whether labels (None: there are none) meet every requirement."""
        return all(term.holds(given or {}) for term in self.terms)


@cache
def parse_selector(text: str) -> Selector:
    """Read a selector; raises ValueError that says which part is none."""
    terms = []
    for part in _parts(text):
        if found := _EQUALS.fullmatch(part):
            terms.append(_Term(found["key"], (found["value"],), bool(found["not"])))
        elif found := _SET.fullmatch(part):
            values = tuple(value.strip() for value in found["values"].split(","))
            terms.append(_Term(found["key"], values, found["op"] == "notin"))
        elif found := _EXISTS.fullmatch(part):
            terms.append(_Term(found["key"], None, bool(found["not"])))
        else:
            message = f"{part!r} is no requirement: write key=value, key!=value, key in (a,b), !key"
            raise ValueError(message)
    return Selector(tuple(terms))


_WORDS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Mapping[str, Any]) -> str:
    """A manifest's LabelSelector in one line, sorted by key; empty for one that names nothing."""
    parts = [
        (str(key), f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for term in selector.get("matchExpressions") or ():
        key, operator = str(term["key"]), term["operator"]
        values = ",".join(sorted(map(str, term.get("values") or ())))
        if operator in _WORDS:
            parts.append((key, f"{key} {_WORDS[operator]} ({values})"))
        else:
            parts.append((key, key if operator == "Exists" else f"!{key}"))
    return ",".join(text for _, text in sorted(parts))


def _parts(text: str) -> list[str]:
    """The requirements: commas inside brackets part nothing."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]

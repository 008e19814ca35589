"""What the object of another autoscaler becomes: a scaling block, and the servers it asks.

The translations of LLMScalers, HPAs and ScaledObjects fill a `Scaled` and a `MetricSources`; the
texts of files come out. Values of headers never do: a Secret is named in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlsplit

from stoker.cli.import_notes import Notes
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.report import manifest_text

__all__ = [
    "MetricSources",
    "Scaled",
    "decimal_text",
    "label",
    "policy_text",
    "sources_comment",
    "target_text",
    "whole",
    "workload",
]

_NOT_LABEL = re.compile(r"[^a-z0-9]+")
_LONGEST = 63


@dataclass(frozen=True, slots=True)
class Scaled:
    """One translated object. `scaler` is `Kind/name`, `sources` are names of metric sources.

    `scaling` None: it pins its target at zero replicas. `left` are lines for people.
    """

    scaler: str
    name: str
    target: ObjectRef
    scaling: Mapping[str, Any] | None = field(hash=False)
    sources: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(slots=True)
class MetricSources:
    """The servers that imported objects ask: each address with its headers once, named."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What `spec.metricSources` of the Fleet takes, by name."""
    headers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the headers that each Secret must hold."""
    _known: dict[tuple[str, str, tuple[tuple[str, str], ...]], str] = field(default_factory=dict)

    def named(self, kind: str, url: str, headers: Mapping[str, str], notes: Notes, at: str) -> str:
        """The name of a server; the same for the same address and headers.

        Raises Stalled where the address holds a password: it would be in Git.
        """
        plain = url.strip().rstrip("/")
        key = (kind, plain, tuple(sorted(headers.items())))
        if key in self._known:
            return self._known[key]
        try:
            parts = urlsplit(plain)
            host, secret = parts.hostname or "", parts.username is not None
        except ValueError:
            host, secret = "", False
        if not host:
            raise notes.refuse(f"{at} {plain[:80]!r} is no address")
        if secret:
            raise notes.refuse(f"{at} holds a password; put an Authorization header into a Secret")
        name = label(host.partition(".")[0], kind, self.entries)
        server: dict[str, Any] = {"url": plain}
        if headers:
            wanted = f"{name}-headers"
            server["headersFrom"] = [{"secretRef": {"name": wanted}}]
            self.headers[wanted] = tuple(sorted(headers))
        self.entries[name] = {"name": name, kind: server}
        self._known[key] = name
        return name


def label(text: str, otherwise: str, taken: Iterable[str] = ()) -> str:
    """A DNS label that is like the text and not taken."""
    plain = _NOT_LABEL.sub("-", text.lower()).strip("-")[:_LONGEST].rstrip("-") or otherwise
    found, number, used = plain, 2, set(taken)
    while found in used:
        found, number = f"{plain[: _LONGEST - 4]}-{number}", number + 1
    return found


def policy_text(scaled: Scaled, sources: MetricSources) -> str:
    """The ScalePolicy of a translated object, with what belongs into the Fleet file above it."""
    assert scaled.scaling is not None
    target = scaled.target
    body = {
        "apiVersion": names.API_VERSION,
        "kind": "ScalePolicy",
        "metadata": {"name": scaled.name, "namespace": target.namespace},
        "spec": {
            "target": {
                "apiVersion": target.api_version,
                "kind": target.kind,
                "name": target.name,
            },
            "scaling": dict(scaled.scaling),
        },
    }
    head = f"# Imported from {scaled.scaler}.\n"
    return head + sources_comment(scaled.sources, sources) + manifest_text(body)


def sources_comment(wanted: Iterable[str], sources: MetricSources) -> str:
    """Comment lines with the metric sources that a file names; empty for none."""
    entries = [sources.entries[name] for name in sorted(set(wanted))]
    if not entries:
        return ""
    lines = ["It asks these; they belong into the spec of the Fleet file, once:"]
    lines += manifest_text({"metricSources": entries}).splitlines()
    return "".join(f"# {line}\n" for line in lines)


def workload(block: Mapping[str, Any], live: Mapping[str, Any], notes: Notes, at: str) -> ObjectRef:
    """What the object scales, in its own namespace."""
    found = [str(block.get(key) or "") for key in ("apiVersion", "kind", "name")]
    if not all(found):
        raise notes.refuse(f"{at} needs apiVersion, kind and name")
    group, _, version = found[0].rpartition("/")
    namespace = str(live["metadata"].get("namespace") or "default")
    notes.others(block, {"apiVersion", "kind", "name"}, at)
    return ObjectRef(group, found[1], namespace, found[2], version)


def whole(
    block: Mapping[str, Any], name: str, notes: Notes, at: str, otherwise: int | None = None
) -> int:
    """A whole number of at least zero; required where there is no other."""
    value = block.get(name, otherwise)
    if value is None:
        raise notes.refuse(f"{at}.{name} is missing")
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise notes.refuse(f"{at}.{name} {str(value)[:40]!r} is no whole number of at least 0")
    return value


def target_text(value: Any, notes: Notes, at: str) -> str:
    """A target as files write it: a plain decimal above zero."""
    text = str(value).strip()
    if text.endswith("%"):
        raise notes.refuse(
            f"{at} {text[:40]!r} is a percentage, and of what is not said: "
            '"0.8" where the query gives 0 to 1, "80" where it gives 0 to 100'
        )
    found = decimal_text(text)
    if not found or Decimal(found) <= 0:
        raise notes.refuse(f"{at} {text[:40]!r} is no number above zero")
    return found


def decimal_text(text: str) -> str:
    """A finite number without exponent and needless zeros; empty for what is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return ""
    if not number.is_finite() or abs(number.adjusted()) > 15:  # noqa: PLR2004 - digits of a float
        return ""
    plain = format(number, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain

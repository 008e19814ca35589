"""Admission webhooks: which objects a change of theirs makes worth asking about.

The cluster is asked now and then for the two kinds of configurations; rules come out, of
whatever was added, changed or removed since. Only the long-running controller looks, through
the audit; a look that fails is no change. Called by reconcile before diff.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stoker.errors import StokerError
from stoker.log import get_log
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef

__all__ = ["LOOK_MS", "Admission", "AdmissionRule"]

_log = get_log("audit")

GROUP = "admissionregistration.k8s.io"
_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
LOOK_MS = 600_000
"""Between two looks: two small lists in ten minutes, of which the bar of a steady fleet has 100."""
_ANY = "*"


@dataclass(frozen=True, slots=True, order=True)
class AdmissionRule:
    """API groups and resources of one rule; `*` stands for all, subresources are left out."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]

    def matches(self, ref: ObjectRef) -> bool:
        """Whether writes of the object may meet the webhook; in doubt they do.

        The resource of a kind is not known here: words that begin alike count as the same,
        which asks about an object too many.
        """
        if not {_ANY, ref.group} & set(self.groups):
            return False
        stem = ref.kind.lower().removesuffix("y")
        return any(name == _ANY or name.startswith(stem) for name in self.resources)


@dataclass(slots=True)
class Admission:
    """What was seen at the last look; one a process."""

    _look_at_ms: int | None = None
    _known: dict[str, frozenset[AdmissionRule]] = field(default_factory=dict)
    """Rules by what a configuration says; empty before the first look that was answered."""
    _seen: bool = False

    def changed(self, cluster: Cluster, now_ms: int) -> frozenset[AdmissionRule]:
        """Rules of what has come, gone or changed; empty between looks and at the first.

        A fresh process does not look before LOOK_MS: its first pass stays as cheap as it is.
        """
        if self._look_at_ms is None or now_ms < self._look_at_ms - LOOK_MS:
            self._look_at_ms = now_ms + LOOK_MS
        if now_ms < self._look_at_ms:
            return frozenset()
        self._look_at_ms = now_ms + LOOK_MS
        try:
            bodies = [item for kind in _KINDS for item in cluster.list(GROUP, kind).items]
        except StokerError as error:
            _log.info("webhooks.unread", code=error.code)
            return frozenset()
        found = {_said(body): frozenset(_rules(body)) for body in bodies}
        before, self._known = self._known, found
        was_seen, self._seen = self._seen, True
        if not was_seen:
            return frozenset()
        news = before.keys() ^ found.keys()
        return frozenset(rule for key in news for rule in {**before, **found}[key])


def _said(body: dict[str, Any]) -> str:
    """What a configuration says, without its certificates: they are renewed all the time."""
    hooks = [
        {**hook, "clientConfig": {**(hook.get("clientConfig") or {}), "caBundle": ""}}
        for hook in body.get("webhooks") or ()
    ]
    return json.dumps([(body.get("metadata") or {}).get("uid"), hooks], sort_keys=True)


def _rules(body: dict[str, Any]) -> Iterator[AdmissionRule]:
    for hook in body.get("webhooks") or ():
        for rule in hook.get("rules") or ():
            yield AdmissionRule(_words(rule.get("apiGroups")), _resources(rule.get("resources")))


def _words(value: Iterable[Any] | None) -> tuple[str, ...]:
    return tuple(sorted(str(word) for word in value or ()))


def _resources(value: Iterable[Any] | None) -> tuple[str, ...]:
    """Resources proper: of subresources we send scale alone, which no dry run asks about."""
    words = (word.removesuffix("/*") for word in _words(value))
    return tuple(dict.fromkeys(word for word in words if "/" not in word))

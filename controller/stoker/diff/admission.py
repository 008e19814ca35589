"""Admission webhooks and policies: which objects a change of theirs makes worth asking about.

The cluster is asked now and then for each kind that judges or changes what is written; rules
come out, of whatever was added, changed or removed since. Only the long-running controller
looks, through the audit; a kind that cannot be read is no change. Called by reconcile before diff.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stoker.errors import StokerError
from stoker.kube.errors import KindNotFound
from stoker.log import get_log
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef

__all__ = ["LOOK_MS", "Admission", "AdmissionRule"]

_log = get_log("audit")

GROUP = "admissionregistration.k8s.io"
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_POLICIES = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
KINDS = (*_WEBHOOKS, *(kind + suffix for kind in _POLICIES for suffix in ("", "Binding")))
"""What judges or changes objects as they are written; a policy does so where a binding says."""
LOOK_MS = 600_000
"""Between two looks: six small lists in ten minutes, of which the bar of a steady fleet has 100."""
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
    _known: dict[str, dict[str, frozenset[AdmissionRule]]] = field(default_factory=dict)
    """By kind that was read once: rules by what an object says."""

    def changed(self, cluster: Cluster, now_ms: int) -> frozenset[AdmissionRule]:
        """Rules of what has come, gone or changed; empty between looks and at the first.

        A fresh process does not look before LOOK_MS: its first pass stays as cheap as it is.
        """
        if self._look_at_ms is None or now_ms < self._look_at_ms - LOOK_MS:
            self._look_at_ms = now_ms + LOOK_MS
        if now_ms < self._look_at_ms:
            return frozenset()
        self._look_at_ms = now_ms + LOOK_MS
        news: set[AdmissionRule] = set()
        for kind in KINDS:
            bodies = _bodies(cluster, kind)
            if bodies is None:
                continue
            found = {_said(body): frozenset(_rules(body)) for body in bodies}
            before = self._known.get(kind, found)
            self._known[kind] = found
            for key in before.keys() ^ found.keys():
                news |= {**before, **found}[key]
        return frozenset(news)


def _bodies(cluster: Cluster, kind: str) -> tuple[dict[str, Any], ...] | None:
    """All objects of a kind, none where it is not served; None where that is not known."""
    try:
        return cluster.list(GROUP, kind).items
    except KindNotFound:
        return ()
    except StokerError as error:
        _log.info("admission.unread", kind=kind, code=error.code)
        return None


def _said(body: dict[str, Any]) -> str:
    """What an object says, without certificates: they are renewed all the time."""
    hooks = [
        {**hook, "clientConfig": {**(hook.get("clientConfig") or {}), "caBundle": ""}}
        for hook in body.get("webhooks") or ()
    ]
    uid = (body.get("metadata") or {}).get("uid")
    return json.dumps([uid, hooks, body.get("spec")], sort_keys=True)


def _rules(body: dict[str, Any]) -> Iterator[AdmissionRule]:
    """Of a binding without rules of its own, all: which policy it binds may change as well."""
    for hook in body.get("webhooks") or ():
        yield from _rules_in(hook.get("rules"))
    spec = body.get("spec")
    if isinstance(spec, dict):
        matched = spec.get("matchConstraints") or spec.get("matchResources") or {}
        rules = list(_rules_in(matched.get("resourceRules")))
        yield from rules or [AdmissionRule((_ANY,), (_ANY,))]


def _rules_in(rules: Iterable[dict[str, Any]] | None) -> Iterator[AdmissionRule]:
    for rule in rules or ():
        yield AdmissionRule(_words(rule.get("apiGroups")), _resources(rule.get("resources")))


def _words(value: Iterable[Any] | None) -> tuple[str, ...]:
    return tuple(sorted(str(word) for word in value or ()))


def _resources(value: Iterable[Any] | None) -> tuple[str, ...]:
    """Resources proper: of subresources we send scale alone, which no dry run asks about."""
    words = (word.removesuffix("/*") for word in _words(value))
    return tuple(dict.fromkeys(word for word in words if "/" not in word))

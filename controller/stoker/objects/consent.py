"""What the annotations of one object allow: adoption, prune, recreation, being left alone.

A manifest of Git or a live object comes in, `Consents` go out. Diff, apply, prune and the
inventory read the same answers, so that a preview equals what is done. Consent to touch or
delete counts only where Git gave it; protection counts from anybody (decision note 12).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from stoker.model.refs import ObjectRef
from stoker.objects.names import ADOPT, ADOPTED, OWNER, PRUNE, RECONCILE, RECREATE, TEMPLATE
from stoker.objects.owned import our_fields

__all__ = ["Consents", "consents_in_git", "consents_on_live", "problems_of"]

ENABLED, DISABLED, CREATE_ONLY = "enabled", "disabled", "create-only"

_VALUES: dict[str, tuple[str, ...]] = {
    ADOPT: (ENABLED,),
    PRUNE: (ENABLED, DISABLED),
    RECONCILE: (DISABLED, CREATE_ONLY),
    RECREATE: (ENABLED,),
}
"""Every annotation by which a file speaks of one object, with the values it may have."""

_BY_NAME = {key.partition("/")[2]: key for key in _VALUES}

_RECREATED = frozenset({("apps", "Deployment"), ("batch", "Job")})
"""Kinds that lose nothing but their pods when they are deleted and made again."""

_HELM_KEEP = ("helm.sh/resource-policy", "keep")
"""What charts write for the same wish as `prune: disabled`."""


@dataclass(frozen=True, slots=True)
class Consents:
    """What may be done to one object beyond the plain; everything False is the usual case."""

    adopt: bool = False
    """An object of that name that somebody else made is taken over."""
    prune: bool = False
    """It may be deleted although its kind, or its adoption, asks for consent."""
    keep: bool = False
    """It stays when it leaves Git."""
    recreate: bool = False
    """A change of a fixed field is answered by delete and create."""
    left_alone: bool = False
    """It stays as it is live: no drift, no prune."""
    create_only: bool = False
    """It is made where it is absent and never changed; when it leaves Git, prune is as usual."""
    adopted: bool = False
    """Somebody else made it and this fleet took it over."""


_NOTHING = Consents()
_READ = frozenset({*_VALUES, _HELM_KEEP[0], ADOPTED})
"""Annotations that some consent is read from; most objects have none of them."""


def consents_in_git(body: dict[str, Any]) -> Consents:
    """What the manifest of the attempted revision says; values nobody knows say nothing."""
    said = _annotations(body)
    if _READ.isdisjoint(said):
        return _NOTHING
    return Consents(
        adopt=said.get(ADOPT) == ENABLED,
        prune=said.get(PRUNE) == ENABLED,
        keep=_keeps(said),
        recreate=said.get(RECREATE) == ENABLED,
        left_alone=said.get(RECONCILE) == DISABLED,
        create_only=said.get(RECONCILE) == CREATE_ONLY,
    )


def consents_on_live(body: dict[str, Any], manager: str) -> Consents:
    """What a live object says once its manifest is gone.

    What allows a delete counts only where `manager`, which is this fleet, applied it: an
    annotation that somebody typed is no consent. What protects counts whoever wrote it.
    """
    said = _annotations(body)
    if _READ.isdisjoint(said):
        return _NOTHING
    path = ("f:metadata", "f:annotations", f"f:{PRUNE}")
    allowed = said.get(PRUNE) == ENABLED and path in our_fields(body, manager)
    return Consents(
        prune=allowed,
        keep=_keeps(said),
        left_alone=said.get(RECONCILE) == DISABLED,
        adopted=ADOPTED in said,
    )


def problems_of(ref: ObjectRef, body: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(annotation, what is wrong, hint) of each that cannot be obeyed, in the file's order."""
    said = _annotations(body)
    for key, value in said.items():
        allowed = _VALUES.get(key)
        if allowed is not None:
            if value not in allowed:
                words = " or ".join(allowed)
                yield key, f"{value!r} is not known here", f"{words}, or leave the annotation out"
            elif key == RECREATE and (ref.group, ref.kind) not in _RECREATED:
                message = f"a {ref.kind} is never deleted and made again"
                yield key, message, "only a Deployment or a Job is"
            elif key in {ADOPT, RECREATE} and said.get(RECONCILE) == CREATE_ONLY:
                message = f"{CREATE_ONLY} never touches what stands"
                yield key, message, f"leave out this one, or {RECONCILE}: {CREATE_ONLY}"
        elif key in {OWNER, ADOPTED, TEMPLATE} or not key.startswith("stoker.dev/"):
            continue
        elif close := get_close_matches(key.partition("/")[2], _BY_NAME, n=1, cutoff=0.7):
            hint = f"did you mean {_BY_NAME[close[0]]}?"
            yield key, "nothing reads this annotation", hint


def _annotations(body: dict[str, Any]) -> Mapping[str, Any]:
    found = (body.get("metadata") or {}).get("annotations")
    return found if isinstance(found, dict) else {}


def _keeps(said: Mapping[str, Any]) -> bool:
    key, value = _HELM_KEEP
    return said.get(PRUNE) == DISABLED or said.get(key) == value

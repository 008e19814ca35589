"""Names of refs: `main`, `refs/heads/main`, a tag or a commit, and what a remote says of them.

`candidates` turns what a person wrote into full names to ask for; `choose` reads the
answer of ls-remote. Both spellings of one ref give the same SourceRevision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from stoker.errors import Stalled

__all__ = ["RemoteRef", "candidates", "check_ref", "choose", "is_commit", "listed", "short_name"]

HEADS = "refs/heads/"
TAGS = "refs/tags/"
PEELED = "^{}"

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class RemoteRef:
    """A ref as the remote has it. `oid` may be a tag object, `commit` is what it leads to."""

    name: str
    oid: str
    commit: str


def check_ref(ref: str) -> str:
    """The name itself, if git allows it as (part of) a ref; raises Stalled `ref-invalid`."""
    bad = (
        not ref
        or len(ref) > 255
        or ref.startswith(("-", "/", "."))
        or ref.endswith(("/", "."))
        or ref == "@"
        or not ref.isprintable()
        or _FORBIDDEN.search(ref) is not None
    )
    if bad:
        shown = "".join(c if c.isprintable() else "?" for c in ref[:100])
        raise Stalled(f"{shown!r} is not the name of a ref", code="ref-invalid")
    return ref


def candidates(ref: str) -> tuple[str, ...]:
    """The full names that a written ref may stand for: one for a full ref, else two."""
    check_ref(ref)
    if ref == "HEAD" or ref.startswith("refs/"):
        return (ref,)
    return (HEADS + ref, TAGS + ref)


def short_name(ref: str) -> str:
    """`main` for refs/heads/main, `v1` for refs/tags/v1, anything else as it is."""
    return ref.removeprefix(HEADS).removeprefix(TAGS)


def is_commit(text: str) -> bool:
    """Whether the text is a whole object id."""
    return _COMMIT.fullmatch(text) is not None


def listed(out: bytes) -> dict[str, str]:
    """Names and ids of an ls-remote answer; lines of another shape are left out."""
    found: dict[str, str] = {}
    for line in out.decode("utf-8", "replace").splitlines():
        oid, tab, name = line.partition("\t")
        if tab and is_commit(oid):
            found[name] = oid
    return found


def choose(ref: str, names: Iterable[str], answer: dict[str, str]) -> RemoteRef | None:
    """The one ref of the answer that is meant; None when the remote has none of the names.

    Raises Stalled `ref-ambiguous` when a branch and a tag of that name lead to different
    commits: whoever may push the one must not decide for the other.
    """
    found = [
        RemoteRef(name, answer[name], answer.get(name + PEELED, answer[name]))
        for name in names
        if name in answer
    ]
    if len({each.commit for each in found}) > 1:
        raise Stalled(
            f"{ref!r} is a branch and a tag, and they differ",
            code="ref-ambiguous",
            hint=f"write {HEADS}{ref} or {TAGS}{ref}",
        )
    return found[0] if found else None

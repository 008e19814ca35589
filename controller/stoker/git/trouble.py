"""What git's complaints mean: its stderr in, one error of the tree out, no secret in it."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from stoker.errors import Retryable, Stalled, StokerError, Unreachable
from stoker.git.url import redact_url

__all__ = ["Trouble", "classify", "error_of", "folder_error", "one_line", "plain"]

MAX_SHOWN = 300


class Trouble(Enum):
    """What went wrong, as far as the text tells."""

    NOT_FOUND = "repository-not-found"
    DENIED = "repository-denied"
    HOST_KEY = "repository-host-key-unknown"
    REDIRECTED = "repository-redirected"
    TRANSPORT = "repository-url-refused"
    NO_REF = "ref-not-found"
    CORRUPT = "mirror-corrupt"
    UNSAFE = "repository-unsafe"
    DISK_FULL = "disk-full"
    UNUSABLE = "state-folder-unusable"
    UNREACHABLE = "repository-unreachable"


_SIGNS: tuple[tuple[Trouble, str], ...] = (
    (Trouble.DISK_FULL, r"no space left on device|disk quota exceeded|file too large"),
    (
        Trouble.UNUSABLE,
        (
            r"read-only file system|too many open files|too many links|insufficient permission"
            r"|(?:create|open|write|mkdir|rename|unlink|close)\b.*: permission denied"
        ),
    ),
    (Trouble.HOST_KEY, r"host key verification failed|remote host identification has changed"),
    (
        Trouble.DENIED,
        (
            r"authentication failed|could not read (?:user|pass)|terminal prompts disabled"
            r"|permission denied|access denied|returned error: 40[13]|not authorized|permission to .* denied"
            r"|invalid credentials"
        ),
    ),
    (
        Trouble.NOT_FOUND,
        (
            r"repository .*not found|repository .* does not exist|returned error: 404"
            r"|does not appear to be a git repository|no such repository|project .* not found"
        ),
    ),
    (Trouble.REDIRECTED, r"returned error: 30[1278]|unable to update url base from redirection"),
    (Trouble.TRANSPORT, r"transport '.*' not allowed"),
    (Trouble.NO_REF, r"couldn't find remote ref|not our ref|remote error: upload-pack: not our"),
    (
        Trouble.UNSAFE,
        (
            r"fsck error|error in packed file|zero-padded|hasdotgit|hasdotdot|hasdot:|badtree"
            r"|treenotsorted|duplicateentries|nullsha1|missingemail|badtimezone|gitmodules"
        ),
    ),
    (
        Trouble.CORRUPT,
        (
            r"not a git repository|is corrupt|corrupt(?:ed)? (?:loose )?object|object file .* is empty"
            r"|bad object|bad config|unable to (?:read|parse) (?:tree|object|commit)|missing (?:blob|tree|commit)"
            r"|unresolved deltas|did not (?:receive|send) (?:expected object|all necessary objects)"
            r"|packfile .* (?:cannot be|does not|is far)|inflate|garbage at end|hash mismatch"
            r"|unable to resolve reference|invalid sha1 pointer|broken (?:name|ref)|index file .* is too small"
            r"|wrong index|unable to normalize|loose object .* is"
        ),
    ),
)
_LOCAL = frozenset({Trouble.DISK_FULL, Trouble.UNUSABLE})
"""Of our own machine: what the server says of its disk, in `remote:` lines, is none of these."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_PATTERNS = tuple((trouble, re.compile(sign, re.IGNORECASE)) for trouble, sign in _SIGNS)

_NOISE = ("hint:", "warning: redirecting", "Please make sure", "and the repository exists")

_HINTS = {
    Trouble.NOT_FOUND: "check the address, and that the credentials may see it",
    Trouble.DENIED: "check the credentials; a token may have expired",
    Trouble.HOST_KEY: "put the server's host key into the known-hosts file",
    Trouble.REDIRECTED: "write the address that the server redirects to; redirects are never followed",
    Trouble.DISK_FULL: "free space in the state folder",
    Trouble.UNUSABLE: "the state folder must be writable; see --state-folder",
    Trouble.CORRUPT: "the mirror is rebuilt at the next fetch",
    Trouble.NO_REF: "check the branch or tag name",
    Trouble.UNSAFE: "the server sent objects that git's own checks refuse; inspect with git fsck",
}


def classify(errors: str) -> Trouble:
    """The trouble that git's stderr names; anything unknown counts as unreachable."""
    lines = errors.splitlines(keepends=True)
    ours = "".join(line for line in lines if not line.startswith("remote:"))
    for trouble, sign in _PATTERNS:
        if sign.search(ours if trouble in _LOCAL else errors):
            return trouble
    return Trouble.UNREACHABLE


def folder_error(error: OSError, folder: Path) -> Retryable:
    """What a failed access to our own folder means: full, or not to be used for now."""
    trouble = Trouble.DISK_FULL if error.errno in _FULL else Trouble.UNUSABLE
    message = f"the state folder {folder} cannot be used: {error.strerror or error}"
    return Retryable(message, code=trouble.value, hint=_HINTS[trouble])


def error_of(action: str, errors: str, *, shown: str, secrets: Sequence[str] = ()) -> StokerError:
    """The error to raise: Unreachable where the same request may work later, else Stalled."""
    trouble = classify(errors)
    detail = plain(errors, secrets)
    message = f"{action} {shown} failed: {detail or 'git gave no reason'}"
    if trouble is Trouble.UNREACHABLE:
        return Unreachable(message, code=trouble.value)
    if trouble in {*_LOCAL, Trouble.CORRUPT}:
        return Retryable(message, code=trouble.value, hint=_HINTS[trouble])
    return Stalled(message, code=trouble.value, hint=_HINTS.get(trouble, ""))


def plain(errors: str, secrets: Sequence[str] = ()) -> str:
    """Git's last useful lines as one line: no control characters, user parts or secrets."""
    kept = [line for line in errors.splitlines() if not line.startswith(_NOISE)]
    telling = [line for line in kept if line.startswith(("fatal:", "error:", "remote:"))]
    return one_line(telling or kept, secrets)


def one_line(lines: Sequence[str], secrets: Sequence[str] = ()) -> str:
    """The last three lines that say anything, joined and made safe to show."""
    shown = []
    for line in lines:
        masked = line
        for secret in secrets:
            masked = masked.replace(secret, "***")
        printable = "".join(c if c.isprintable() else " " for c in masked).strip()
        if printable:
            shown.append(printable)
    return redact_url("; ".join(shown[-3:]))[:MAX_SHOWN]

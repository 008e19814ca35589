"""Makes one commit in the mirror from files held in memory, and reads what a push answered.

Only objects and one private ref are written: no index, no work tree. Called by
GitRepo.commit_files, which owns the retries.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from stoker.errors import Bug
from stoker.git.command import Git
from stoker.git.refs import is_commit
from stoker.git.trouble import error_of, one_line
from stoker.model.fleet import Blob

__all__ = [
    "AUTHOR",
    "PushVerdict",
    "blob_oid",
    "check_paths",
    "differing",
    "import_commit",
    "verdict_of",
]

AUTHOR = "Stoker <stoker@stoker.invalid>"

_SAFE_PATH = re.compile(r"[A-Za-z0-9_@+=,.-]+(?:/[A-Za-z0-9_@+=,.-]+)*")
_RACES = re.compile(
    r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to update ref"
    r"|reference already exists|incorrect old value|remote ref updated since checkout"
)


class PushVerdict(Enum):
    """PUSHED; RACED: somebody was faster, try again; REFUSED: the server said no."""

    PUSHED = "pushed"
    RACED = "raced"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ImportJob:
    """What a commit holds. `parent` is empty only for the first commit of a branch."""

    parent: str
    files: Mapping[str, bytes | None]
    message: str
    seconds_since_epoch: int


def check_paths(files: Mapping[str, bytes | None]) -> None:
    """Raise Bug for a path that we would never write."""
    for path in files:
        parts = path.split("/")
        if not _SAFE_PATH.fullmatch(path) or any(
            part in {".", ".."} or part.lower() == ".git" for part in parts
        ):
            raise Bug(f"{path!r} is no path for a status file", code="bug")


def blob_oid(content: bytes, like: str = "") -> str:
    """Git's id of a file's content; `like` is an id of the same repository (SHA-1 or SHA-256)."""
    header = b"blob %d\0" % len(content)
    if len(like) == 64:
        return hashlib.sha256(header + content).hexdigest()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def differing(
    files: Mapping[str, bytes | None], tree: Sequence[Blob], like: str
) -> dict[str, bytes | None]:
    """The files that the tree has not, or has otherwise; sorted by path."""
    present = {blob.path: blob.oid for blob in tree}
    changed: dict[str, bytes | None] = {}
    for path, content in sorted(files.items()):
        if content is None:
            if path in present:
                changed[path] = None
        elif present.get(path) != blob_oid(content, like):
            changed[path] = content
    return changed


def import_commit(
    git: Git,
    git_dir: Path,
    ref: str,
    *,
    parent: str,
    files: Mapping[str, bytes | None],
    message: str,
    seconds_since_epoch: int,
    lock: int,
) -> str:
    """Write one commit on top of `parent` (empty: a root) into a private ref; gives its id."""
    job = ImportJob(parent, files, message, seconds_since_epoch)
    answer = git.run(
        *("fast-import", "--quiet", "--done", "--force", "--date-format=raw"),
        git_dir=git_dir,
        stdin=_stream(ref, job),
        inherit=(lock,),
    )
    made = answer.out.decode("ascii", "replace").strip()
    if not answer.ok or not is_commit(made):
        raise error_of("committing into", answer.errors, shown="the mirror")
    return made


def verdict_of(out: bytes, errors: str, secrets: Sequence[str]) -> tuple[PushVerdict, str] | None:
    """What `push --porcelain` says of its one ref, with the server's words when it refused.

    None when there is no such line: the push did not get as far as a ref.
    """
    for line in out.decode("utf-8", "replace").splitlines():
        flag, tab, rest = line.partition("\t")
        if not tab or len(flag) != 1:
            continue
        if flag in " *=+":
            return PushVerdict.PUSHED, ""
        if flag == "!":
            if _RACES.search(rest):
                return PushVerdict.RACED, ""
            reason = one_line([rest.partition("\t")[2]], secrets)
            said = one_line(_remote_lines(errors), secrets)
            return PushVerdict.REFUSED, f"{reason}: {said}" if said else reason
    return None


def _remote_lines(errors: str) -> list[str]:
    lines = [
        line.removeprefix("remote:").strip()
        for line in errors.splitlines()
        if line.startswith("remote:")
    ]
    return [line for line in lines if line]


def _stream(ref: str, job: ImportJob) -> bytes:
    message = job.message.encode()
    lines = [
        b"feature done\n",
        f"commit {ref}\n".encode(),
        b"mark :1\n",
        f"committer {AUTHOR} {job.seconds_since_epoch} +0000\n".encode(),
        b"data %d\n" % len(message),
        message,
        b"\n",
    ]
    if job.parent:
        lines.append(f"from {job.parent}\n".encode())
    for path, content in sorted(job.files.items()):
        if content is None:
            lines.append(f"D {path}\n".encode())
        else:
            lines += [
                f"M 100644 inline {path}\n".encode(),
                b"data %d\n" % len(content),
                content,
                b"\n",
            ]
    lines.append(b"get-mark :1\ndone\n")
    return b"".join(lines)

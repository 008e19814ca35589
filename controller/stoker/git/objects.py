"""Reads commits of one git folder, bare or not: trees, files, messages; never a work tree.

Under GitRepo (its mirror) and LocalRepo (a person's clone).
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TypeAlias

from stoker.errors import Retryable, Stalled
from stoker.git.batch import BatchNames, BatchReader
from stoker.git.command import Git
from stoker.git.refs import is_commit
from stoker.git.trouble import error_of
from stoker.model.fleet import Blob
from stoker.model.left_out import LeftOut, WhyLeftOut

__all__ = ["MAX_BLOB_BYTES", "ObjectStore"]

Listing: TypeAlias = tuple[tuple[Blob, ...], tuple[LeftOut, ...]]
"""The files of a commit and what else it holds, both sorted by path."""
Entries: TypeAlias = dict[bytes, Blob | LeftOut]
"""What each line of a listing says."""

MAX_BLOB_BYTES = 5 * 2**20
"""No manifest comes near; the API server refuses objects over about 1.5 MiB."""
MAX_COMMIT_BYTES = 2**20
MAX_PATH_BYTES = 4096
"""As Linux takes them: nobody could check out a longer one."""
KEPT_TREES = 4

REGULAR = (b"100644", b"100755", b"100664")
NOT_FOLLOWED = (b"120000", b"160000")
"""Modes of symbolic links and of submodules."""


class ObjectStore:
    """The objects of one git folder, read through two long-lived children."""

    def __init__(self, git: Git, git_dir: Path) -> None:
        self._git = git
        self.git_dir = git_dir
        self._reader = BatchReader(git, git_dir)
        self._names = BatchNames(git, git_dir)
        self._trees: OrderedDict[str, Listing] = OrderedDict()
        self._entries: tuple[Entries, ...] = ()
        """Of the last two listings: most lines of a commit stand in the one before it, and files
        and status are two branches read in turn."""

    def close(self) -> None:
        """End the child processes."""
        self._reader.close()
        self._names.close()

    def commit_of(self, revision: str) -> str:
        """The commit that a revision of this folder leads to, empty when there is none."""
        return self._names.oid(f"{revision}^{{commit}}")

    def oid_of(self, ref: str) -> str:
        """What a full ref holds (a tag object as it is), empty when there is no such ref."""
        return self._names.oid(ref)

    def tree(self, commit: str) -> tuple[Blob, ...]:
        """Every regular file of a commit, sorted by path.

        Bytes of a path that are no UTF-8 are shown as escapes. Raises Retryable
        `mirror-corrupt` when the tree cannot be read.
        """
        return self._listed(commit)[0]

    def left_out(self, commit: str) -> tuple[LeftOut, ...]:
        """Every other entry of a commit with why it is no file, sorted by path; raises as `tree`."""
        return self._listed(commit)[1]

    def _listed(self, commit: str) -> Listing:
        kept = self._trees.get(commit)
        if kept is not None:
            return kept
        if not is_commit(commit):
            raise Stalled(f"{commit[:64]!r} is not a commit id", code="ref-not-found")
        answer = self._git.run(
            "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit, git_dir=self.git_dir
        )
        if not answer.ok:
            raise Retryable(
                f"the files of commit {commit[:12]} cannot be listed", code="mirror-corrupt"
            ) from error_of("reading", answer.errors, shown=str(self.git_dir.name))
        entries = _entries_of(answer.out, self._entries)
        self._entries = (entries, *self._entries[:1])
        found = _listing_of(entries)
        self._trees[commit] = found
        while len(self._trees) > KEPT_TREES:
            self._trees.popitem(last=False)
        return found

    def read(self, blobs: tuple[Blob, ...], limit_bytes: int = MAX_BLOB_BYTES) -> tuple[bytes, ...]:
        """Contents in the same order; raises Stalled `file-too-large` naming the path."""
        if not all(is_commit(blob.oid) for blob in blobs):
            raise Stalled("a file without an object id was asked for", code="file-missing")
        try:
            found = self._reader.read([blob.oid for blob in blobs], limit_bytes=limit_bytes)
        except Stalled as error:
            oid, _, rest = error.message.partition(" ")
            path = next((blob.path for blob in blobs if blob.oid == oid), oid)
            raise Stalled(f"{path} {rest}", code=error.code) from None
        return tuple(content for _, content in found)

    def message(self, commit: str) -> str:
        """The commit message, without header."""
        if not is_commit(commit):
            raise Stalled(f"{commit[:64]!r} is not a commit id", code="ref-not-found")
        ((kind, content),) = self._reader.read([commit], limit_bytes=MAX_COMMIT_BYTES)
        if kind != "commit":
            raise Stalled(f"{commit[:12]} is a {kind}, not a commit", code="ref-not-found")
        return content.partition(b"\n\n")[2].decode("utf-8", "replace")

    def forget(self) -> None:
        """Drop the children and every kept tree: the folder was replaced."""
        self.close()
        self._trees.clear()
        self._entries = ()


def _entries_of(listing: bytes, known: tuple[Entries, ...]) -> Entries:
    """Every line of `ls-tree -r -z`; those known already are the same objects again."""
    newest, older = (*known, {}, {})[:2]
    lines = filter(None, listing.split(b"\0"))
    return {line: newest.get(line) or older.get(line) or _entry_of(line) for line in lines}


def _entry_of(line: bytes) -> Blob | LeftOut:
    head, _, raw = line.partition(b"\t")
    path = raw.decode("utf-8", "backslashreplace")
    why = _why_left_out(head[:6], raw)
    return Blob(path, head[12:].decode("ascii")) if why is None else LeftOut(path, why)


def _listing_of(entries: Entries) -> Listing:
    """Each entry as a file, or by name. Git's own order is by bytes, ours by characters."""
    blobs = [entry for entry in entries.values() if isinstance(entry, Blob)]
    left_out = [entry for entry in entries.values() if isinstance(entry, LeftOut)]
    blobs.sort(key=lambda blob: (blob.path, blob.oid))
    left_out.sort(key=lambda each: each.path)
    return tuple(blobs), tuple(left_out)


def _why_left_out(mode: bytes, path: bytes) -> WhyLeftOut | None:
    if mode in NOT_FOLLOWED:
        return WhyLeftOut.LINK
    if mode not in REGULAR:
        return WhyLeftOut.UNREADABLE
    return WhyLeftOut.LONG_PATH if len(path) > MAX_PATH_BYTES else None

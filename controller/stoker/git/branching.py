"""A commit on a new branch of a person's clone; what is there already is never moved.

Only objects and one new ref are written: the index, the work tree and every other ref stay as
they are, and no hook runs. Called by `stoker rollback`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stoker.errors import Stalled
from stoker.git.command import Git
from stoker.git.local import ANYWHERE, find_git_dir
from stoker.git.refs import HEADS, check_ref, is_commit
from stoker.git.trouble import error_of

__all__ = ["Author", "commit_beside", "new_branch"]

_NO_COMMIT = "0" * 40


@dataclass(frozen=True, slots=True)
class Author:
    """Who commits, and when (seconds since the epoch)."""

    name: str
    email: str
    at_seconds: int


def commit_beside(
    clone: Path, parent: str, files: Mapping[str, bytes], message: str, author: Author
) -> str:
    """Write a commit on top of `parent` with these files changed; gives its id. No ref is made."""
    with tempfile.TemporaryDirectory(prefix="stoker-") as folder:
        environment = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {
                f"GIT_{role}_NAME": author.name,
                f"GIT_{role}_EMAIL": author.email,
                f"GIT_{role}_DATE": f"{author.at_seconds} +0000",
            }
        git, git_dir = Git(ANYWHERE, environment=environment), _git_dir(clone)
        _run(git, git_dir, "read-tree", parent)
        for path, content in sorted(files.items()):
            blob = _run(git, git_dir, "hash-object", "-w", "--stdin", "--no-filters", stdin=content)
            _run(git, git_dir, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        tree = _run(git, git_dir, "write-tree")
        made = _run(git, git_dir, "commit-tree", tree, "-p", parent, stdin=message.encode())
    if not is_commit(made):
        raise error_of("committing into", made, shown="the clone")
    return made


def new_branch(clone: Path, branch: str, commit: str) -> None:
    """Make a branch; raises Stalled `branch-exists` where there is one of that name."""
    git, git_dir = Git(ANYWHERE), _git_dir(clone)
    ref = HEADS + check_ref(branch)
    answer = git.run("update-ref", ref, commit, _NO_COMMIT[:40], git_dir=git_dir)
    if not answer.ok:
        raise Stalled(
            f"the clone has a branch {branch} already, or one that is in its way",
            code="branch-exists",
            hint="name another with --branch",
        )


def _git_dir(clone: Path) -> Path:
    found = find_git_dir(clone)
    if found is None:
        raise Stalled(f"{clone} is in no Git clone", code="repository-not-found")
    return found


def _run(git: Git, git_dir: Path, *arguments: str, stdin: bytes = b"") -> str:
    answer = git.run(*arguments, git_dir=git_dir, stdin=stdin)
    if not answer.ok:
        raise error_of("committing into", answer.errors, shown="the clone")
    return answer.out.decode("ascii", "replace").strip()

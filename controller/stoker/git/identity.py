"""Who commits in a clone, as git itself would say; nothing that a configuration names is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stoker.git.command import Git
from stoker.git.local import ANYWHERE, find_git_dir

__all__ = ["identity_of"]


def identity_of(clone: Path, environ: Mapping[str, str]) -> tuple[str, str]:
    """Name and address; empty where neither environment nor configuration has one."""
    git_dir = find_git_dir(clone)
    home = Path(environ.get("HOME") or "/")
    own = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    candidates = (environ.get("GIT_CONFIG_GLOBAL"), home / ".gitconfig", own)
    found = next((str(each) for each in candidates if each and Path(each).is_file()), "")
    git = Git(ANYWHERE, environment={"GIT_CONFIG_GLOBAL": found} if found else {})

    def value(variable: str, key: str) -> str:
        told = environ.get(variable, "")
        if told:
            return told
        return git.run("config", "--get", key, git_dir=git_dir).out.decode("utf-8", "replace")

    return (
        value("GIT_AUTHOR_NAME", "user.name").strip(),
        value("GIT_AUTHOR_EMAIL", "user.email").strip(),
    )

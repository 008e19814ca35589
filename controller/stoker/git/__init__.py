"""Git: the Repo port on a remote repository, on a local clone, and on plain files."""

from __future__ import annotations

from stoker.git.command import RunLimits
from stoker.git.credentials import Credentials
from stoker.git.folder import FolderRepo
from stoker.git.local import LocalRepo, find_git_dir, open_local, toplevel
from stoker.git.repo import GitRepo, RefMove
from stoker.git.url import RepositoryAddress, parse_address, redact_url

__all__ = [
    "GitRepo",
    "FolderRepo",
    "LocalRepo",
    "open_local",
    "Credentials",
    "RunLimits",
    "RefMove",
    "RepositoryAddress",
    "parse_address",
    "redact_url",
    "find_git_dir",
    "toplevel",
]

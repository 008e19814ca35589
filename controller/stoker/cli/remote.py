"""The remote repository of a controller, with its credentials read anew at each use."""

from __future__ import annotations

from pathlib import Path

from stoker.clock import SystemClock
from stoker.credential_file import credential_place, read_credential
from stoker.errors import Stalled
from stoker.git import Credentials, GitRepo
from stoker.kube.gate import WriteGate
from stoker.settings import Settings, SourceSettings

__all__ = ["git_repo"]

UNREADABLE = "credentials-unreadable"


def git_repo(settings: Settings, gate: WriteGate) -> GitRepo:
    """A bare mirror below the state folder; nothing is fetched yet. Pushes ask the gate.

    The folder may lie in somebody's work tree: git there must not see the mirror.
    """
    source = settings.source
    folder = settings.state_folder.absolute() / "git"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    return GitRepo(
        source.repo,
        source.ref,
        folder,
        clock=SystemClock(),
        credentials=lambda: _credentials(source),
        allow_file=source.allow_file,
        home=Path.home(),
        before_push=gate.check,
    )


def _credentials(source: SourceSettings) -> Credentials:
    """Read the files now, so that rotated ones are picked up; a link out is not followed."""
    if source.credentials is None:
        return Credentials(ssh_key=_place(source.ssh_key), known_hosts=_place(source.known_hosts))
    content = read_credential(source.credentials, code=UNREADABLE)
    try:
        line = content.decode()
    except UnicodeDecodeError:
        raise Stalled(f"{source.credentials} is not text", code=UNREADABLE) from None
    return Credentials.from_line(line)


def _place(path: Path | None) -> Path | None:
    return None if path is None else credential_place(path, code=UNREADABLE)

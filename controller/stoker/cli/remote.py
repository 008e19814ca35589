"""The remote repository of a controller, with its credentials read anew at each use."""

from __future__ import annotations

from pathlib import Path

from stoker.clock import SystemClock
from stoker.errors import Stalled
from stoker.git import Credentials, GitRepo
from stoker.kube.gate import WriteGate
from stoker.settings import Settings, SourceSettings

__all__ = ["git_repo"]


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
    found = Credentials(ssh_key=source.ssh_key, known_hosts=source.known_hosts)
    if source.credentials is None:
        return found
    try:
        line = source.credentials.read_text(encoding="utf-8")
    except OSError as error:
        raise Stalled(f"{source.credentials}: {error}", code="credentials-unreadable") from error
    return Credentials.from_line(line)

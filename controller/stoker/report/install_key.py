"""A new SSH deploy key for the fleet repository, made by ssh-keygen in a folder that goes away.

Called by the command line before install; nothing is kept on this machine.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from stoker.errors import Stalled

__all__ = ["DeployKey", "new_deploy_key", "wants_deploy_key"]

KEYGEN_SECONDS = 20


@dataclass(frozen=True, slots=True)
class DeployKey:
    """Both halves: `private` in OpenSSH format, `public` as one line for the forge."""

    private: str = field(repr=False)
    public: str


def wants_deploy_key(repo: str) -> bool:
    """Whether a repository URL is one that ssh opens (`ssh://…` or `git@host:path`)."""
    if "://" in repo:
        return repo.partition("://")[0] in {"ssh", "git+ssh"}
    host, colon, _ = repo.partition(":")
    return bool(colon) and "/" not in host


def new_deploy_key(comment: str) -> DeployKey:
    """Make an ed25519 key without passphrase; raises Stalled where ssh-keygen is missing."""
    with tempfile.TemporaryDirectory(prefix="stoker-key-") as folder:
        path = Path(folder) / "key"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
        try:
            subprocess.run(
                command,
                check=True,
                timeout=KEYGEN_SECONDS,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        except FileNotFoundError as error:
            raise Stalled(
                "ssh-keygen is not installed",
                code="ssh-keygen-missing",
                hint="install the OpenSSH client, or pass --ssh-secret with a Secret of yours",
            ) from error
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise Stalled("ssh-keygen made no key", code="ssh-keygen-failed") from error
        public = path.with_suffix(".pub")
        return DeployKey(path.read_text("ascii"), public.read_text("ascii").strip())

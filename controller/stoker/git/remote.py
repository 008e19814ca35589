"""The other side: asks a remote for refs and pushes to it, with credentials as they are now.

A `Remote` is made for each network use, since tokens rotate, and thrown away after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stoker.errors import Stalled
from stoker.git.command import Git, RunLimits
from stoker.git.commit import PushVerdict, verdict_of
from stoker.git.credentials import Credentials, config_of, secrets_of, ssh_command
from stoker.git.refs import PEELED, RemoteRef, candidates, choose, listed
from stoker.git.trouble import error_of
from stoker.git.url import RepositoryAddress

__all__ = ["Remote", "connect"]


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository as one set of credentials sees it. `secrets` are masked in messages."""

    git: Git
    address: RepositoryAddress
    secrets: tuple[str, ...] = ()

    def list(self, names: tuple[str, ...] = ()) -> dict[str, str]:
        """Refs and what they hold, of those names or (none given) all of them."""
        answer = self.git.run(
            *("ls-remote", "--quiet", "--", self.address.operand, *names),
            seconds=self.git.limits.network_seconds,
        )
        if not answer.ok:
            raise error_of("asking", answer.errors, shown=self.address.shown, secrets=self.secrets)
        return listed(answer.out)

    def find(self, ref: str) -> RemoteRef:
        """The branch or tag of that name; Stalled `repository-empty` or `ref-not-found`."""
        names = candidates(ref)
        found = choose(ref, names, self.list((*names, *(name + PEELED for name in names))))
        if found is not None:
            return found
        if not self.list():
            raise Stalled(
                f"{self.address.shown} is empty: it has no commit yet",
                code="repository-empty",
                hint="push a first commit; nothing is pruned meanwhile",
            )
        raise Stalled(
            f"{self.address.shown} has no branch or tag {ref!r}",
            code="ref-not-found",
            hint="was it deleted or renamed? nothing is pruned meanwhile",
        )

    def push(self, git_dir: Path, commit: str, branch: str) -> tuple[PushVerdict, str]:
        """Push one commit to one full ref, never forced; gives the server's words on a no."""
        answer = self.git.run(
            *("push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"),
            *("--recurse-submodules=no", "--no-progress", "--"),
            *(self.address.operand, f"{commit}:{branch}"),
            git_dir=git_dir,
            seconds=self.git.limits.network_seconds,
        )
        verdict = verdict_of(answer.out, answer.errors, self.secrets)
        if verdict is None:
            raise error_of(
                "pushing to", answer.errors, shown=self.address.shown, secrets=self.secrets
            )
        return verdict


def connect(
    address: RepositoryAddress,
    credentials: Credentials,
    *,
    home: Path,
    limits: RunLimits,
    proxy: str = "",
    user_home: Path | None = None,
) -> Remote:
    """A Remote whose git children may use this address's transport and nothing else."""
    config = list(config_of(credentials, address))
    if proxy:
        config.append(("http.proxy", proxy))
    environment: dict[str, str] = {}
    if address.scheme == "ssh":
        environment["GIT_SSH_COMMAND"] = ssh_command(credentials, user_home)
        environment["GIT_SSH_VARIANT"] = "ssh"
    git = Git(
        home,
        protocols=(address.scheme,),
        config=config,
        environment=environment,
        limits=limits,
    )
    return Remote(git, address, secrets_of(credentials, address))

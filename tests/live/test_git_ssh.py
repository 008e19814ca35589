"""Git over ssh against a real sshd: the deploy key opens the repository, the host key is pinned."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stoker.clock import SystemClock
from stoker.errors import Stalled
from stoker.git import Credentials, GitRepo
from stoker.report.install_key import new_deploy_key

SSHD = Path("/usr/sbin/sshd")
STATUS = "refs/heads/stoker-status/prod"

pytestmark = pytest.mark.skipif(
    not SSHD.exists() or shutil.which("ssh") is None,
    reason="no sshd here: install openssh-server and openssh-client",
)


@dataclass(frozen=True)
class Server:
    """A running sshd that opens one bare repository and nothing else."""

    url: str
    folder: Path
    bare: Path
    key: Path
    known_hosts: Path

    def credentials(
        self, ssh_key: Path | None = None, known_hosts: Path | None = None
    ) -> Credentials:
        return Credentials(ssh_key=ssh_key or self.key, known_hosts=known_hosts or self.known_hosts)

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=You", "-c", "user.email=you@example.invalid")
        done = subprocess.run(
            ["git", *identity, "-C", str(self.bare), *arguments],
            check=True,
            capture_output=True,
            text=True,
            input="",
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        )
        return done.stdout.strip()


def write_key(folder: Path, name: str) -> tuple[Path, str]:
    """A key as `stoker install` makes it: the private part as a file, the public part as text."""
    made = new_deploy_key(name)
    path = folder / name
    path.write_text(made.private, encoding="utf-8")
    path.chmod(0o600)
    return path, made.public


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    pause = threading.Event()
    for _ in range(600):
        if process.poll() is not None:
            raise AssertionError(f"sshd ended: {log.read_text(errors='replace')}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        pause.wait(0.1)
    raise AssertionError("sshd does not answer")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Run sshd on loopback under our own user: temporary host key, one authorized key."""
    bare = tmp_path / "fleet.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    host_key, host_public = write_key(tmp_path, "host")
    key, public = write_key(tmp_path, "deploy")
    only = f'command="git-shell -c \\"$SSH_ORIGINAL_COMMAND\\"",restrict {public}\n'
    (tmp_path / "authorized").write_text(only, encoding="utf-8")
    (tmp_path / "authorized").chmod(0o600)
    port = free_port()
    settings = {
        "AuthorizedKeysFile": tmp_path / "authorized",
        "HostKey": host_key,
        "KbdInteractiveAuthentication": "no",
        "ListenAddress": f"127.0.0.1:{port}",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
    }
    config = tmp_path / "sshd_config"
    config.write_text("".join(f"{k} {v}\n" for k, v in settings.items()), encoding="utf-8")
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text(f"[127.0.0.1]:{port} {host_public}\n", encoding="utf-8")
    if os.geteuid() == 0:  # privilege separation wants its folder; only root's sshd asks for it
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    log = tmp_path / "sshd.log"
    command = [str(SSHD), "-D", "-e", "-f", str(config)]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
    try:
        wait_until_open(port, process, log)
        url = f"ssh://{getpass.getuser()}@127.0.0.1:{port}{bare}"
        yield Server(url, tmp_path, bare, key, known_hosts)
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def commit(server: Server) -> str:
    """The first commit on main."""
    tree = server.git("mktree")
    made = server.git("commit-tree", tree, "-m", "First")
    server.git("update-ref", "refs/heads/main", made)
    return made


def opened(server: Server, folder: str, **instead: Path) -> GitRepo:
    return GitRepo(
        server.url,
        "main",
        server.folder / folder,
        clock=SystemClock(),
        credentials=server.credentials(**instead),
    )


def test_a_deploy_key_fetches_and_pushes_status(server: Server, commit: str) -> None:
    """What `stoker install` makes is all that a forge has to be told."""
    repo = opened(server, "state")
    try:
        found = repo.fetch()
        pushed = repo.commit_files(STATUS, {"status.yaml": b"a: 1\n"}, "Status")

        assert commit == found.commit
        assert pushed.pushed
        assert "a: 1" == server.git("show", f"{STATUS}:status.yaml")
        assert {"status.yaml": b"a: 1\n"} == repo.read_branch(STATUS)
    finally:
        repo.close()


def refused(server: Server, folder: str, **instead: Path) -> Stalled:
    repo = opened(server, folder, **instead)
    try:
        with pytest.raises(Stalled) as caught:
            repo.fetch()
    finally:
        repo.close()
    return caught.value


@pytest.mark.usefixtures("commit")
def test_another_host_key_is_refused_with_one_clear_error(server: Server) -> None:
    """Whoever answers in the server's place gets nothing, and a person reads why."""
    _, other = write_key(server.folder, "other-host")
    pinned = server.folder / "other-known-hosts"
    place = server.known_hosts.read_text(encoding="utf-8").partition(" ")[0]
    pinned.write_text(f"{place} {other}\n", encoding="utf-8")

    error = refused(server, "state", known_hosts=pinned)

    assert "repository-host-key-unknown" == error.code
    assert "known-hosts file" in error.hint
    assert "\n" not in error.message


@pytest.mark.usefixtures("commit")
def test_a_host_that_nobody_pinned_is_refused_too(server: Server) -> None:
    """Trust on first use would trust whoever is there first."""
    empty = server.folder / "no-known-hosts"
    empty.write_text("", encoding="utf-8")

    assert "repository-host-key-unknown" == refused(server, "state", known_hosts=empty).code


@pytest.mark.usefixtures("commit")
def test_another_user_key_is_denied_with_one_clear_error(server: Server) -> None:
    other, _ = write_key(server.folder, "other-deploy")

    error = refused(server, "state", ssh_key=other)

    assert "repository-denied" == error.code
    assert "check the credentials" in error.hint
    assert "\n" not in error.message

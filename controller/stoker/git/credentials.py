"""Credentials of a repository, and how they reach git: by environment, never by arguments.

An HTTP header travels in GIT_CONFIG_KEY/VALUE pairs tied to one origin (an argument list is
readable by every user of the machine, and a redirect must not carry it away); an SSH key
goes into a fixed ssh command that reads no configuration file.
"""

from __future__ import annotations

import base64
import shlex
from dataclasses import dataclass
from pathlib import Path

from stoker.git.url import RepositoryAddress

__all__ = ["Credentials", "config_of", "secrets_of", "ssh_command"]

CONNECT_SECONDS = 15
NOTHING = "/dev/null"


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """What opens a repository. Empty parts are not used.

    `bearer` wins over `password`. `known_hosts` holds the only host keys trusted for ssh;
    without it the user's own file counts. `agent` is the path of an ssh agent's socket.
    """

    username: str = ""
    password: str = ""
    bearer: str = ""
    ssh_key: Path | None = None
    known_hosts: Path | None = None
    agent: str = ""
    ca_file: Path | None = None

    def __repr__(self) -> str:
        return "Credentials(***)"

    @classmethod
    def from_line(cls, line: str, *, ca_file: Path | None = None) -> Credentials:
        """Read `user:password`, or a lone token as password."""
        user, colon, password = line.strip().partition(":")
        if not colon:
            return cls(username="stoker", password=user, ca_file=ca_file)
        return cls(username=user, password=password, ca_file=ca_file)


def config_of(credentials: Credentials, address: RepositoryAddress) -> tuple[tuple[str, str], ...]:
    """Git configuration pairs that authenticate http(s) requests to this origin only."""
    pairs: list[tuple[str, str]] = []
    header = _header(credentials, address)
    if header and address.scheme in {"https", "http"}:
        pairs.append((f"http.{address.origin}/.extraHeader", f"Authorization: {header}"))
    if credentials.ca_file is not None:
        pairs.append(("http.sslCAInfo", str(credentials.ca_file)))
    return tuple(pairs)


def ssh_command(credentials: Credentials, home: Path | None = None) -> str:
    """The ssh command line for GIT_SSH_COMMAND; every option is fixed here.

    `home` is the user's home, whose known_hosts counts when the credentials name none.
    """
    known_hosts = str(credentials.known_hosts or NOTHING)
    if credentials.known_hosts is None and home is not None:
        known_hosts = str(home / ".ssh" / "known_hosts")
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": known_hosts,
        "GlobalKnownHostsFile": NOTHING,
        "IdentitiesOnly": "no" if credentials.agent else "yes",
        "IdentityAgent": credentials.agent or "none",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "PermitLocalCommand": "no",
        "ControlMaster": "no",
        "ControlPath": "none",
        "ConnectTimeout": str(CONNECT_SECONDS),
        "ServerAliveInterval": str(CONNECT_SECONDS),
        "ServerAliveCountMax": "2",
        "UpdateHostKeys": "no",
    }
    words = ["ssh", "-F", NOTHING]
    for name, value in options.items():
        words += ["-o", f"{name}={value}"]
    if credentials.ssh_key is not None:
        words += ["-i", str(credentials.ssh_key)]
    return shlex.join(words)


def secrets_of(credentials: Credentials, address: RepositoryAddress) -> tuple[str, ...]:
    """Every text that must never appear in a message, longest first."""
    header = _header(credentials, address).partition(" ")[2]
    found = {credentials.password, credentials.bearer, address.password, header}
    return tuple(sorted((s for s in found if s), key=lambda s: (-len(s), s)))


def _header(credentials: Credentials, address: RepositoryAddress) -> str:
    if credentials.bearer:
        return f"Bearer {credentials.bearer}"
    username = credentials.username or address.username
    password = credentials.password or address.password
    if not username and not password:
        return ""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()

"""Repository addresses: one strict grammar in, a form that is safe in an argument list out.

Called once when a repository is opened; every message about it shows `shown`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from stoker.errors import Stalled

__all__ = ["RepositoryAddress", "parse_address", "redact_url"]

MAX_CHARACTERS = 2048

_USERINFO = re.compile(r"(?<=://)(?:[^/\s]*@|[^/\s:]*:(?![0-9]{1,5}(?:[/\s]|$))[^\s'\"]*@)")
"""The user part up to the last @ of the host's part; also where a password holds a slash, which
shows by its colon, unless that may as well be a port."""
_QUERY = re.compile(r"(://[^\s?#'\"]*)[?#][^\s'\"]*")
_SCP_FORM = re.compile(r"(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@(?P<host>[^:/\s]+):(?P<path>[^/].*)")
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z]+)://(?:(?P<user>[^/@:]*)(?::(?P<password>[^/@]*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^/@:\[\]]*)(?::(?P<port>[0-9]{1,5}))?(?P<path>/.*)"
)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PATH = re.compile(r"/[A-Za-z0-9._~/+@%=,:-]+")
_ENCODED_CONTROL = re.compile(r"%(?:[01][0-9A-Fa-f]|7[fF])")
_LOOPBACK = re.compile(r"localhost|\[::1\]|127\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """A parsed address. `operand` goes to git and holds no secret; `shown` goes to people.

    `origin` is `scheme://host[:port]`, to which credentials are tied; empty for files.
    """

    scheme: str
    operand: str
    shown: str
    origin: str = ""
    username: str = ""
    password: str = ""


def parse_address(url: str, *, allow_file: bool = False) -> RepositoryAddress:
    """Read https, ssh (also `git@host:path`), http on loopback and, if allowed, a local path.

    Raises Stalled `repository-url-refused` for everything else: other transports can run
    programs, and control characters or a leading dash once reached helpers as options.
    """
    if not url or len(url) > MAX_CHARACTERS or not url.isascii() or not url.isprintable():
        raise _refused(url, "it is empty, too long, or has characters outside printable ASCII")
    if url.startswith("-"):
        raise _refused(url, "it begins with a dash")
    if url.startswith(("/", "file://")):
        return _local(url, allow_file=allow_file)
    scp = _SCP_FORM.fullmatch(url)
    spelled = f"ssh://{scp['user']}@{scp['host']}/{scp['path']}" if scp else url
    match = _ADDRESS.fullmatch(spelled)
    if match is None or match["scheme"] not in {"https", "ssh", "http"}:
        raise _refused(url, "use https://, ssh:// or git@host:path")
    _check_parts(url, match)
    return _remote(match)


def redact_url(text: str) -> str:
    """The text with the user part and the query of every URL in it replaced by `***`."""
    return _QUERY.sub(r"\1?***", _USERINFO.sub("***@", text))


def _check_parts(url: str, match: re.Match[str]) -> None:
    if not _HOST.fullmatch(match["host"]):
        raise _refused(url, "the host is not a name or an address")
    if match["port"] and not 0 < int(match["port"]) < 65536:
        raise _refused(url, "the port is out of range")
    if not _PATH.fullmatch(match["path"]) or _ENCODED_CONTROL.search(match["path"]):
        raise _refused(url, "the path has characters that no repository needs")
    if any(part.startswith("-") for part in match["path"].split("/")):
        raise _refused(url, "a part of the path begins with a dash")
    if match["scheme"] == "http" and not _LOOPBACK.fullmatch(match["host"]):
        raise _refused(url, "http is unencrypted, and allowed only on this machine; use https")
    if match["scheme"] == "ssh":
        if match["password"] is not None:
            raise _refused(url, "an ssh address takes a key, not a password")
        if match["user"] is not None and not _USER.fullmatch(match["user"]):
            raise _refused(url, "the user name has characters that no user name needs")


def _remote(match: re.Match[str]) -> RepositoryAddress:
    scheme, host, path = match["scheme"], match["host"], match["path"]
    place = f"{host}:{match['port']}" if match["port"] else host
    if scheme == "ssh":
        user = f"{match['user']}@" if match["user"] else ""
        return RepositoryAddress(
            scheme,
            operand=f"ssh://{user}{place}{path}",
            shown=f"ssh://{place}{path}",
            origin=f"ssh://{place}",
        )
    plain = f"{scheme}://{place}{path}"
    return RepositoryAddress(
        scheme,
        operand=plain,
        shown=plain,
        origin=f"{scheme}://{place}",
        username=unquote(match["user"] or ""),
        password=unquote(match["password"] or ""),
    )


def _local(url: str, *, allow_file: bool) -> RepositoryAddress:
    if not allow_file:
        raise _refused(url, "a path of this machine is allowed only for demo and tests")
    path = url.removeprefix("file://")
    if not path.startswith("/"):
        raise _refused(url, "a file address names no host")
    return RepositoryAddress("file", operand=f"file://{path}", shown=f"file://{path}")


def _refused(url: str, why: str) -> Stalled:
    return Stalled(
        f"repository address {_shown(url)!r} is refused: {why}",
        code="repository-url-refused",
        hint="for instance https://forge.example/team/fleet.git",
    )


def _shown(url: str) -> str:
    """What of a refused address can be no secret: it follows no grammar that would tell."""
    scheme, separator, rest = url.rpartition("://")
    plain, *query = re.split(r"[?#]", rest)
    mark = "?" if query else ""
    if any("@" in part for part in query):  # a query, or a password with a question mark?
        plain = ""
    user, at, place = plain.rpartition("@")
    shown = f"{scheme}{separator}{'***@' if user or at else ''}{place}{mark and '?***'}"
    return "".join(c if c.isprintable() else "?" for c in shown[:200])

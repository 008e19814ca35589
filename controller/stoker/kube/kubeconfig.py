"""How to reach the API server and as whom, from kubeconfig files or from inside a pod.

Paths and environment come in, an `Access` goes out, which `kube.https` turns into
connections. The files are read by rules of our own (kubectl's merge order): programs
named in them (exec, auth-provider) are refused unless the caller allows them.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from stoker.credential_file import read_credential
from stoker.errors import Stalled

__all__ = ["Access", "access_from_kubeconfig", "access_in_cluster"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts a pod's token and CA (Kubernetes documentation)."""
MAX_FILE_BYTES = 4 * 1024 * 1024

_PROGRAMS = ("exec", "auth-provider")
_NOT_OBEYED = ("username", "password", "as", "as-uid", "as-groups", "as-user-extra")


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API server is and what to show it. Secrets never appear in its repr.

    `token_file` is read when the token is first needed and again after a 401. `ca_pem`
    empty means the system's trust store. `client_certificate` and `client_key` are PEM; where
    they and the authority come from files, these are named, and read again (`kube.connections`).
    `login` is True when a program must be asked for credentials (see `kube.login`).
    """

    server: str
    ca_pem: bytes = field(default=b"", repr=False)
    insecure: bool = False
    tls_server_name: str = ""
    client_certificate: bytes = field(default=b"", repr=False)
    client_key: bytes = field(default=b"", repr=False)
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    proxy_url: str = field(default="", repr=False)
    namespace: str = "default"
    context: str = ""
    login: bool = False
    files: tuple[str, ...] = ()


def access_from_kubeconfig(
    path: str | Path | None = None,
    context: str | None = None,
    *,
    allow_exec: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Access:
    """Read one file, or what KUBECONFIG lists, or ~/.kube/config; `context` None is the current.

    As kubectl does, the first file that names a cluster, user or context wins, and
    relative paths stand beside the file that says them. Raises Stalled with code
    kubeconfig-not-found, kubeconfig-invalid, kubeconfig-unsupported or
    kubeconfig-exec-refused.
    """
    merged, files = _merged(path, os.environ if environment is None else environment)
    name = context or merged.current
    if not name:
        raise _invalid("no context is named and the kubeconfig has no current-context", files)
    chosen = merged.entry("contexts", name, files)
    cluster_name, user_name = _text(chosen.body, "cluster"), _text(chosen.body, "user")
    cluster = merged.entry("clusters", cluster_name, files)
    user = merged.entry("users", user_name, files) if user_name else _Entry({}, chosen.folder)
    login = _needs_login(user, user_name, allow_exec=allow_exec)
    server = _text(cluster.body, "server").rstrip("/")
    _check_server(server, files)
    return Access(
        server=server,
        ca_pem=_bytes(cluster, "certificate-authority"),
        ca_file=_file(cluster, "certificate-authority"),
        insecure=cluster.body.get("insecure-skip-tls-verify") is True,
        tls_server_name=_text(cluster.body, "tls-server-name"),
        proxy_url=_text(cluster.body, "proxy-url"),
        client_certificate=b"" if login else _bytes(user, "client-certificate"),
        client_key=b"" if login else _bytes(user, "client-key"),
        certificate_file="" if login else _file(user, "client-certificate"),
        key_file="" if login else _file(user, "client-key"),
        token="" if login else _token(user),
        token_file="" if login else _token_file(user),
        namespace=_text(chosen.body, "namespace") or "default",
        context=name,
        login=login,
        files=tuple(str(file) for file in files),
    )


def access_in_cluster(
    *, environment: Mapping[str, str] | None = None, folder: Path = SERVICE_ACCOUNT
) -> Access:
    """Use the service account of the pod we run in; Stalled (not-in-cluster) outside one."""
    variables = os.environ if environment is None else environment
    host = variables.get("KUBERNETES_SERVICE_HOST", "")
    port = variables.get("KUBERNETES_SERVICE_PORT", "")
    token, authority = folder / "token", folder / "ca.crt"
    if not host or not port or not token.is_file() or not authority.is_file():
        raise Stalled(
            "not inside a pod: the service environment or the mounted account is missing",
            code="not-in-cluster",
            hint="name a kubeconfig, or let the pod mount its service account token",
        )
    namespace = folder / "namespace"
    place = f"[{host}]" if ":" in host else host
    return Access(
        server=f"https://{place}:{port}",
        ca_pem=read_credential(authority, code="kubeconfig-not-found"),
        ca_file=str(authority),
        token_file=str(token),
        namespace=_read(namespace).decode().strip() if namespace.is_file() else "default",
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    body: dict[str, Any]
    folder: Path


@dataclass(frozen=True, slots=True)
class _Merged:
    current: str
    entries: dict[tuple[str, str], _Entry]

    def entry(self, section: str, name: str, files: tuple[Path, ...]) -> _Entry:
        found = self.entries.get((section, name))
        if found is None:
            raise _invalid(f"there is no {section.removesuffix('s')} {name!r}", files)
        return found


def _merged(
    path: str | Path | None, environment: Mapping[str, str]
) -> tuple[_Merged, tuple[Path, ...]]:
    files = _candidates(path, environment)
    current = ""
    entries: dict[tuple[str, str], _Entry] = {}
    for file in files:
        document = _document(file)
        current = current or _text(document, "current-context")
        for section, inner in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for item in _named(document, section, file):
                body = item.get(inner) or {}
                if not isinstance(body, dict):
                    raise _invalid(f"{section} entry {item['name']!r} is not a map", (file,))
                entries.setdefault((section, item["name"]), _Entry(body, file.parent))
    return _Merged(current, entries), files


def _candidates(path: str | Path | None, environment: Mapping[str, str]) -> tuple[Path, ...]:
    if path is not None:
        wanted = [Path(path)]
    elif environment.get("KUBECONFIG"):
        wanted = [Path(part) for part in environment["KUBECONFIG"].split(os.pathsep) if part]
    else:
        wanted = [Path(environment.get("HOME") or "~").expanduser() / ".kube" / "config"]
    found = tuple(file for file in wanted if file.is_file())
    if not found:
        names = ", ".join(str(file) for file in wanted)
        raise Stalled(
            f"no kubeconfig at {names}",
            code="kubeconfig-not-found",
            hint="name one with --kubeconfig or KUBECONFIG",
        )
    return found


def _document(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(_read(file))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        # The parser's message quotes the text around the fault, which may be a token.
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise _invalid(f"it is not YAML{where}", (file,)) from None
    if not isinstance(document, dict):
        raise _invalid("it holds no map", (file,))
    return document


def _named(document: dict[str, Any], section: str, file: Path) -> list[dict[str, Any]]:
    items = document.get(section) or []
    if not isinstance(items, list) or not all(
        isinstance(item, dict) and isinstance(item.get("name"), str) for item in items
    ):
        raise _invalid(f"{section} is not a list of named entries", (file,))
    return items


def _needs_login(user: _Entry, name: str, *, allow_exec: bool) -> bool:
    programs = [key for key in _PROGRAMS if user.body.get(key)]
    if programs and not allow_exec:
        raise Stalled(
            f"user {name!r} of the kubeconfig asks to run a program ({programs[0]})",
            code="kubeconfig-exec-refused",
            hint="allow it (allow exec), or use a token or a client certificate",
        )
    unsupported = [key for key in _NOT_OBEYED if user.body.get(key)]
    if unsupported:
        raise Stalled(
            f"user {name!r} of the kubeconfig sets {', '.join(unsupported)}, "
            "which is not supported",
            code="kubeconfig-unsupported",
            hint="use a token or a client certificate",
        )
    return bool(programs)


def _check_server(server: str, files: tuple[Path, ...]) -> None:
    try:
        parts = urlsplit(server)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname
        wrong = wrong or parts.port == 0 or bool(parts.username or parts.password)
    except ValueError:
        wrong = True
    if wrong:
        raise _invalid("the cluster's server is not an http(s) address without a user", files)


def _token(user: _Entry) -> str:
    return "" if _token_file(user) else _text(user.body, "token").strip()


def _token_file(user: _Entry) -> str:
    """As in kubectl, a token file takes precedence over an inline token."""
    name = _text(user.body, "tokenFile")
    return str(user.folder / name) if name else ""


def _bytes(entry: _Entry, key: str) -> bytes:
    """Inline data wins over a file name, as in kubectl."""
    inline = _text(entry.body, f"{key}-data")
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except (binascii.Error, ValueError):
            raise _invalid(f"{key}-data is not base64", ()) from None
    name = _file(entry, key)
    return read_credential(Path(name), code="kubeconfig-not-found") if name else b""


def _file(entry: _Entry, key: str) -> str:
    """The path of a file that is named in place of inline data; empty without one."""
    name = "" if _text(entry.body, f"{key}-data") else _text(entry.body, key)
    return str(entry.folder / name) if name else ""


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _invalid(f"{key} is not text", ())
    return value


def _read(file: Path) -> bytes:
    """A whole file of credentials; raises Stalled (kubeconfig-not-found, kubeconfig-invalid)."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Stalled(
            f"{file} cannot be read: {error.strerror}", code="kubeconfig-not-found"
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise Stalled(f"{file} is over {MAX_FILE_BYTES} bytes", code="kubeconfig-invalid")
    return content


def _invalid(message: str, files: tuple[Path, ...]) -> Stalled:
    place = f" ({', '.join(str(file) for file in files)})" if files else ""
    return Stalled(f"kubeconfig{place}: {message}", code="kubeconfig-invalid")

"""Git over smart HTTP on loopback, with users and faults: the Git host of tests and demo.

In: a folder for bare repositories and a table of users. Out: `GitServer`, whose requests go
through git's own `http-backend`, so clients meet the real protocol. `GitFault` says how it
misbehaves: status codes, hanging, answers cut short, a dead host.
"""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

__all__ = ["FULL_DISK", "GitFault", "GitRequest", "GitServer"]

_HANG_POLL_SECONDS = 0.05
_SLOW_SECONDS = 0.2
FULL_DISK = 'trap "" XFSZ; ulimit -f 0; exec "$@"'
"""A shell that runs a program for which every write to a file fails, as on a full disk."""


@dataclass(frozen=True, slots=True)
class GitFault:
    """One way to misbehave, for requests whose path contains `path`; `times` None = always.

    Exactly one of the others is set. `status` answers with that code. `hang` answers nothing
    and keeps the connection until the fault is healed or the server stops. `truncate` cuts
    the answer's body after that many bytes. `dead` closes the connection without a word.
    `full` lets the host's git write no byte to disk, as on a full one. `slow` sends the answer's
    body byte by byte, a few a second, until it is healed.
    Paths end in `info/refs`, `git-upload-pack` (fetch) or `git-receive-pack` (push).
    """

    path: str = ""
    times: int | None = None
    status: int = 0
    hang: bool = False
    truncate: int | None = None
    dead: bool = False
    full: bool = False
    slow: bool = False


@dataclass(frozen=True, slots=True)
class GitRequest:
    """One request as it was answered; `user` is empty for nobody, `status` 0 for no answer."""

    method: str
    path: str
    user: str
    status: int


class GitServer:
    """Serves every bare repository in `folder`; a context manager.

    Without `users` everybody may read and write. With users (name to password) everybody must
    be one of them, and those in `read_only` may not push. `users` may change while it runs, as
    when a token expires. Several servers may share a folder.
    """

    def __init__(
        self,
        folder: Path,
        users: Mapping[str, str] | None = None,
        *,
        read_only: frozenset[str] = frozenset(),
    ) -> None:
        self.folder = folder
        self.users = dict(users or {})
        self.read_only = read_only
        self._lock = threading.Lock()
        self._faults: list[tuple[GitFault, int | None]] = []
        self._requests: list[GitRequest] = []
        self._stopping = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.host = self
        self._thread = threading.Thread(
            target=self._http.serve_forever,
            kwargs={"poll_interval": 0.05},
            name="git-http",
            daemon=True,
        )

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()

    @property
    def requests(self) -> tuple[GitRequest, ...]:
        """Everything asked so far, in the order of the answers."""
        with self._lock:
            return tuple(self._requests)

    def create_repo(self, name: str, *, default_branch: str = "main") -> Path:
        """Make an empty bare repository `name` (without .git) and give its folder."""
        path = self.folder / f"{name}.git"
        _git("init", "--quiet", "--bare", f"--initial-branch={default_branch}", str(path))
        # Without it http-backend refuses pushes of anonymous users.
        _git("-C", str(path), "config", "http.receivepack", "true")
        # Partial fetches and fetches of a bare commit id, as large hosts allow them.
        _git("-C", str(path), "config", "uploadpack.allowFilter", "true")
        _git("-C", str(path), "config", "uploadpack.allowAnySHA1InWant", "true")
        return path

    def url(self, name: str, *, user: str = "") -> str:
        """Where that repository is cloned from; with `user` its name and password stand in it."""
        port = int(self._http.server_address[1])
        who = ""
        if user:
            who = f"{quote(user, safe='')}:{quote(self.users[user], safe='')}@"
        return f"http://{who}127.0.0.1:{port}/{name}.git"

    def break_with(self, fault: GitFault) -> None:
        """Misbehave from now on; of several faults the first that fits is used."""
        with self._lock:
            self._faults.append((fault, fault.times))

    def heal(self) -> None:
        """Forget every fault; what hangs is then answered with 503."""
        with self._lock:
            self._faults.clear()

    def take_fault(self, path: str) -> GitFault | None:
        """The fault for a request to that path, counted as used once."""
        with self._lock:
            for index, (fault, left) in enumerate(self._faults):
                if fault.path not in path:
                    continue
                if left is not None:
                    self._faults[index] = (fault, left - 1)
                    if left == 1:
                        del self._faults[index]
                return fault
        return None

    def hang(self, fault: GitFault) -> None:
        """Return when the fault is healed or the server stops."""
        while not self._stopping.wait(_HANG_POLL_SECONDS):
            if self._is_healed(fault):
                return

    def trickle(self, fault: GitFault, to: BufferedIOBase, body: bytes) -> int:
        """Send byte by byte until the fault is healed; gives how many were sent."""
        for sent in range(len(body)):
            if self._stopping.wait(_SLOW_SECONDS) or self._is_healed(fault):
                return sent
            to.write(body[sent : sent + 1])
        return len(body)

    def _is_healed(self, fault: GitFault) -> bool:
        with self._lock:
            return fault.times is None and all(fault is not f for f, _ in self._faults)

    def record(self, request: GitRequest) -> None:
        """Note an answered request."""
        with self._lock:
            self._requests.append(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    host: GitServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that go away are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        self._serve(b"")

    def do_POST(self) -> None:  # noqa: N802
        self._serve(self._body())

    def _serve(self, body: bytes) -> None:
        host = self.server.host
        user = self._user()
        fault = host.take_fault(self.path)
        if fault is not None and fault.hang:
            host.hang(fault)
            fault = GitFault(status=503)
        if fault is not None and fault.dead:
            self.close_connection = True
            self._note(user or "", 0)
        elif fault is not None and fault.status:
            self._refuse(fault.status, user or "")
        elif user is None:
            self._refuse(401, "", {"WWW-Authenticate": 'Basic realm="git"'})
        elif user in host.read_only and "git-receive-pack" in self.path:
            self._refuse(403, user)
        else:
            self._backend(body, user, fault or GitFault())

    def _user(self) -> str | None:
        """Who asks: empty for anybody where no users are set, None for a stranger."""
        users = self.server.host.users
        if not users:
            return ""
        scheme, _, value = (self.headers.get("Authorization") or "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(value).decode().partition(":")
        except ValueError:
            return None
        return name if users.get(name) == password else None

    def _backend(self, body: bytes, user: str, fault: GitFault) -> None:
        url = urlsplit(self.path)
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.server.host.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROJECT_ROOT": str(self.server.host.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            # The repositories may belong to another user than the one who runs the tests.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "REMOTE_ADDR": "127.0.0.1",
            "REMOTE_USER": user,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        command = ["git", "http-backend"]
        if fault.full:
            command = ["sh", "-c", FULL_DISK, "sh", *command]
        answer = subprocess.run(
            command, env=environment, input=body, capture_output=True, check=False
        )
        head, _, content = answer.stdout.partition(b"\r\n\r\n")
        status = 200
        headers = {}
        for line in head.decode().splitlines():
            name, _, value = line.partition(":")
            if name.lower() == "status":
                status = int(value.split()[0])
            elif name:
                headers[name] = value.strip()
        self._answer(status, headers, content, user, fault)

    def _refuse(self, status: int, user: str, headers: dict[str, str] | None = None) -> None:
        self._answer(status, headers or {}, b"", user, GitFault())

    def _answer(
        self, status: int, headers: dict[str, str], body: bytes, user: str, fault: GitFault
    ) -> None:
        self._note(user, status)
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() != "content-length":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = self.server.host.trickle(fault, self.wfile, body) if fault.slow else 0
        self.wfile.write(body[sent : fault.truncate])
        if fault.truncate is not None:
            self.close_connection = True

    def _note(self, user: str, status: int) -> None:
        self.server.host.record(GitRequest(self.command, self.path, user, status))

    def _body(self) -> bytes:
        """The request's body; git sends large packs in chunks."""
        if "chunked" not in (self.headers.get("Transfer-Encoding") or "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)

"""A TLS proxy between a controller and its API server that treats requests by a plan.

In: the API server's address, a certificate, and the windows of a plan. Out: the same answers,
or faults; and a note of each request that went on, with its body, for the oracle. Plain
threads; one proxy a controller.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import ssl
import subprocess
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from faults.plan import ApiFault, Kind, Only, Window
from stoker.clock import SystemClock

__all__ = ["Forwarded", "Proxy", "make_certificate"]

CLOCK = SystemClock()
_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive", "host"})
PAGE = b"<html><body>502 Bad Gateway</body></html>"
REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
}
_WATCH_END_SECONDS = 1.0
_LONGEST_HANG = 60.0


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A request that went on to the API server, and its answer's status (0: none came)."""

    at_ms: int
    method: str
    path: str
    body: bytes
    status: int
    by: str = ""
    """The controller that sent it."""


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Key and self-signed certificate for 127.0.0.1, made for this run."""
    key, pem = folder / "proxy-key.pem", folder / "proxy-cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key), "-out", str(pem)),
            *("-days", "2", "-subj", "/CN=fault-proxy", "-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return key, pem


class Proxy:
    """Serves until closed; a context manager. `begin` starts the plan's clock."""

    def __init__(
        self,
        upstream: str,
        authority: Path,
        certificate: tuple[Path, Path],
        *,
        seed: int,
        client: str = "",
    ) -> None:
        self.client = client
        self._to = urlsplit(upstream)
        self.upstream_tls = ssl.create_default_context(cafile=str(authority))
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate[1], certificate[0])
        self._draw = random.Random(seed)
        self._lock = threading.Lock()
        self._windows: tuple[Window, ...] = ()
        self._begun: float | None = None
        self._forwarded: list[Forwarded] = []
        self._streams: set[_Handler] = set()
        self._lists: dict[str, bytes] = {}
        self.counts: dict[str, int] = {}
        self.stopping = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.proxy = self
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._http.server_address[1]}"

    @property
    def forwarded(self) -> tuple[Forwarded, ...]:
        """What went on, by arrival at the proxy."""
        with self._lock:
            return tuple(self._forwarded)

    def begin(self, windows: tuple[Window, ...]) -> None:
        """Treat requests by these windows from now on."""
        with self._lock:
            self._windows, self._begun = windows, CLOCK.monotonic()
        for window in windows:
            if window.fault.kind in {Kind.DROP, Kind.WATCH_END}:
                timer = threading.Timer(window.start, self._end_streams)
                timer.daemon = True
                timer.start()

    def _end_streams(self) -> None:
        """Watches that run already meet the fault as well."""
        with self._lock:
            running = list(self._streams)
        for handler in running:
            handler.hang_up()

    def streaming(self, handler: _Handler, *, now: bool) -> None:
        """Note that a watch runs, or does no more."""
        with self._lock:
            (self._streams.add if now else self._streams.discard)(handler)

    def silences_watches(self) -> bool:
        """Whether a watch that runs goes silent now."""
        with self._lock:
            silent = any(w.fault.kind is Kind.WATCH_HANG for w in self._now())
            if silent:
                self.counts["watch-silent"] = self.counts.get("watch-silent", 0) + 1
            return silent

    def end(self) -> None:
        """Let everything through; what hangs goes on within a moment."""
        with self._lock:
            self._windows = ()

    @property
    def is_faulty(self) -> bool:
        return bool(self._windows)

    def repeats_watches(self) -> bool:
        """Whether a watch tells everything twice now, and in another order."""
        with self._lock:
            repeats = any(w.fault.kind is Kind.WATCH_REPEAT for w in self._now())
            if repeats:
                self.counts["watch-repeated"] = self.counts.get("watch-repeated", 0) + 1
            return repeats

    def _now(self) -> list[Window]:
        if self._begun is None:
            return []
        now = CLOCK.monotonic() - self._begun
        return [window for window in self._windows if window.start <= now < window.end]

    def older_list(self, path: str, content: bytes) -> bytes:
        """What this list said first of all, kept from when no fault was due; else what it says."""
        with self._lock:
            return self._lists.get(path, content)

    def keep_list(self, path: str, content: bytes) -> None:
        """Remember what a list says, for times when it is to be answered as before."""
        with self._lock:
            self._lists[path] = content

    def fault_for(self, method: str, path: str) -> ApiFault | None:
        """How to treat a request that comes now."""
        with self._lock:
            for window in self._now():
                fault = window.fault
                if fault.fits(method, path) and self._draw.random() < fault.share:
                    self.counts[str(fault)] = self.counts.get(str(fault), 0) + 1
                    return fault
            return None

    def note(self, request: Forwarded) -> None:
        with self._lock:
            self._forwarded.append(request)

    def upstream(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            str(self._to.hostname), self._to.port, context=self.upstream_tls, timeout=400
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: broken connections are the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        self.raw = self.request
        self.raw.settimeout(400)
        try:
            self.request = self.server.proxy.tls.wrap_socket(self.raw, server_side=True)
        except OSError:
            self.raw.close()
            raise
        # wrap_socket takes the descriptor over: look at a copy to learn whether it was closed
        self.peek = socket.socket(fileno=os.dup(self.request.fileno()))
        self._upstream: http.client.HTTPSConnection | None = None
        self._answer_open: http.client.HTTPResponse | None = None
        super().setup()

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self._part()
            self.peek.close()
            self.request.close()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def _serve(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        watch = "watch=true" in self.path
        fault = proxy.fault_for(self.command, self.path)
        kind = None if fault is None else fault.kind
        if fault is not None:
            if kind is Kind.DROP:
                return self.hang_up()
            if kind is Kind.STATUS:
                return self._say(fault)
            if kind is Kind.PAGE:
                return self._answer(200, {"Content-Type": "text/html"}, PAGE)
            if kind in {Kind.DELAY, Kind.HANG} and not self._hold(fault.seconds):
                return self.hang_up()
            if kind is Kind.HANG:
                return self.hang_up()
        return self._forward(body, kind, watch=watch)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the base class's names

    def _hold(self, seconds: float) -> bool:
        """Wait; False when the client has gone, whose request must then not go on."""
        end = CLOCK.monotonic() + seconds
        while CLOCK.monotonic() < end and self.server.proxy.is_faulty:
            if self._is_gone() or self.server.proxy.stopping.wait(0.02):
                return False
        return not self._is_gone()

    def _is_gone(self) -> bool:
        """A client that waits for an answer sends nothing: anything to read is its end."""
        try:
            self.peek.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True
        return True

    def hang_up(self) -> None:
        self.close_connection = True
        try:
            self.peek.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def _say(self, fault: ApiFault) -> None:
        headers = {"Content-Type": "application/json"}
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": REASONS.get(fault.status, "InternalError"),
            "message": fault.message,
            "code": fault.status,
        }
        if fault.retry_after == "body":
            status["details"] = {"retryAfterSeconds": 1}
        elif fault.retry_after:
            headers["Retry-After"] = fault.retry_after
        self._answer(fault.status, headers, json.dumps(status).encode())

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _forward(self, body: bytes, kind: Kind | None, *, watch: bool) -> None:
        at_ms, status = CLOCK.now_ms(), 0
        try:
            answer = self._ask(body)
            status = answer.status
            if watch and status == 200:
                return self._stream(answer, kind)
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._part()
            return self.hang_up()
        finally:
            request = Forwarded(
                at_ms, self.command, self.path, body, status, self.server.proxy.client
            )
            self.server.proxy.note(request)
        if kind is Kind.LOSE:
            return self.hang_up()
        if Only.LISTS.fits(self.command, self.path) and status == 200:
            content = self._list(content, kind)
        headers = {k: v for k, v in answer.getheaders() if k.lower() not in _HOP}
        if kind is not Kind.CUT:
            return self._answer(status, headers, content)
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        return self.hang_up()

    def _list(self, content: bytes, kind: Kind | None) -> bytes:
        """What a list answers: as before under that fault, and kept for then while there is none."""
        proxy = self.server.proxy
        if kind is Kind.STALE:
            return proxy.older_list(self.path, content)
        if not proxy.is_faulty:
            proxy.keep_list(self.path, content)
        return content

    def _ask(self, body: bytes) -> http.client.HTTPResponse:
        if self._upstream is None:
            self._upstream = self.server.proxy.upstream()
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
        self._upstream.request(self.command, self.path, body=body or None, headers=headers)
        self._answer_open = self._upstream.getresponse()
        return self._answer_open

    def _stream(self, answer: http.client.HTTPResponse, kind: Kind | None) -> None:
        """Relay a watch as it comes, until the plan says otherwise."""
        self.close_connection = True
        self.send_response_only(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if kind is Kind.WATCH_HANG:
            self._hold(_LONGEST_HANG)
            return self.hang_up()
        ends = CLOCK.monotonic() + (_WATCH_END_SECONDS if kind is Kind.WATCH_END else 1e9)
        assert self._upstream is not None
        if self._upstream.sock is not None:
            self._upstream.sock.settimeout(0.5 if kind is Kind.WATCH_END else 400)
        proxy = self.server.proxy
        proxy.streaming(self, now=True)
        try:
            self._relay(answer, ends)
        finally:
            proxy.streaming(self, now=False)
            self._part()
        return None

    def _relay(self, answer: http.client.HTTPResponse, ends: float) -> None:
        told: list[bytes] = []
        rest = b""
        while CLOCK.monotonic() < ends:
            try:
                part = answer.read1(65_536)
            except TimeoutError:
                break
            if not part:
                break
            if self.server.proxy.silences_watches():
                self._hold(_LONGEST_HANG)
                return self.hang_up()
            self._tell(part)
            *whole, rest = (rest + part).split(b"\n")
            told = [*told, *(line + b"\n" for line in whole)][-6:]
            if not rest and told and self.server.proxy.repeats_watches():
                self._tell(b"".join(told[::-1]))
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _tell(self, part: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def _part(self) -> None:
        """Close the connection to the API server; the next request makes another."""
        if self._answer_open is not None:
            self._answer_open.close()
        if self._upstream is not None:
            self._upstream.close()
        self._answer_open, self._upstream = None, None

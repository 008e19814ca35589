"""/healthz, /readyz and /metrics on the standard library's HTTP server.

Reads only immutable answers given by callables; never touches the pass.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Readiness", "StatusServer"]

Readiness = tuple[bool, dict[str, str]]
"""Ready or not, and what each part says (`caches: synced`, `git: unreachable`, …)."""


MAX_CONNECTIONS = 256
"""Callers at a time; who comes beyond is hung up on, so strangers cost no more threads than that."""
PATIENCE_SECONDS = 10.0
"""How long a connection may say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """Callers that wait to be let in; with the library's 5, a burst is turned away for seconds."""

    def __init__(self, address: tuple[str, int], answer: type[BaseHTTPRequestHandler]) -> None:
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, answer)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers may hang up whenever they like."""


class StatusServer:
    """Serves until closed. `address` is `host:port`; port 0 takes a free one."""

    def __init__(
        self,
        address: str,
        *,
        ready: Callable[[], Readiness],
        healthy: Callable[[], bool],
        metrics: Callable[[], bytes],
    ) -> None:
        host, _, port = address.rpartition(":")

        class Answer(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = PATIENCE_SECONDS

            def do_GET(self) -> None:  # noqa: N802 - the library's name
                match self.path.partition("?")[0]:
                    case "/healthz":
                        good = healthy()
                        self._send(200 if good else 500, b"ok\n" if good else b"stuck\n")
                    case "/readyz":
                        good, parts = ready()
                        text = json.dumps({"ready": good, "parts": parts}, sort_keys=True)
                        self._send(200 if good else 503, text.encode(), "application/json")
                    case "/metrics":
                        self._send(200, metrics(), "text/plain; version=0.0.4; charset=utf-8")
                    case _:
                        self._send(404, b"not found\n")

            def _send(self, code: int, body: bytes, kind: str = "text/plain") -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Requests are not logged."""

        self._server = _Server((host or "127.0.0.1", int(port)), Answer)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            name="http",
            daemon=True,
            kwargs={"poll_interval": 0.5},
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

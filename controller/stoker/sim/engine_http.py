"""The engine stand-in's HTTP side: vLLM's paths, answers and ways to fail.

In: requests on a loopback port. Out: answers made from an `EngineApi`, which `sim.engine`
implements. One thread a connection; a connection breaks without answer where the real engine
would break it (abort, crash).
"""

from __future__ import annotations

import contextlib
import json
import queue
import select
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from stoker.sim.engine_metrics import CONTENT_TYPE, EngineMetrics
from stoker.sim.engine_profile import (
    EngineFaults,
    EngineProfile,
    MetricsFault,
    SleepLevel,
    Ticket,
)

__all__ = ["EngineApi", "EngineServer"]

VERSION = "0.28.0+stoker-stand-in"
CHARACTERS_PER_TOKEN = 4
DEFAULT_MAX_TOKENS = 16
"""vLLM's default for completions."""
_POLL_SECONDS = 0.2


class EngineApi(Protocol):
    """What the HTTP side needs of an engine; see `sim.engine.Engine`."""

    profile: EngineProfile
    faults: EngineFaults
    metrics: EngineMetrics

    @property
    def loaded(self) -> bool: ...  # noqa: D102 - promised at Engine

    @property
    def completions_fail(self) -> bool: ...  # noqa: D102

    @property
    def draining(self) -> bool: ...  # noqa: D102

    @property
    def stopped(self) -> bool: ...  # noqa: D102

    @property
    def sleeping(self) -> SleepLevel: ...  # noqa: D102

    @property
    def in_flight(self) -> int: ...  # noqa: D102

    def submit(self, prompt_tokens: int, max_tokens: int) -> Ticket | None: ...  # noqa: D102

    def abort(self, ticket: Ticket) -> None: ...  # noqa: D102

    def sleep(self, level: int) -> None: ...  # noqa: D102

    def wake_up(self) -> None: ...  # noqa: D102


class EngineServer:
    """Listens from its making on, answers from `start` on, closes everything on `stop`."""

    def __init__(self, engine: EngineApi, port: int) -> None:
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.engine = engine
        self._thread = threading.Thread(
            target=self._http.serve_forever,
            kwargs={"poll_interval": 0.05},
            name="engine-http",
            daemon=True,
        )

    @property
    def port(self) -> int:
        """The port that was asked for, or the one the system gave for 0."""
        return int(self._http.server_address[1])

    @property
    def answering(self) -> bool:
        """Whether a POST has been read and its answer not yet written."""
        return self._http.posts > 0

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and break every open connection."""
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()
        self._http.break_connections()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    engine: EngineApi

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.posts = 0
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that go away are part of the play."""

    @contextlib.contextmanager
    def one_post(self) -> Iterator[None]:
        with self._lock:
            self.posts += 1
        try:
            yield
        finally:
            with self._lock:
                self.posts -= 1

    def break_connections(self) -> None:
        with self._lock:
            sockets = tuple(self._open)
        for each in sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:  # already gone
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without this, two small writes an answer meet Nagle and delayed acknowledgement: 40 ms.
    disable_nagle_algorithm = True
    server: _Server

    @property
    def _engine(self) -> EngineApi:
        return self.server.engine

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        engine = self._engine
        path = urlsplit(self.path).path
        match path:
            case "/health" | "/ping":
                self._answer(200 if engine.loaded else 503)
            case "/version":
                self._json(200, {"version": VERSION})
            case _ if not engine.loaded:
                self._error(503, "the engine is loading")
            case "/metrics":
                self._metrics()
            case "/v1/models":
                models = [{"id": m, "object": "model"} for m in engine.profile.models]
                self._json(200, {"object": "list", "data": models})
            case "/load":
                self._json(200, {"server_load": engine.in_flight})
            case "/is_sleeping" if engine.profile.dev_mode:
                self._json(200, {"is_sleeping": engine.sleeping is not SleepLevel.AWAKE})
            case _:
                self._error(404, f"no such path: {path}")

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.one_post():
            self._post(body)

    def _post(self, body: bytes) -> None:
        engine = self._engine
        url = urlsplit(self.path)
        match url.path:
            case _ if not engine.loaded:
                self._error(503, "the engine is loading")
            case "/v1/completions":
                self._complete(body, chat=False)
            case "/v1/chat/completions":
                self._complete(body, chat=True)
            case "/sleep" if engine.profile.dev_mode:
                engine.sleep(int(parse_qs(url.query).get("level", ["1"])[0]))
                self._answer(200)
            case "/wake_up" if engine.profile.dev_mode:
                engine.wake_up()
                self._answer(200)
            case _:
                self._error(404, f"no such path: {url.path}")

    def _metrics(self) -> None:
        match self._engine.faults.metrics:
            case MetricsFault.NONE:
                self._answer(200, self._engine.metrics.page(), CONTENT_TYPE)
            case MetricsFault.ERROR:
                self._error(500, "metrics are broken")
            case MetricsFault.HANG:
                never = threading.Event()
                while not self._engine.stopped and not self._client_gone():
                    never.wait(_POLL_SECONDS)
                self.close_connection = True

    def _complete(self, body: bytes, *, chat: bool) -> None:
        engine = self._engine
        request = _object(body)
        if request is None:
            self._error(400, "the body is not a JSON object")
            return
        if engine.draining:
            self._error(503, "the engine is shutting down")
            return
        if engine.completions_fail:
            self._error(500, "EngineCore encountered an issue")
            return
        model = request.get("model") or engine.profile.models[0]
        if model not in engine.profile.models:
            self._error(404, f"The model `{model}` does not exist.")
            return
        limit = request.get("max_completion_tokens") or request.get("max_tokens")
        ticket = engine.submit(_prompt_tokens(request), int(limit or DEFAULT_MAX_TOKENS))
        if ticket is None:
            self._error(400, "the request is longer than the context can ever be")
        elif request.get("stream"):
            self._stream(ticket, str(model), chat=chat)
        else:
            self._whole(ticket, str(model), chat=chat)

    def _whole(self, ticket: Ticket, model: str, *, chat: bool) -> None:
        reason = next((event for event in self._events(ticket) if isinstance(event, str)), "abort")
        if reason == "abort":
            self.close_connection = True
            return
        sequence = ticket.sequence
        usage = {
            "prompt_tokens": sequence.prompt_tokens,
            "completion_tokens": sequence.generated,
            "total_tokens": sequence.context_tokens,
        }
        choice = _choice("tok " * sequence.generated, reason, chat=chat, delta=False)
        self._json(
            200, {**_envelope(ticket, model, chat=chat), "choices": [choice], "usage": usage}
        )

    def _stream(self, ticket: Ticket, model: str, *, chat: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in self._events(ticket):
                if event == "abort":
                    self.close_connection = True
                    return
                text, reason = ("", event) if isinstance(event, str) else ("tok ", None)
                choice = _choice(text, reason, chat=chat, delta=True)
                line = {**_envelope(ticket, model, chat=chat), "choices": [choice]}
                self._chunk(f"data: {json.dumps(line)}\n\n".encode())
            self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")
        except OSError:
            self._engine.abort(ticket)
            self.close_connection = True

    def _events(self, ticket: Ticket) -> Iterator[int | str]:
        """Tokens and at last the finish reason; a client that left aborts its request."""
        while True:
            event: int | str = 0
            with contextlib.suppress(queue.Empty):
                event = ticket.events.get(timeout=_POLL_SECONDS)
            if isinstance(event, str):
                yield event
                return
            if self._client_gone():
                self._engine.abort(ticket)
            elif event:
                yield event

    def _client_gone(self) -> bool:
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _json(self, status: int, data: Any) -> None:
        self._answer(status, json.dumps(data).encode(), "application/json")

    def _error(self, status: int, message: str) -> None:
        self._json(status, {"error": {"message": message, "type": "Error", "code": status}})

    def _answer(self, status: int, body: bytes = b"", content_type: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(body)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _prompt_tokens(request: dict[str, Any]) -> int:
    """A token is four characters; a list of numbers is already tokens."""
    prompt = request.get("prompt", "")
    if isinstance(prompt, list) and all(isinstance(item, int) for item in prompt):
        return len(prompt)
    text = json.dumps(request["messages"]) if request.get("messages") else str(prompt)
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _envelope(ticket: Ticket, model: str, *, chat: bool) -> dict[str, Any]:
    kind = "chat.completion" if chat else "text_completion"
    return {"id": f"cmpl-{ticket.sequence.number}", "object": kind, "model": model}


def _choice(text: str, reason: str | None, *, chat: bool, delta: bool) -> dict[str, Any]:
    if not chat:
        return {"index": 0, "text": text, "finish_reason": reason}
    message = {"role": "assistant", "content": text}
    return {"index": 0, ("delta" if delta else "message"): message, "finish_reason": reason}

"""The metadata services of three clouds on loopback, as the clouds document them.

`AwsService`, `GcpService` and `AzureService` are context managers with an `address`; a test
sets what they know as attributes and says by a `Fault` how they misbehave. Sources: AWS EC2
user guide (IMDSv2, spot interruption notices, rebalance recommendations), Google Compute
Engine (querying metadata, preemptible VMs), Azure (instance metadata, scheduled events).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

TOKEN_PATH = "/latest/api/token"
SPOT_PATH = "/latest/meta-data/spot/instance-action"
REBALANCE_PATH = "/latest/meta-data/events/recommendations/rebalance"
PREEMPTED_PATH = "/computeMetadata/v1/instance/preempted"
EVENTS_PATH = "/metadata/scheduledevents"
NAME_PATH = "/metadata/instance/compute/name"


class Fault(StrEnum):
    """One way to misbehave, for every request until it is healed."""

    HANG = "hang"
    """Takes the request and says nothing."""
    TRICKLE = "trickle"
    """Sends a header, byte by byte, without end: each byte renews a read timeout."""
    ENDLESS = "endless"
    """Sends a body without end."""
    ERROR = "error"
    """500."""
    BUSY = "busy"
    """503, as Google's service while the host is being maintained."""
    GARBAGE = "garbage"
    """200 with a page of HTML, as a captive portal sends."""
    REDIRECT = "redirect"
    """302 to an address that counts who follows."""
    CUT = "cut"
    """Closes the connection in the middle of the body."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. Header names are in lower case; `body` is text."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class MetadataService:
    """A loopback HTTP server; `reply` is what a cloud does."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.requests: list[Asked] = []
        self.followed = 0
        """How many requests came to where the fault REDIRECT points."""
        self.changed = threading.Condition()
        self._closing = threading.Event()
        self._server = _server(self._answer)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def address(self) -> str:
        """`127.0.0.1:port`."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        with self.changed:
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def asked(self, path: str) -> list[Asked]:
        """The requests for that path so far."""
        return [request for request in self.requests if request.path == path]

    def reply(self, request: Asked) -> Reply:
        """What the cloud answers when it is well."""
        raise NotImplementedError

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        url = urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        request = Asked(
            handler.command,
            url.path,
            {name: values[-1] for name, values in parse_qs(url.query).items()},
            _lower(handler.headers),
            handler.rfile.read(length).decode(),
        )
        self.requests.append(request)
        if url.path == "/followed":
            self.followed += 1
            _send(handler, Reply(200, "TRUE"))
        elif self.fault is not None:
            self._misbehave(handler, self.fault)
        else:
            _send(handler, self.reply(request))

    def _misbehave(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        match fault:
            case Fault.HANG:
                self._closing.wait(30)
            case Fault.TRICKLE:
                self._drip(handler, b"HTTP/1.1 200 OK\r\nX-A: ", b"a")
            case Fault.ENDLESS:
                self._drip(handler, b"HTTP/1.1 200 OK\r\n\r\n", b"TRUE" * 16_384)
            case Fault.CUT:
                handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"action":')
            case Fault.ERROR:
                _send(handler, Reply(500, "Internal Server Error"))
            case Fault.BUSY:
                _send(handler, Reply(503, "Service Unavailable"))
            case Fault.GARBAGE:
                _send(handler, Reply(200, "<html>Please log in</html>"))
            case Fault.REDIRECT:
                place = f"http://{self.address}/followed"
                _send(handler, Reply(302, "", (("Location", place),)))
        handler.close_connection = True

    def _drip(self, handler: BaseHTTPRequestHandler, head: bytes, drop: bytes) -> None:
        handler.wfile.write(head)
        while not self._closing.wait(0.005):
            handler.wfile.write(drop)


class AwsService(MetadataService):
    """IMDSv2 alone (HttpTokens required). `action` and `rebalance` None: 404, as without one."""

    def __init__(self) -> None:
        super().__init__()
        self.action: tuple[str, str] | None = None
        """What is done (terminate, stop, hibernate) and when, as `2026-11-30T08:22:00Z`."""
        self.rebalance: str | None = None
        self.enabled = True
        self.knows_rebalance = True
        """False: 500 for that document alone."""
        self.takes_tokens = True
        """False: it gives tokens and refuses them all."""
        self._tokens: set[str] = set()
        self._made = 0

    def forget_tokens(self) -> None:
        """As when they have expired."""
        self._tokens.clear()

    def reply(self, request: Asked) -> Reply:
        if not self.enabled or "x-forwarded-for" in request.headers:
            return Reply(403)
        if request.path == TOKEN_PATH:
            return self._token(request)
        token = request.headers.get("x-aws-ec2-metadata-token")
        if not self.takes_tokens or token not in self._tokens:
            return Reply(401)
        if request.path == SPOT_PATH and self.action is not None:
            action, time = self.action
            return Reply(200, json.dumps({"action": action, "time": time}))
        if request.path == REBALANCE_PATH and not self.knows_rebalance:
            return Reply(500)
        if request.path == REBALANCE_PATH and self.rebalance is not None:
            return Reply(200, json.dumps({"noticeTime": self.rebalance}))
        return Reply(404, "Not Found")

    def _token(self, request: Asked) -> Reply:
        if request.method != "PUT":
            return Reply(405)
        ttl = request.headers.get("x-aws-ec2-metadata-token-ttl-seconds", "")
        if not ttl.isdigit() or not 1 <= int(ttl) <= 21_600:
            return Reply(400)
        self._made += 1
        token = f"AQAEA-token-{self._made}=="
        self._tokens.add(token)
        return Reply(200, token, (("X-aws-ec2-metadata-token-ttl-seconds", ttl),))


class GcpService(MetadataService):
    """Google's service: wants `Metadata-Flavor: Google`, can wait for a change, has ETags."""

    def __init__(self) -> None:
        super().__init__()
        self._preempted = False
        self._version = 1

    def set_preempted(self, preempted: bool) -> None:
        """Change the value and wake those who wait for a change."""
        with self.changed:
            self._preempted = preempted
            self._version += 1
            self.changed.notify_all()

    def reply(self, request: Asked) -> Reply:
        flavor = request.headers.get("metadata-flavor") == "Google"
        if not flavor or "x-forwarded-for" in request.headers:
            return Reply(403, "Missing Metadata-Flavor:Google header.")
        if request.path != PREEMPTED_PATH:
            return Reply(404)
        if request.query.get("wait_for_change") == "true":
            self._wait(request)
        headers = (("Metadata-Flavor", "Google"), ("ETag", self._etag))
        return Reply(200, "TRUE" if self._preempted else "FALSE", headers)

    def _wait(self, request: Asked) -> None:
        """Until the value is another than the asker knows, or `timeout_sec` is over."""
        known = request.query.get("last_etag") or self._etag
        seconds = float(request.query.get("timeout_sec") or 3600)
        with self.changed:
            self.changed.wait_for(lambda: self._etag != known or self._closing.is_set(), seconds)

    @property
    def _etag(self) -> str:
        return f"{self._version:016x}"


class AzureService(MetadataService):
    """Scheduled events of a whole scale set; `name` is the machine that asks."""

    def __init__(self, name: str = "pool_0") -> None:
        super().__init__()
        self.name = name
        self.incarnation = 1
        self.events: list[dict[str, Any]] = []

    def schedule(
        self,
        event_id: str,
        *resources: str,
        kind: str = "Preempt",
        not_before: str = "Mon, 30 Nov 2026 08:22:00 GMT",
        status: str = "Scheduled",
    ) -> None:
        """Add an event; without resources it is this machine's."""
        self.incarnation += 1
        self.events.append(
            {
                "EventId": event_id,
                "EventStatus": status,
                "EventType": kind,
                "ResourceType": "VirtualMachine",
                "Resources": list(resources or (self.name,)),
                "NotBefore": "" if status == "Started" else not_before,
                "Description": "",
                "EventSource": "Platform",
                "DurationInSeconds": -1,
            }
        )

    def cancel(self) -> None:
        """Take all events back."""
        self.incarnation += 1
        self.events.clear()

    def reply(self, request: Asked) -> Reply:
        if request.headers.get("metadata") != "true" or "x-forwarded-for" in request.headers:
            return Reply(
                400, json.dumps({"error": "Bad request. Required metadata header missing"})
            )
        if not request.query.get("api-version"):
            return Reply(400, json.dumps({"error": "Bad request. api-version was not specified"}))
        if request.path == NAME_PATH and request.query.get("format") == "text":
            return Reply(200, self.name)
        if request.path != EVENTS_PATH:
            return Reply(404)
        if request.method == "POST":
            return self._start(json.loads(request.body))
        document = {"DocumentIncarnation": self.incarnation, "Events": self.events}
        return Reply(200, json.dumps(document), (("Content-Type", "application/json"),))

    def _start(self, body: Any) -> Reply:
        """An acknowledgement: the event starts without waiting for NotBefore."""
        wanted = {each["EventId"] for each in body["StartRequests"]}
        if not wanted <= {event["EventId"] for event in self.events}:
            return Reply(400)
        for event in self.events:
            if event["EventId"] in wanted:
                event.update(EventStatus="Started", NotBefore="")
        self.incarnation += 1
        return Reply(200)


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in headers.items()}


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    body = reply.body.encode()
    handler.send_response(reply.status)
    for name, value in reply.headers:
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers hang up when they have waited long enough."""


def _server(answer: Callable[[BaseHTTPRequestHandler], None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            answer(self)

        do_GET = do_PUT = do_POST = _any  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    return _Quiet(("127.0.0.1", 0), Handler)

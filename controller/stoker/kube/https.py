"""The transport to a real API server: HTTPS with keep-alive, patience and no surprises.

Requests of `kube.client` come in, answers or lines of a watch go out. TLS is always
verified unless the kubeconfig says otherwise, redirects are never followed, proxies are
used only where the kubeconfig names one, and a write that may have happened is never
sent twice (server-side apply may be: sending it again changes nothing).
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from stoker.clock import SystemClock
from stoker.errors import Refused, Retryable, Unreachable
from stoker.kube.client import StreamRefused
from stoker.kube.connections import Connections
from stoker.kube.identity import Identity
from stoker.kube.kubeconfig import (
    SERVICE_ACCOUNT,
    Access,
    access_from_kubeconfig,
    access_in_cluster,
)
from stoker.kube.patience import (
    LONGEST_WAIT_SECONDS,
    Patience,
    is_repeatable,
    may_pass,
    retry_after_seconds,
)
from stoker.kube.tls import warnings_of
from stoker.kube.transport import Request, Response
from stoker.kube.turns import Turns
from stoker.kube.wire import CHUNK_BYTES, TooLong, answer_of, cause_of, interrupt, whole_body
from stoker.log import get_log
from stoker.model.ports import Clock

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

__all__ = ["HttpsTransport"]

POOL_SIZE = 6
"""Above 4 to 6 threads a 2-core client gets slower and its p99 jumps (research/rig.md 3)."""
STREAM_SILENCE_SECONDS = 90.0
"""The server sends a bookmark a minute: longer silence means the connection is dead."""
_STREAM_MARGIN_SECONDS = 15.0
_CONNECT_SECONDS = 5.0
_LONGEST_LINE_BYTES = 64 * 1024 * 1024
_ERROR_BODY_BYTES = 64 * 1024
LONGEST_ANSWER_BYTES = 256 * 1024 * 1024
"""Room for a page of 500 objects of half a MiB each; more is no API server's answer (b.A row 9)."""

_log = get_log("kube")


class HttpsTransport:
    """Implements kube.transport.Transport. Safe to use from many threads.

    `warnings` are sentences for a person: at present only that TLS is not verified.
    """

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        stream_silence_seconds: float = STREAM_SILENCE_SECONDS,
        longest_answer_bytes: int = LONGEST_ANSWER_BYTES,
    ) -> None:
        self.url = access.server
        self.warnings = warnings_of(access)
        self._clock: Clock = clock or SystemClock()
        self._silence = stream_silence_seconds
        self._longest = longest_answer_bytes
        self._patience = Patience(self._clock, jitter)
        self._identity = Identity(access, self._clock)
        self._sending = threading.local()
        self._connections = Connections(
            access, self._identity, self._clock, size=POOL_SIZE, before_bytes=self._before_bytes
        )
        self._turns = Turns(POOL_SIZE)
        self._lock = threading.Lock()
        self._open: dict[int, BaseHTTPResponse] = {}
        self._closed = False

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | Path | None = None,
        context: str | None = None,
        *,
        allow_exec: bool = False,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> HttpsTransport:
        """Connect as kubectl would; raises Stalled (kubeconfig-...) when the files do not do."""
        access = access_from_kubeconfig(
            path, context, allow_exec=allow_exec, environment=environment
        )
        return cls(access, clock=clock)

    @classmethod
    def in_cluster(
        cls,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path = SERVICE_ACCOUNT,
        clock: Clock | None = None,
    ) -> HttpsTransport:
        """Connect with the service account of our pod; raises Stalled (not-in-cluster)."""
        return cls(access_in_cluster(environment=environment, folder=folder), clock=clock)

    def send(self, request: Request) -> Response:
        """Send and read the whole answer, within `timeout_seconds` in all.

        Raises Unreachable (api-server-unreachable) when no answer came; whether a write
        happened is then unknown. A 429 or 5xx that outlasts our patience is returned.
        """
        deadline = self._clock.monotonic() + request.timeout_seconds
        held = self._held_back(request)
        if held is not None:
            return held
        resends = 0
        while True:
            answer = self._attempt(request, deadline)
            failed = isinstance(answer, Retryable)
            if isinstance(answer, Response):
                asks = retry_after_seconds(answer, self._clock.now_ms())
                failed = answer.status == 429 or may_pass(answer)
                if failed and asks:
                    self._patience.hold_back(asks)
            else:
                asks = 0.0
            again = (
                failed
                and is_repeatable(request)
                and not self._closed
                and self._patience.wait_before_resend(resends, asks, deadline)
            )
            if not again:
                if isinstance(answer, Response):
                    return answer
                raise answer
            resends += 1
            _log.debug("api.request.resent", method=request.method, path=request.path, try_=resends)

    def stream(self, request: Request) -> Iterator[bytes]:
        """Yield the lines of a watch; see kube.transport.Transport.

        Raises Unreachable after 90 s of silence where bookmarks were asked for, after
        `timeout_seconds` and a margin where they were not.
        """
        held = self._held_back(request)
        if held is not None:
            raise StreamRefused(held)
        response = self._open_stream(request)
        with self._lock:
            self._open[id(response)] = response
        try:
            if response.status != 200:
                refusal = answer_of(response, response.read(_ERROR_BODY_BYTES))
                self._patience.hold_back(retry_after_seconds(refusal, self._clock.now_ms()))
                raise StreamRefused(refusal)
            yield from self._lines(response)
        except (HTTPError, OSError, ValueError) as error:
            if not self._closed:
                raise self._unreachable("a watch broke off", error) from error
        finally:
            with self._lock:
                self._open.pop(id(response), None)
            response.close()

    def close(self) -> None:
        """Close every connection; running streams end and later requests are Unreachable."""
        with self._lock:
            self._closed = True
            running = list(self._open.values())
        for response in running:
            interrupt(response)
        self._connections.close()

    def _held_back(self, request: Request) -> Response | None:
        """Wait as the server asked; a longer wait becomes the answer it would give again."""
        seconds = self._patience.admit()
        if seconds <= 0:
            return None
        if seconds <= min(LONGEST_WAIT_SECONDS, request.timeout_seconds):
            self._clock.wait(seconds)
            return None
        message = f"the API server asked for silence, {seconds:.0f} s of it are left"
        status = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": message}
        headers = (("content-type", "application/json"), ("retry-after", f"{seconds:.0f}"))
        return Response(429, json.dumps(status).encode(), headers)

    def _attempt(self, request: Request, deadline: float) -> Response | Retryable:
        """One exchange, and a second one with fresh credentials after a 401 or a TLS failure."""
        try:
            answer = self._exchange(request, deadline)
        except Unreachable:  # of TLS
            if not self._connections.renew() or not is_repeatable(request):
                raise
            return self._exchange(request, deadline)
        if isinstance(answer, Response) and answer.status == 401 and self._has_news():
            answer = self._exchange(request, deadline)
        return answer

    def _has_news(self) -> bool:
        """Whether there are other credentials to try than those just refused."""
        renewed = self._connections.renew()
        return self._identity.renew() or renewed

    def _exchange(self, request: Request, deadline: float) -> Response | Retryable:
        with self._turns.taken(deadline - self._clock.monotonic()) as mine:
            left = deadline - self._clock.monotonic()
            if not mine or left <= 0:
                return self._unreachable("time is up")
            if self._closed:
                return self._unreachable("the connection is closed")
            return self._exchange_in_turn(request, left, deadline)

    def _exchange_in_turn(
        self, request: Request, left: float, deadline: float
    ) -> Response | Retryable:
        try:
            response = self._urlopen(self._connections.requests(), request, left)
            body = whole_body(response, self._longest, lambda: self._clock.monotonic() > deadline)
        except SSLError as error:
            failure = self._unreachable("TLS failed", error, code="api-server-untrusted")
            failure.hint = "check the certificate authority of the kubeconfig and the server's name"
            raise failure from error
        except TooLong as error:
            raise Refused(f"{self.url}: {error}", code="api-answer-too-large") from error
        except (HTTPError, OSError) as error:
            failure = self._unreachable(f"{request.method} {request.path} got no answer", error)
            failure.__cause__ = error
            return failure
        return self._checked(answer_of(response, body), request)

    def _urlopen(
        self, connections: urllib3.PoolManager, request: Request, seconds: float
    ) -> BaseHTTPResponse:
        query = f"?{urlencode(request.query)}" if request.query else ""
        self._sending.asks = request.before_bytes
        return connections.request(
            request.method,
            f"{self.url}{request.path}{query}",
            body=request.body or None,
            headers=self._headers(request),
            timeout=urllib3.Timeout(
                total=seconds, connect=min(_CONNECT_SECONDS, seconds), read=seconds
            ),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )

    def _before_bytes(self) -> None:
        asks = getattr(self._sending, "asks", None)
        if asks is not None:
            asks()

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Accept": request.accept, "User-Agent": request.user_agent or "stoker"}
        if request.content_type:
            headers["Content-Type"] = request.content_type
        token = self._identity.token()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _checked(self, answer: Response, request: Request) -> Response | Retryable:
        """Refuse what no API server sends: redirects, and pages of a proxy as success."""
        if 300 <= answer.status < 400 and answer.status != 304:
            raise Refused(
                f"{request.method} {request.path} was answered with a redirect "
                f"({answer.status}), which is never followed",
                code="api-redirect-refused",
                hint="name the API server itself in the kubeconfig",
            )
        if answer.status < 300 and answer.header("content-type").startswith("text/html"):
            return self._unreachable("a web page came back, so something else answered")
        return answer

    def _open_stream(self, request: Request) -> BaseHTTPResponse:
        asked = dict(request.query).get("allowWatchBookmarks") == "true"
        silence = request.timeout_seconds + _STREAM_MARGIN_SECONDS
        if asked:
            silence = min(silence, self._silence)
        if self._closed:
            raise self._unreachable("the connection is closed")
        try:
            response = self._urlopen(self._connections.streams(), request, silence)
            if response.status == 401 and self._has_news():
                response.close()
                response = self._urlopen(self._connections.streams(), request, silence)
        except (HTTPError, OSError) as error:
            untrusted = isinstance(error, SSLError)
            code = "api-server-untrusted" if untrusted else ""
            if untrusted:
                self._connections.renew()  # for the next one: watches are begun again anyway
            raise self._unreachable("a watch could not start", error, code=code) from error
        page = response.headers.get("content-type", "").startswith("text/html")
        if page or 300 <= response.status < 400:
            response.close()
            raise self._unreachable("a web page or redirect came back, so something else answered")
        return response

    def _lines(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        rest = b""
        for part in response.stream(CHUNK_BYTES, decode_content=False):
            lines = (rest + part).split(b"\n")
            rest = lines.pop()
            for line in lines:
                if line.strip():
                    yield line
            if self._closed:
                return
            if len(rest) > _LONGEST_LINE_BYTES:
                raise self._unreachable("a watch line never ends")
        if rest.strip() and not self._closed:
            raise self._unreachable("a watch broke off within an event")

    def _unreachable(
        self, what: str, error: BaseException | None = None, *, code: str = ""
    ) -> Unreachable:
        why = f": {cause_of(error)}" if error is not None else ""
        return Unreachable(f"{self.url}: {what}{why}", code=code or "api-server-unreachable")

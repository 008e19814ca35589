"""One small document over plain HTTP within a time that nothing stretches.

For services on this machine, its link or its pods: no proxy, no redirect, no TLS, no name
that leaves the host header. In: a URL. Out: an `Answer`, or `NoAnswer` with the reason.
Used by engine (metrics pages) and node (metadata services of clouds).
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from stoker.clock import SystemClock
from stoker.model.ports import Clock

__all__ = ["Answer", "NoAnswer", "fetch"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, of whatever status. Header names are in lower case, the last one wins."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> str:
        """The body as text; bytes that are none become the replacement character."""
        return self.body.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing whole came. `refused`: nobody listens at that address, which is certain."""

    why: str
    refused: bool = False


def fetch(
    url: str,
    timeout_seconds: float,
    *,
    most_bytes: int,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Answer | NoAnswer:
    """Ask once, from the connection to the last byte within the time; never raises.

    An answer over `most_bytes` is none.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            return NoAnswer(f"{url!r} is no http address")
        connection = _Connection(parts.hostname, parts.port or 80, timeout_seconds)
    except (ValueError, http.client.InvalidURL) as error:
        return NoAnswer(f"{url!r}: {error}")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, target, body, dict(headers or {}))
        answer = connection.getresponse()
        content = answer.read(most_bytes + 1)
        if len(content) > most_bytes:
            return NoAnswer(f"the answer is longer than {most_bytes} bytes")
        if answer.length:  # a sized read takes the end of the connection for the end of the body
            return NoAnswer("the answer was cut short")
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, content, named)
    except ConnectionRefusedError:
        return NoAnswer("nobody listens there", refused=True)
    except TimeoutError:
        return NoAnswer(f"no whole answer within {timeout_seconds:g} s")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return NoAnswer(f"{type(error).__name__}: {error}"[:200])
    finally:
        connection.close()


class _Connection(http.client.HTTPConnection):
    """A connection whose every step counts against one deadline."""

    def __init__(self, host: str, port: int, timeout_seconds: float) -> None:
        super().__init__(host, port, timeout=timeout_seconds)
        self._clock: Clock = SystemClock()
        self._deadline = self._clock.monotonic() + timeout_seconds

    def connect(self) -> None:
        """Connect, and read through a socket that knows the deadline."""
        super().connect()
        assert self.sock is not None
        family, kind, protocol = self.sock.family, self.sock.type, self.sock.proto
        bounded = _Bounded(family, kind, protocol, fileno=self.sock.detach())
        bounded.bound(self._clock, self._deadline)
        self.sock = bounded


class _Bounded(socket.socket):
    """A socket that allows each read only what is left: a timeout alone renews with each byte."""

    _clock: Clock
    _deadline: float

    def bound(self, clock: Clock, deadline: float) -> None:
        self._clock, self._deadline = clock, deadline
        self._spend()

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        self._spend()
        return super().recv_into(*arguments, **options)

    def sendall(self, *arguments: Any, **options: Any) -> None:
        self._spend()
        super().sendall(*arguments, **options)

    def _spend(self) -> None:
        left = self._deadline - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)

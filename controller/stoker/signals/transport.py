"""One GET to a metric source within bounds: time, size, no redirect, no proxy, no netrc.

In: an address with its headers. Out: a `Whole` answer of whatever status, or `NoAnswer`. It has
the shape that prometheus-api-client asks of a session, and decision servers are asked by it, too.
Imported late: its library is a tenth of a second of every start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Never

import requests
import urllib3

from stoker.fetch import NoAnswer
from stoker.model.ports import Clock

__all__ = ["FAILURES", "MAX_BYTES", "Transport", "Whole", "failure_of"]

MAX_BYTES = 8 * 1024 * 1024
"""A vector with a series a pod is some 300 bytes a pod; more than this is a query gone wrong."""
_CHUNK = 65_536

FAILURES = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError)
"""All that a request may raise; a ValueError is an address or header that cannot be sent."""


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer, as far as prometheus-api-client looks at one."""

    status_code: int
    content: bytes

    def json(self) -> Any:
        """The body as JSON, without the numbers that JSON does not have; raises ValueError."""
        try:
            return json.loads(self.content, parse_constant=_no_constant)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


class Transport:
    """A session of one thread at a time. `last` is the newest whole answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Accept-Encoding"] = "identity"
        self.verify = True
        self.cert = None
        self.last: Whole | None = None

    def mount(self, prefix: str, adapter: Any) -> None:
        """Take the adapter that says how often to try again."""
        self._session.mount(prefix, adapter)

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def request(
        self,
        method: str,
        url: str,
        *,
        timeout: float,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> Whole:
        """Ask, and read the body within the time; raises one of FAILURES.

        Each step of the connection has that time as well, so it may take twice as long to fail.
        """
        self.last = None
        due = self._clock.monotonic() + timeout
        with self._session.request(
            method,
            url,
            params=dict(params or {}),
            headers=dict(headers or {}),
            timeout=timeout,
            allow_redirects=False,
            stream=True,
        ) as answer:
            content = bytearray()
            while chunk := answer.raw.read1(_CHUNK, decode_content=True):
                content += chunk
                if len(content) > MAX_BYTES:
                    raise ValueError(f"the answer is longer than {MAX_BYTES} bytes")
                if self._clock.monotonic() > due:
                    raise requests.Timeout(f"no whole answer within {timeout:g} s")
            self.last = Whole(answer.status_code, bytes(content))
        return self.last


def failure_of(error: Exception, timeout_seconds: float) -> NoAnswer:
    """What a request that raised comes to, in words without its headers."""
    if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError | TimeoutError):
        return NoAnswer(f"no whole answer within {timeout_seconds:g} s")
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return NoAnswer("nobody listens there", refused=True)
        cause = cause.__cause__ or cause.__context__
    return NoAnswer(type(error).__name__)


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON")

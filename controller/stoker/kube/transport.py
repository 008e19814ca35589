"""How requests reach an API server: over HTTPS, or into the in-memory cluster.

`kube.client.Client` turns the Cluster port into requests; both transports answer them
alike, which the contract suite proves request by request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Request", "Response", "Transport"]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `path` has no query; `query` is a tuple of pairs, in order.

    `before_bytes` is called right before bytes of it leave, each time it is sent; what it
    raises ends the request (see kube.gate).
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = ""
    accept: str = "application/json"
    timeout_seconds: float = 30.0
    user_agent: str = ""
    before_bytes: Callable[[], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """One answer. Header names are lower case."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = field(default=())

    def header(self, name: str) -> str:
        """The value of a header, or empty."""
        return dict(self.headers).get(name, "")


class Transport(Protocol):
    """Sends requests. Raises errors.Unreachable when no answer came back."""

    url: str

    def send(self, request: Request) -> Response:
        """Send one request and read its whole answer."""
        ...

    def stream(self, request: Request) -> Iterator[bytes]:
        """Send a watch and yield its lines as they come; each is one JSON event.

        An error answer before the first line raises `StreamRefused` (see kube.client).
        Ends when the server closes; raises errors.Unreachable when nothing at all comes
        for `request.timeout_seconds` plus a margin.
        """
        ...

    def close(self) -> None:
        """Close every connection; running streams end."""
        ...

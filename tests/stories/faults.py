"""A transport that fails on demand, and remembers what was asked of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stoker.errors import Unreachable
from stoker.kube.transport import Request, Response, Transport

READS = ("GET",)


def _nothing(request: Request) -> Response | None:
    return None


@dataclass
class Faults:
    """Put between controller and server by `World(wrap=faults)`; both may change at any time.

    `gone` answers nothing at all; `refuse` gives an answer instead of the server's, or None.
    """

    gone: bool = False
    refuse: Callable[[Request], Response | None] = _nothing
    asked: list[Request] = field(default_factory=list)

    def __call__(self, inner: Transport) -> Transport:
        """The transport of one controller."""
        return _Faulty(inner, self)

    @property
    def is_open(self) -> bool:
        """Whether everything passes."""
        return not self.gone and self.refuse is _nothing

    @property
    def writes(self) -> list[str]:
        """`METHOD path` of all requests that change something, dry runs left out."""
        return [
            f"{r.method} {r.path}"
            for r in self.asked
            if r.method not in READS and not any(key == "dryRun" for key, _ in r.query)
        ]


class _Faulty:
    def __init__(self, inner: Transport, faults: Faults) -> None:
        self.url = inner.url
        self._inner = inner
        self._faults = faults

    def send(self, request: Request) -> Response:
        self._faults.asked.append(request)
        if self._faults.gone:
            raise Unreachable("the API server does not answer")
        return self._faults.refuse(request) or self._inner.send(request)

    def stream(self, request: Request) -> Iterator[bytes]:
        return self._inner.stream(request)

    def close(self) -> None:
        """Nothing: the server outlives whoever talks to it."""


def forbidding(
    *parts: str, methods: tuple[str, ...] = ("GET",)
) -> Callable[[Request], Response | None]:
    """Refuse requests whose path holds one of the parts, as an authorizer does."""

    def refuse(request: Request) -> Response | None:
        if request.method in methods and any(part in request.path for part in parts):
            return answer(403, "Forbidden", f"{request.path} is forbidden: no RBAC rule allows it")
        return None

    return refuse


def answer(code: int, reason: str, text: str) -> Response:
    """A failure as the API server words it."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": text,
        "code": code,
    }
    return Response(code, json.dumps(status).encode(), (("content-type", "application/json"),))

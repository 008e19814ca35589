"""The gate before every write: none starts unless the caller leads, none outlasts its time.

One `WriteGate` a process; `Gated` puts it before a transport, and git pushes ask it too.
Open until `guard` names who is asked (commands that hold no lease).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from stoker.kube.transport import Request, Response, Transport

__all__ = ["Gated", "WriteGate", "is_write"]


@dataclass(slots=True)
class WriteGate:
    """`admit` raises when no write may start now; `seconds` bounds each write (None: no bound)."""

    admit: Callable[[], None] | None = None
    seconds: float | None = None

    def guard(self, admit: Callable[[], None], seconds: float) -> None:
        """From now on writes start only while `admit` lets them, and take at most so long."""
        self.seconds, self.admit = seconds, admit

    def check(self) -> None:
        """Raise what `admit` raises; the last thing to do before a write."""
        if self.admit is not None:
            self.admit()


def is_write(request: Request) -> bool:
    """Whether it may change something; a dry run that says so in its query changes nothing."""
    return request.method != "GET" and ("dryRun", "All") not in request.query


class Gated:
    """A transport whose writes ask the gate: before they set out, and before their first byte.

    The server is told the bound too (`timeout`), so that it gives up when we do.
    """

    def __init__(self, inner: Transport, gate: WriteGate) -> None:
        self.url = inner.url
        self._inner = inner
        self._gate = gate

    def send(self, request: Request) -> Response:
        """Send; raises what the gate raises, and then nothing was sent."""
        bound = self._gate.seconds
        if bound is None or not is_write(request):
            return self._inner.send(request)
        self._gate.check()
        return self._inner.send(
            replace(
                request,
                timeout_seconds=min(request.timeout_seconds, bound),
                query=(*request.query, ("timeout", f"{max(1, int(bound * 1000))}ms")),
                before_bytes=self._gate.check,
            )
        )

    def stream(self, request: Request) -> Iterator[bytes]:
        """Pass on: watches change nothing."""
        return self._inner.stream(request)

    def close(self) -> None:
        """Pass on."""
        self._inner.close()

"""What urllib3 gives, as plain data of ours: answers, causes of failures, ends of reads.

Used by `kube.https` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.kube.transport import Response

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

__all__ = ["answer_of", "cause_of", "interrupt"]


def answer_of(response: BaseHTTPResponse, body: bytes) -> Response:
    """Status, headers in lower case, and the body that was read."""
    headers = tuple((name.lower(), value) for name, value in response.headers.items())
    return Response(response.status, body, headers)


def interrupt(response: BaseHTTPResponse) -> None:
    """End a read that another thread is in; already ended is fine."""
    shutdown = getattr(response, "shutdown", None)
    try:
        if shutdown is not None:
            shutdown()
    except (ValueError, RuntimeError, OSError):
        return


def cause_of(error: BaseException) -> str:
    """A short cause without the objects' addresses that urllib3 prints."""
    inner = error.__cause__ or error.__context__
    text = str(inner if isinstance(inner, OSError) else error)
    return text.rpartition(">: ")[2][:200] or type(error).__name__

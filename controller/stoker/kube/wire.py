"""What urllib3 gives, as plain data of ours: answers, causes of failures, ends of reads.

Used by `kube.https` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stoker.kube.transport import Response

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

__all__ = ["CHUNK_BYTES", "TooLong", "answer_of", "cause_of", "interrupt", "whole_body"]

CHUNK_BYTES = 1024 * 1024


class TooLong(Exception):
    """An answer of more bytes than are taken."""


def answer_of(response: BaseHTTPResponse, body: bytes) -> Response:
    """Status, headers in lower case, and the body that was read."""
    headers = tuple((name.lower(), value) for name, value in response.headers.items())
    return Response(response.status, body, headers)


def whole_body(
    response: BaseHTTPResponse, longest_bytes: int, is_late: Callable[[], bool]
) -> bytes:
    """Read it all; a server that trickles, or never ends, is cut off.

    Raises TooLong, and TimeoutError once `is_late` says so.
    """
    try:
        return _body(response, longest_bytes, is_late)
    except (TooLong, TimeoutError):
        response.close()
        raise
    finally:
        response.release_conn()  # closed or not: a place in the pool that is not given back is lost


def _body(response: BaseHTTPResponse, longest_bytes: int, is_late: Callable[[], bool]) -> bytes:
    parts: list[bytes] = []
    room = longest_bytes
    while part := response.read(CHUNK_BYTES, decode_content=False):
        parts.append(part)
        room -= len(part)
        if room < 0:
            raise TooLong(f"an answer of over {longest_bytes} bytes was cut off")
        if is_late():
            raise TimeoutError("the answer did not end in time")
    return b"".join(parts)


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

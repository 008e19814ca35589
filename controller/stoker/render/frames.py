"""The wire between the pool and its children: a 4-byte length, then that much JSON.

Requests (pool to child) hold texts, sets of names for them, and items; answers (child to pool) come
one per item, in order. Used by pool and worker.
"""

from __future__ import annotations

import json
import struct
from typing import Any

__all__ = ["HEADER_BYTES", "SLACK_BYTES", "decode", "encode", "length_of"]

HEADER_BYTES = 4
SLACK_BYTES = 1 << 20
"""What an answer may be larger than the documents in it."""

_HEADER = struct.Struct("!I")


def encode(data: Any) -> bytes:
    """One frame. NaN and infinities, which are not JSON, raise ValueError."""
    body = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    raw = body.encode(errors="surrogatepass")
    return _HEADER.pack(len(raw)) + raw


def length_of(header: bytes) -> int:
    """How many bytes follow a header of HEADER_BYTES bytes."""
    (length,) = _HEADER.unpack(header)
    return int(length)


def decode(body: bytes) -> Any:
    """The data of one frame; raises ValueError or RecursionError on what is not JSON."""
    return json.loads(body)

"""Reads files that hold credentials, and follows no link that leads out of their folder.

Whoever may write into such a folder could else have any file sent to a server as a token
(cases.md row 151). Kubernetes mounts a Secret as links within its folder: those are followed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from stoker.errors import Stalled

__all__ = ["credential_place", "read_credential"]

MAX_BYTES = 1024 * 1024
"""A Secret holds no more."""


def credential_place(path: Path, *, code: str) -> Path:
    """Where the file itself is, for programs that read it; Stalled with `code` as below."""
    place = Path(os.path.realpath(path))
    if not place.is_relative_to(os.path.realpath(path.parent)):
        raise Stalled(
            f"{path} is a link to {place}, outside its folder",
            code=code,
            hint="put the file itself there, or name the place that the link leads to",
        )
    os.close(_opened(path, place, code))
    return place


def read_credential(path: Path, *, code: str) -> bytes:
    """The whole content; raises Stalled with `code` where it is a link out of its folder, no
    regular file, over 1 MiB, or cannot be read.
    """
    descriptor = _opened(path, credential_place(path, code=code), code)
    with os.fdopen(descriptor, "rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Stalled(f"{path} has over {MAX_BYTES} bytes: no credentials", code=code)
    return content


def _opened(path: Path, place: Path, code: str) -> int:
    """Without waiting for the other end of a pipe, and without a link made a moment ago."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Stalled(f"{path} cannot be read: {error.strerror}", code=code) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise Stalled(f"{path} is not a regular file", code=code)

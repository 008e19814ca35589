"""What Git leaves in place of a file's content, told by its bytes; pure.

Source asks it about files of units, render about manifests and templates.
"""

from __future__ import annotations

import re

__all__ = ["conflict_offset", "is_lfs_pointer"]

_LFS = b"version https://git-lfs.github.com/spec/"
_CONFLICT = re.compile(rb"^(?:<{7}|>{7})(?: |\r?$)", re.MULTILINE)


def is_lfs_pointer(content: bytes) -> bool:
    """Whether Git LFS keeps the content elsewhere; the pointer itself would parse as YAML text."""
    return content.startswith(_LFS)


def conflict_offset(content: bytes) -> int | None:
    """Where the first marker of an unresolved merge begins, in bytes; None without any."""
    found = _CONFLICT.search(content)
    return None if found is None else found.start()

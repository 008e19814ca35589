"""Headers of a metric source, from Secrets in the controller's own namespace.

In: a MetricSource. Out: its headers, verbatim; read again after a minute, so that a rotated token
works without a restart. Raises the error tree; no message holds a value. Used by signals.sources.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.errors import Stalled
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef
from stoker.model.scaling import MetricSource

__all__ = ["SecretHeaders"]

KEEP_SECONDS = 60.0
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A header's name (RFC 9110, token)."""
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""What may stand in one line; a line break would begin another header."""


@dataclass(slots=True)
class SecretHeaders:
    """Reads each Secret at most once a minute. Callable from several threads."""

    cluster: Cluster
    clock: Clock
    namespace: str
    _known: dict[str, tuple[float, Mapping[str, str]]] = field(default_factory=dict)

    def __call__(self, source: MetricSource) -> Mapping[str, str]:
        """All headers of a source, those of later Secrets over those of earlier ones.

        Raises Stalled for a Secret that holds no headers.
        """
        found: dict[str, str] = {}
        for name in source.header_secrets:
            found.update(self._of(name))
        return found

    def _of(self, name: str) -> Mapping[str, str]:
        now = self.clock.monotonic()
        known = self._known.get(name)
        if known is not None and now - known[0] < KEEP_SECONDS:
            return known[1]
        secret = self.cluster.get(ObjectRef("", "Secret", self.namespace, name))
        data = secret.get("data")
        headers = {
            str(key): _header(name, str(key), value)
            for key, value in sorted((data if isinstance(data, dict) else {}).items())
        }
        self._known = {**self._known, name: (now, headers)}
        return headers


def _header(secret: str, key: str, value: object) -> str:
    """The value of one header; the trailing line break of a file is not meant."""
    try:
        text = base64.b64decode(str(value), validate=True).decode("latin-1").rstrip("\r\n")
    except (binascii.Error, ValueError):
        text = "\n"
    if _NAME.fullmatch(key) is None or _VALUE.fullmatch(text) is None:
        raise Stalled(
            f"key {key!r} of Secret {secret} is no header",
            hint="a key is a header's name, its value one line",
        )
    return text

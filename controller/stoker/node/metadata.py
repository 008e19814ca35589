"""Asking a cloud's metadata service: one address on the machine's own link, bounded in all ways.

Used by the pollers beside it. Everything that a service says is foreign text: it is cut, and
read strictly.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any

from stoker.errors import Stalled
from stoker.fetch import Answer, NoAnswer, fetch

__all__ = ["LINK_LOCAL", "Metadata", "json_object", "refused_by"]

LINK_LOCAL = "169.254.169.254"
"""Where AWS, Google and Azure serve metadata; Google documents it beside its name."""
MAX_BYTES = 256 * 1024
"""The longest document asked for, Azure's list of events, has some hundred bytes an event."""
_QUOTED = 80


class Metadata:
    """The service at `address` (`IP` or `IP:port`); `seconds` bounds one question.

    Raises Stalled (usage) for an address that is neither link-local nor loopback: another
    machine could tell this one that it will go away.
    """

    def __init__(self, address: str = LINK_LOCAL, seconds: float = 2.0) -> None:
        host, _, port = address.partition(":")
        try:
            ip = ipaddress.IPv4Address(host)
            number = int(port or 80)
        except ValueError as error:
            raise _refused(address) from error
        if not (ip.is_link_local or ip.is_loopback) or not 0 < number < 65_536:
            raise _refused(address)
        self._base = f"http://{ip}:{number}"
        self.seconds = seconds

    def ask(
        self,
        path: str,
        headers: Mapping[str, str],
        *,
        method: str = "GET",
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> Answer | NoAnswer:
        """One question; `seconds` in place of the usual bound."""
        return fetch(
            self._base + path,
            self.seconds if seconds is None else seconds,
            most_bytes=MAX_BYTES,
            method=method,
            headers=headers,
            body=body,
        )


def json_object(answer: Answer) -> dict[str, Any] | None:
    """The answer as a JSON object; None when it is anything else."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def refused_by(service: str, answer: Answer | NoAnswer) -> str:
    """Why an answer tells nothing, in one line."""
    if isinstance(answer, NoAnswer):
        return f"{service}: {answer.why}"
    if answer.status != 200:
        return f"{service}: HTTP {answer.status}"
    start = "".join(c if c.isprintable() else " " for c in answer.text[:_QUOTED])
    return f"{service}: an answer that cannot be read: {start!r}"


def _refused(address: str) -> Stalled:
    return Stalled(
        f"{address[:_QUOTED]!r} is no address of a metadata service",
        code="usage",
        hint=f"a link-local or loopback IPv4 address, as {LINK_LOCAL}",
    )

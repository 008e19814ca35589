"""Milliseconds since the epoch to and from RFC 3339 text, and spans of time for people; pure."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["instant_of", "rfc3339", "span", "to_milliseconds"]


def rfc3339(milliseconds: int) -> str:
    """`2026-11-29T03:05:02Z`: whole seconds, UTC."""
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_milliseconds(text: str) -> int:
    """Read an RFC 3339 time with or without fraction; raises ValueError on anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = f"{text!r} has no time zone"
        raise ValueError(message)
    return int(moment.timestamp() * 1000)


def instant_of(value: object) -> int | None:
    """The same of any field of somebody's object; None where it holds no such time."""
    try:
        return to_milliseconds(value) if isinstance(value, str) else None
    except ValueError:
        return None


def span(milliseconds: int) -> str:
    """`55s`, `2m40s`, `1h05m`: rounded up to whole seconds."""
    seconds = -(-milliseconds // 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{seconds:02d}s" if minutes else f"{seconds}s"

"""Values of options that are words or durations: what is wrong with one is said in one way."""

from __future__ import annotations

__all__ = ["check_logging", "check_words", "seconds_of"]


def check_words(option: str, value: str, words: tuple[str, ...]) -> None:
    """Raise Stalled (usage) unless the value is one of the words."""
    from stoker.cli.session import usage

    if value not in words:
        raise usage(f"{option}: no {value!r}", " or ".join(words))


def check_logging(log_format: str, log_level: str) -> None:
    """The same for both options of logs."""
    check_words("--log-format", log_format, ("text", "json"))
    check_words("--log-level", log_level, ("debug", "info", "warning", "error"))


def seconds_of(option: str, text: str) -> float:
    """A duration as `30s` or `1m30s` in seconds; raises Stalled (usage) for anything else."""
    from stoker.cli.session import usage
    from stoker.source.durations import duration_ms

    try:
        return duration_ms(text) / 1000
    except ValueError as error:
        raise usage(f"{option}: {error}", "for instance 30s or 1m30s") from error

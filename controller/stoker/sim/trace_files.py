"""Traces from files: bytes in, requests (or counts of nodes that can be had) out, in order.

Reads Azure's CSV, Mooncake's JSON lines, a plain table of rates and a range export of
Prometheus, each also with .gz. Streams all but the export; a line that is wrong ends the
reading with its number. Called by `stoker simulate` and the benchmarks.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from stoker.errors import BadInput, Finding, SourceLocation
from stoker.sim.traffic import Request

__all__ = ["RateShape", "SpotTrace", "read_spot", "read_trace"]

MAX_EXPORT_BYTES = 64 * 1024 * 1024
"""A range export is one JSON document and is read whole; a year at 15 s has about 50 MB."""
MAX_TOKENS = 10_000_000
"""No request has more; beyond it, a column was taken for another."""
MAX_RATE = 1_000_000.0
MAX_LINE_CHARACTERS = 1_000_000

_AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_RATES = ("seconds", "requestsPerSecond")
_RATES_WITH_TOKENS = (*_RATES, "promptTokens", "outputTokens")


@dataclass(frozen=True, slots=True)
class RateShape:
    """What requests are made of where a trace has rates only: tokens each, and the seed of
    their instants (a Poisson process of that rate).
    """

    prompt_tokens: int = 1024
    output_tokens: int = 256
    seed: int = 1


@dataclass(frozen=True, slots=True)
class SpotTrace:
    """How many instances could be had, one count every `gap_seconds`."""

    gap_seconds: float
    counts: tuple[int, ...]

    def available(self, at_s: float) -> int:
        """The count at that second; the last one holds for ever."""
        return self.counts[min(len(self.counts) - 1, int(at_s // self.gap_seconds))]


def read_trace(path: Path, shape: RateShape = RateShape()) -> Iterator[Request]:
    """The requests of a file, by what it is rather than what it is called, from second 0 on.

    Raises BadInput with the line where it is no trace or a line is wrong, while iterating.
    """
    with _opened(path) as lines:
        try:
            yield from _requests(path, lines, shape)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _wrong(path, 0, f"is not a whole .gz file: {error}") from error
        except UnicodeDecodeError as error:
            raise _wrong(path, 0, "is not UTF-8 text") from error


def read_spot(path: Path) -> SpotTrace:
    """The counts of a file `{"metadata": {"gap_seconds": s}, "data": [n, …]}`."""
    with _opened(path) as lines:
        found = _document(path, lines, "")
    metadata = found.get("metadata")
    gap = _finite(metadata.get("gap_seconds")) if isinstance(metadata, dict) else None
    counts = found.get("data")
    if gap is None or gap <= 0:
        raise _wrong(path, 0, "metadata.gap_seconds is not a number above 0")
    if not isinstance(counts, list) or not counts:
        raise _wrong(path, 0, "data is not a list of counts")
    for number, count in enumerate(counts):
        if type(count) is not int or count < 0:
            raise _wrong(path, 0, f"data[{number}] is not a count: {str(count)[:40]}")
    return SpotTrace(gap, tuple(counts))


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _requests(path: Path, lines: IO[str], shape: RateShape) -> Iterator[Request]:
    first = lines.readline(MAX_LINE_CHARACTERS)
    while first and not first.strip():
        first = lines.readline(MAX_LINE_CHARACTERS)
    if not first:
        raise _wrong(path, 0, "is empty")
    if first.lstrip().startswith("{"):
        if _is_json_line(first):
            return _mooncake(path, first, lines)
        return _arrivals(_exported(path, first, lines), shape)
    header = tuple(cell.strip() for cell in first.strip().lstrip("\ufeff").split(","))
    if header == _AZURE:
        return _azure(path, lines)
    if header in {_RATES, _RATES_WITH_TOKENS}:
        return _arrivals(_table(path, lines, len(header)), shape)
    raise _wrong(
        path,
        1,
        f"is no trace: its first line is {first.strip()[:60]!r}",
        hint="a table begins with TIMESTAMP,ContextTokens,GeneratedTokens or with "
        "seconds,requestsPerSecond[,promptTokens,outputTokens]; or JSON lines with timestamp, "
        "input_length, output_length; or a range export of Prometheus",
    )


# ------------------------------------------------------------------- requests, a line each


def _azure(path: Path, lines: IO[str]) -> Iterator[Request]:
    begin: datetime | None = None
    before = 0.0
    for line, row in _rows(path, lines, 3):
        try:
            # Seven digits of a second; Python reads six.
            at = datetime.fromisoformat(row[0].strip()[:26])
        except ValueError as error:
            raise _wrong(path, line, f"TIMESTAMP is no time: {row[0][:40]!r}") from error
        begin = begin or at
        if (at.tzinfo is None) is not (begin.tzinfo is None):
            raise _wrong(path, line, "TIMESTAMP has a time zone on some lines only")
        at_s = (at - begin).total_seconds()
        before = _in_order(path, line, at_s, before)
        prompt = _tokens(path, line, "ContextTokens", row[1])
        yield Request(at_s, prompt, _tokens(path, line, "GeneratedTokens", row[2]))


def _mooncake(path: Path, first: str, lines: IO[str]) -> Iterator[Request]:
    begin: float | None = None
    before = 0.0
    line, text = 1, first
    while text:
        if text.strip():
            found = _object(path, line, text)
            at_ms = _finite(found.get("timestamp"))
            if at_ms is None:
                raise _wrong(path, line, "timestamp is not a number of milliseconds")
            begin = at_ms if begin is None else begin
            before = _in_order(path, line, (at_ms - begin) / 1000, before)
            prefix = found.get("hash_ids", [])
            if not isinstance(prefix, list) or any(type(block) is not int for block in prefix):
                raise _wrong(path, line, "hash_ids is not a list of whole numbers")
            prompt = _tokens(path, line, "input_length", found.get("input_length"))
            output = _tokens(path, line, "output_length", found.get("output_length"))
            yield Request(before, prompt, output, tuple(prefix))
        text = lines.readline(MAX_LINE_CHARACTERS)
        line += 1


def _is_json_line(text: str) -> bool:
    """Whether the first line is a request by itself; an export may be one line, too."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        # A broken line of a trace, rather than an export, which has a data field.
        return "input_length" in text
    return isinstance(found, dict) and "data" not in found


# --------------------------------------------------------------------------------- rates


@dataclass(frozen=True, slots=True)
class _Rate:
    """From that second on, requests a second; tokens None takes those of the shape."""

    at_s: float
    per_second: float
    prompt_tokens: int | None = None
    output_tokens: int | None = None


def _table(path: Path, lines: IO[str], columns: int) -> Iterator[_Rate]:
    begin: float | None = None
    before = 0.0
    for line, row in _rows(path, lines, columns):
        at = _number(path, line, "seconds", row[0])
        begin = at if begin is None else begin
        before = _in_order(path, line, at - begin, before)
        rate = _number(path, line, "requestsPerSecond", row[1])
        if not 0 <= rate <= MAX_RATE:
            raise _wrong(path, line, f"requestsPerSecond is not within 0 to {MAX_RATE:g}")
        if columns == 2:
            yield _Rate(before, rate)
        else:
            prompt = _tokens(path, line, "promptTokens", row[2])
            yield _Rate(before, rate, prompt, _tokens(path, line, "outputTokens", row[3]))


def _exported(path: Path, first: str, lines: IO[str]) -> Iterator[_Rate]:
    """The one series of an answer of /api/v1/query_range; NaN and negative are no rate."""
    found = _document(path, lines, first)
    answer = found.get("data", found)
    result = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(result, list) or not result:
        raise _wrong(path, 0, "is no range export of Prometheus: data.result has no series")
    if len(result) > 1:
        raise _wrong(
            path, 0, f"has {len(result)} series; a rate is one", hint="sum(…) in the query"
        )
    series = result[0].get("values") if isinstance(result[0], dict) else None
    if not isinstance(series, list) or not series:
        raise _wrong(path, 0, "data.result[0].values is not a list of samples")
    begin: float | None = None
    before = 0.0
    for number, sample in enumerate(series):
        where = f"data.result[0].values[{number}]"
        instant = _finite(sample[0]) if isinstance(sample, list) and len(sample) == 2 else None
        if instant is None:
            raise _wrong(path, 0, f"{where} is not [time, value]")
        begin = instant if begin is None else begin
        at_s = instant - begin
        if at_s < before:
            raise _wrong(path, 0, f"{where} is earlier than the one before")
        before = at_s
        try:
            rate = float(sample[1])
        except (TypeError, ValueError) as error:
            raise _wrong(path, 0, f"{where} has no number: {str(sample[1])[:40]}") from error
        if not 0 <= rate <= MAX_RATE:  # NaN is neither
            raise _wrong(path, 0, f"{where} is not a rate within 0 to {MAX_RATE:g}: {rate}")
        yield _Rate(at_s, rate)


def _arrivals(rates: Iterator[_Rate], shape: RateShape) -> Iterator[Request]:
    """A Poisson process whose rate holds from each instant to the next; the last one ends it."""
    chance = random.Random(shape.seed)  # noqa: S311 - no secret
    now: _Rate | None = None
    for following in rates:
        if now is not None and now.per_second > 0:
            at_s = now.at_s + chance.expovariate(now.per_second)
            while at_s < following.at_s:
                yield Request(
                    at_s,
                    shape.prompt_tokens if now.prompt_tokens is None else now.prompt_tokens,
                    shape.output_tokens if now.output_tokens is None else now.output_tokens,
                )
                at_s += chance.expovariate(now.per_second)
        now = following


# ------------------------------------------------------------------------ cells and lines


def _rows(path: Path, lines: IO[str], columns: int) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells, from the second line on; empty lines are left out."""
    # A line without an end is cut rather than read whole.
    reader = csv.reader(iter(lambda: lines.readline(MAX_LINE_CHARACTERS), ""))
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise _wrong(path, reader.line_num + 1, f"cannot be read: {error}") from error
        if row is None:
            return
        if not row:
            continue
        if len(row) != columns:
            message = f"has {len(row)} columns instead of {columns}"
            raise _wrong(path, reader.line_num + 1, message)
        yield reader.line_num + 1, row


def _document(path: Path, lines: IO[str], begin: str) -> dict[str, Any]:
    text = begin + lines.read(MAX_EXPORT_BYTES)
    if len(text) >= MAX_EXPORT_BYTES:
        raise _wrong(path, 0, f"is larger than {MAX_EXPORT_BYTES // 1024**2} MiB")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        raise _wrong(path, line, f"is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _wrong(path, 0, "is not a JSON object")
    return found


def _object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, line, f"is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _wrong(path, line, "is not a JSON object")
    return found


def _number(path: Path, line: int, name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError as error:
        raise _wrong(path, line, f"{name} is no number: {text[:40]!r}") from error
    if not math.isfinite(found):
        raise _wrong(path, line, f"{name} is not finite: {text[:40]!r}")
    return found


def _tokens(path: Path, line: int, name: str, found: object) -> int:
    """At least 1: an engine computes one token of a prompt and gives one, whatever a log says."""
    if isinstance(found, str) and found.strip().isdecimal() and found.isascii():
        found = int(found) if len(found) < 20 else MAX_TOKENS + 1
    if type(found) is not int or not 0 <= found <= MAX_TOKENS:
        raise _wrong(path, line, f"{name} is not a count of tokens: {str(found)[:40]!r}")
    return max(1, found)


def _in_order(path: Path, line: int, at_s: float, before: float) -> float:
    if at_s < before:
        raise _wrong(path, line, f"is {before - at_s:.3f} s earlier than the line before")
    return at_s


def _finite(found: object) -> float | None:
    """The number; None for what is none (true and false are none) or is not finite."""
    if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) > 1e15:
        return None
    return float(found) if math.isfinite(found) else None


def _wrong(path: Path, line: int, message: str, *, hint: str = "") -> BadInput:
    place = SourceLocation(str(path), line, min(line, 1))
    return BadInput((Finding(place, "invalid-trace", message, hint=hint),))

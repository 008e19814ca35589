"""A metrics page of an engine as samples: Prometheus text 0.0.4 and OpenMetrics 1.0.

In: the text. Out: values by name and labels, without vLLM's prefix, which proxies and
recording rules may have turned from `vllm:` into `vllm_`. Used by engine.load and
engine.counters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

__all__ = ["PREFIXES", "Samples", "samples_of"]

PREFIXES = ("vllm:", "vllm_")
"""The first prefix under which all that is needed is found wins, so that a page that carries
both is not counted twice."""

Samples: TypeAlias = Mapping[str, Mapping[str, float]]
"""Name (without prefix) to labels, as they are written, to value; NaN where it can't be read."""

_SAMPLE = re.compile(
    r"""(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
    (?:\{(?P<labels>(?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?
    [ \t]+(?P<value>[^ \t#]+)""",
    re.VERBOSE,
)
"""Label values may hold spaces and braces; an exemplar (` # {…} 1`) may follow the value."""


def samples_of(page: str, names: Collection[str], prefix: str) -> Samples:
    """The samples of those names under one prefix; names that the page lacks are absent.

    Two samples of one name and the same labels cannot be told apart: both become NaN.
    """
    found: dict[str, dict[str, float]] = {}
    for line in page.split("\n"):
        if not line.startswith(prefix):
            continue
        match = _SAMPLE.match(line)
        name = _name(line) if match is None else match["name"]
        short = name.removeprefix(prefix)
        if short not in names:
            continue
        labels = "" if match is None else match["labels"] or ""
        series = found.setdefault(short, {})
        unreadable = match is None or labels in series
        series[labels] = math.nan if unreadable or match is None else _value(match["value"])
    return found


def _name(line: str) -> str:
    """The name at the start of a line that is no whole sample."""
    return re.split(r"[{ \t]", line, maxsplit=1)[0]


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

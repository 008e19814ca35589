"""A metrics page of an engine as samples: Prometheus text 0.0.4 and OpenMetrics 1.0.

In: the text. Out: values by name and labels, without vLLM's prefix, which proxies and
recording rules may have turned from `vllm:` into `vllm_`; and which names only ever grow. Used
by engine.load and engine.counters, and by signals with whole names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

__all__ = ["PREFIXES", "Samples", "counting_names", "samples_of"]

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


_NAME = re.compile(r"[^{ \t]*")
_TYPE = "# TYPE "
_OF_HISTOGRAMS = ("_bucket", "_count", "_sum")


def samples_of(page: str, names: Collection[str], prefix: str = "") -> Samples:
    """The samples of those names under one prefix; names that the page lacks are absent.

    Two samples of one name and the same labels cannot be told apart: both become NaN.
    """
    found: dict[str, dict[str, float]] = {}
    for line in page.split("\n"):
        if line.startswith("#") or not line.startswith(prefix):
            continue
        short = _name(line).removeprefix(prefix)
        if short not in names:
            continue
        match = _SAMPLE.match(line)
        labels = "" if match is None else match["labels"] or ""
        series = found.setdefault(short, {})
        unreadable = match is None or labels in series
        series[labels] = math.nan if unreadable or match is None else _value(match["value"])
    return found


def counting_names(page: str, names: Collection[str]) -> frozenset[str]:
    """Those of the names whose values only grow while an engine runs, by the page's TYPE lines.

    Names without one count by their ending, as the formats ask for: `_total` and `_bucket`.
    """
    types: dict[str, str] = {}
    for line in page.split("\n"):
        if line.startswith(_TYPE):
            family, _, kind = line.removeprefix(_TYPE).strip().partition(" ")
            types[family] = kind.strip()
    return frozenset(name for name in names if _counts(name, types))


def _counts(name: str, types: Mapping[str, str]) -> bool:
    """A TYPE line names a family: OpenMetrics leaves out `_total`, histograms have endings."""
    family = next((name.removesuffix(end) for end in _OF_HISTOGRAMS if name.endswith(end)), "")
    if types.get(family) in {"histogram", "summary"}:
        return True
    kind = types.get(name) or types.get(name.removesuffix("_total"))
    if kind in {None, "untyped", "unknown"}:
        return name.endswith(("_total", "_bucket"))
    return kind == "counter"


def _name(line: str) -> str:
    """What a line starts with, which is a name where it is a sample.

    Most lines have labels and are not wanted: they are left behind without a regular expression.
    """
    name = line.partition("{")[0]
    if " " not in name and "\t" not in name:
        return name
    match = _NAME.match(line)
    return "" if match is None else match[0]


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

"""Scaling blocks as files spell them, their faults and what they become."""

from __future__ import annotations

from textwrap import indent

import yaml

from stoker.errors import Finding
from stoker.model.scaling import MetricSourceType, Scaling
from stoker.source.compile import Compiled, UnitSettings, compile_draft
from stoker.source.scaling_model import scaling_of
from stoker.source.schema_scaling import ScalingBlock
from stoker.source.unit_file import read_unit_file
from unit.source.source_builders import SERVICE

SOURCES = (
    ("epp", MetricSourceType.SCRAPE),
    ("judge", MetricSourceType.DECISION),
    ("main", MetricSourceType.PROMETHEUS),
)
QUEUE = '{name: queue, scrape: {metric: "vllm:num_requests_waiting"}, targetPerReplica: "4"}'
ROUTER = "{name: router, prometheus: {source: main, query: queue_size}, hold: 5m}"
ZERO = f"minReplicas: 0\nmaxReplicas: 4\nscaleToZero: {{policy: AfterIdle, wake: [{ROUTER}]}}\n"
SCALING_AT = 8
"""The line of `scaling:` in a file of `compiled`; its fields begin below it."""


def compiled(lines: str, sources=SOURCES, text: str = SERVICE) -> Compiled:
    """A service with these lines below `scaling:`, in a Fleet with these metric sources."""
    file = text + "  scaling:\n" + indent(lines.strip("\n") + "\n", "    ")
    (draft,) = read_unit_file("models/q.yaml", file.encode()).drafts
    return compile_draft(draft, UnitSettings(namespace="llm", pools=("l4",), sources=sources))


def faults(lines: str, sources=SOURCES) -> list[Finding]:
    """Everything said of the block but that this version does not obey it yet."""
    found = compiled(lines, sources).findings
    return [finding for finding in found if finding.code != "not-implemented-yet"]


def scaling(lines: str) -> Scaling:
    """What a block without faults becomes."""
    assert faults(lines) == []
    found = scaling_of(ScalingBlock.model_validate(yaml.safe_load(lines)))
    assert found is not None
    return found

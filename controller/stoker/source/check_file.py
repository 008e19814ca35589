"""One file by itself, without its fleet: for `stoker validate FILE` and editors' hooks.

Everything that needs other files (pools, patches, includes, duplicates) is left to source.
"""

from __future__ import annotations

from stoker.errors import Finding
from stoker.source.compile import UnitSettings, compile_draft
from stoker.source.fleet_file import fleet_findings
from stoker.source.unit_file import read_unit_file, unusable
from stoker.source.yaml_strict import read_yaml

__all__ = ["check_file"]

_ALONE = UnitSettings(namespace="default", pools=None)


def check_file(path: str, data: bytes) -> tuple[Finding, ...]:
    """Everything wrong with a Fleet or unit file, sorted by place; empty when it is in order."""
    if unusable(path, data) is None:
        documents = read_yaml(path, data).documents
        first = documents[0].value if documents else None
        if isinstance(first, dict) and first.get("kind") == "Fleet":
            return fleet_findings(path, data)
    file = read_unit_file(path, data)
    findings = list(file.findings)
    for draft in file.drafts:
        findings += compile_draft(draft, _ALONE).findings
    return tuple(sorted(set(findings)))

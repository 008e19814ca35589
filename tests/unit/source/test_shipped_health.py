"""The health files that ship: each judges its example objects as the examples say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml

from stoker.cel import Cel
from stoker.cel.library import declarations
from stoker.model.outcome import Health
from stoker.objects.health import health_of
from stoker.objects.health_rules import HealthRules
from stoker.source.health_files import SHIPPED, in_force, read_health_file, shipped_checks

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "policies/health"
PAGE = (ROOT / "docs/health.md").read_text("utf-8")
FILES = sorted(FOLDER.glob("*.yaml"))
NO_STATES = {"TriggerAuthentication", "ClusterTriggerAuthentication"}
"""Kinds whose status says nothing of how they are."""
NEVER_FAILS = {"LeaderWorkerSet"}
"""Kinds whose API has no failure; their third example is one that cannot be read."""


def examples() -> Iterator[Any]:
    for file in sorted((FOLDER / "examples").glob("*.yaml")):
        for index, example in enumerate(yaml.safe_load_all(file.read_text("utf-8"))):
            kind = example["object"]["kind"]
            yield pytest.param(file.stem, example, id=f"{kind} {example['expect']} {index}")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_a_shipped_file_has_nothing_wrong(file):
    read = read_health_file(file.name, file.read_bytes(), Cel())

    assert read.findings == ()
    assert read.checks
    assert file.read_text("utf-8").startswith("# "), "its source is cited"


def test_no_two_shipped_files_describe_one_kind():
    files = [read_health_file(file.name, file.read_bytes(), Cel()) for file in FILES]

    assert in_force(files)[1] == []


@pytest.mark.parametrize(("file", "example"), tuple(examples()))
def test_the_examples_are_judged_as_they_say(file, example):
    rules = HealthRules(Cel(), (), shipped_checks)

    verdict = health_of(example["object"], rules)

    assert (example["expect"], verdict.message) == (
        verdict.status,
        example.get("message", verdict.message),
    )
    if "status" in example["object"]:
        assert verdict.by == f"policies/health/{file}.yaml of Stoker"


def test_each_kind_has_an_example_that_passes_one_that_waits_and_one_that_fails():
    seen: dict[tuple[str, str], set[str]] = {}
    for parameter in examples():
        found = parameter.values[1]["object"]
        group = found["apiVersion"].rpartition("/")[0]
        seen.setdefault((group, found["kind"]), set()).add(parameter.values[1]["expect"])

    for check in shipped_checks():
        wanted = {Health.HEALTHY, Health.PROGRESSING, Health.DEGRADED}
        if check.kind in NO_STATES:
            wanted = {Health.HEALTHY}
        elif check.kind in NEVER_FAILS:
            wanted = {Health.HEALTHY, Health.PROGRESSING, Health.UNKNOWN}
        if check.suspended:
            wanted.add(Health.SUSPENDED)
        assert wanted <= seen[check.group, check.kind], check.kind


def test_the_page_lists_what_ships():
    rows = dict(re.findall(r"^\| `([a-z-]+\.yaml)` \| (.*) \|$", PAGE, re.MULTILINE))
    ships: dict[str, list[str]] = {}
    for check in shipped_checks():
        kinds = ships.setdefault(check.path.removesuffix(SHIPPED).rpartition("/")[2], [])
        kinds += [check.kind] if check.kind not in kinds else []

    assert rows == {file: ", ".join(kinds) for file, kinds in ships.items()}


def test_the_example_of_the_page_is_a_health_file():
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

    read = read_health_file("docs/health.md", example.encode(), Cel())

    assert read.findings == ()
    ((check, _),) = read.checks
    rules = HealthRules(Cel(), [check])
    conditions = [{"type": "StorageReady", "status": "False", "message": "no bucket"}]
    status = {"status": "Unhealthy", "conditions": conditions}
    verdict = health_of(
        {"apiVersion": "milvus.io/v1beta1", "kind": "Milvus", "status": status}, rules
    )
    assert (verdict.status, verdict.message) == (Health.DEGRADED, "StorageReady: no bucket")


def test_the_page_names_every_function_of_ours():
    def kept(name: str, overloads: Any) -> str:
        return name

    module = SimpleNamespace(Type=MagicMock(), FunctionDecl=kept, Overload=lambda *_arguments: None)

    for name in declarations(module):
        assert f"`{name}`" in PAGE or f"`{name}(" in PAGE, name

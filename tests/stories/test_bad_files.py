"""What a wrong file of the repository gets: one clear condition, and nothing else changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import yaml

from stories.files import FLEET, a_config_map, a_fleet, a_service, the_village
from stories.looks import (
    as_it_stands,
    conditions,
    data,
    errors,
    fleet_status,
    is_clean,
    message,
    tell,
    unit_status,
)

TINY = "ModelService/llm/tiny"
SIDE = "Bundle/llm/side"
NEWS = {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})}
"""What else the commit with the fault changes."""


@dataclass(frozen=True)
class Fault:
    """A wrong file: what it is, which unit it concerns, and how it must be told."""

    files: dict[str, str | None]
    code: str
    path: str
    line: int
    unit: str = TINY
    others: tuple[tuple[str, str, int], ...] = ()
    """Further places of the same fault."""
    news: dict[str, str] = field(default_factory=lambda: NEWS)


def a_text(**fields: object) -> str:
    """The service's file with a field changed or, as None, left out."""
    document = yaml.safe_load(a_service(replicas=2))
    document["spec"] = {k: v for k, v in {**document["spec"], **fields}.items() if v is not None}
    return yaml.safe_dump(document, sort_keys=False)


def found_by(world) -> set[tuple[str, str, int]]:
    """Code, path and line of every error that the last pass found, by whatever stage."""
    done = world.work.last
    found = {*done.desired.findings, *done.findings, *(f for s in done.sets for f in s.findings)}
    return {(f.code, f.location.path, f.location.line) for f in found if f.severity == "error"}


def camel(code: str) -> str:
    return "".join(part.capitalize() for part in code.split("-"))


def line_of(text: str, word: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if word in line)


TEMPLATES = {
    FLEET: a_fleet(templates=["/templates"]),
    "models/tiny.yaml": a_text(render={"template": "mine"}),
}
MISSPELT = "kind: ServiceAccount\nmetadata:\n  name: {{ unit.nam }}\n"
DUPLICATE = a_service(replicas=5)
LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
CONFLICT = """\
apiVersion: v1
<<<<<<< HEAD
kind: ConfigMap
=======
kind: Secret
>>>>>>> other
metadata: {name: side}
"""

FAULTS = {
    "unknown key": Fault(
        {"models/tiny.yaml": a_text(replica=9)},
        "unknown-field",
        "models/tiny.yaml",
        line_of(a_text(replica=9), "replica:"),
    ),
    "not implemented yet": Fault(
        {"models/tiny.yaml": a_text(render={"helm": {"chart": "x"}})},
        "not-implemented-yet",
        "models/tiny.yaml",
        line_of(a_text(render={"helm": {"chart": "x"}}), "helm:"),
    ),
    "wrong type": Fault(
        {"models/tiny.yaml": a_text(replicas="three")},
        "invalid-type",
        "models/tiny.yaml",
        line_of(a_text(replicas="three"), "replicas:"),
    ),
    "duration that others read (b.F row 44)": Fault(
        {"models/tiny.yaml": a_text(coldStart={"deadline": "1.5h"})},
        "invalid-duration",
        "models/tiny.yaml",
        line_of(a_text(coldStart={"deadline": "1.5h"}), "deadline:"),
    ),
    "missing field": Fault(
        {"models/tiny.yaml": a_text(engine=None)},
        "field-missing",
        "models/tiny.yaml",
        line_of(a_text(engine=None), "spec:"),
    ),
    "unknown pool": Fault(
        {"models/tiny.yaml": a_text(placement={"pools": [{"name": "gpus"}]})},
        "unknown-pool",
        "models/tiny.yaml",
        line_of(a_text(placement={"pools": [{"name": "gpus"}]}), "name: gpus"),
    ),
    "duplicate unit": Fault(
        {"models/again.yaml": DUPLICATE},
        "duplicate-unit",
        "models/again.yaml",
        1,
        others=(("duplicate-unit", "models/tiny.yaml", 1),),
    ),
    "template error": Fault(
        {**TEMPLATES, "templates/mine.yaml.j2": MISSPELT},
        "template-error",
        "templates/mine.yaml.j2",
        3,
    ),
    "no such template": Fault(
        {"models/tiny.yaml": a_text(render={"template": "vllm/v9"})},
        "template-not-found",
        "models/tiny.yaml",
        line_of(a_text(render={"template": "vllm/v9"}), "template:"),
    ),
    "manifest that is no YAML": Fault(
        {"bundles/side/side.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: side\n"},
        "invalid-yaml",
        "bundles/side/side.yaml",
        4,
        unit=SIDE,
        news={},
    ),
    "manifest in Git LFS": Fault(
        {"bundles/side/side.yaml": LFS_POINTER},
        "lfs-pointer",
        "bundles/side/side.yaml",
        1,
        unit=SIDE,
        news={},
    ),
    "manifest with a merge conflict": Fault(
        {"bundles/side/side.yaml": CONFLICT},
        "conflict-marker",
        "bundles/side/side.yaml",
        2,
        unit=SIDE,
        news={},
    ),
    "manifest with a tab": Fault(
        {"bundles/side/side.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: side\n"},
        "invalid-yaml",
        "bundles/side/side.yaml",
        4,
        unit=SIDE,
        news={},
    ),
    "manifest with a NUL": Fault(
        {"bundles/side/side.yaml": "apiVersion: v1\nkind: Config\0Map\n"},
        "invalid-yaml",
        "bundles/side/side.yaml",
        2,
        unit=SIDE,
        news={},
    ),
    "manifest without a name": Fault(
        {"bundles/side/side.yaml": "apiVersion: v1\nkind: ConfigMap\ndata: {key: value}\n"},
        "invalid-manifest",
        "bundles/side/side.yaml",
        1,
        unit=SIDE,
        news={},
    ),
    "pattern without a file": Fault(
        {"bundles/side/side.yaml": None},
        "manifest-no-match",
        "bundles/side/bundle.yaml",
        8,
        unit=SIDE,
        news={},
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_wrong_unit_file_stops_that_unit_alone_and_its_fix_needs_nobody(world, fault):
    """cases.md row 93: a False condition must not outlive the mistake that made it.

    reliability-security c.3 rows 64, 65 and 67: a pointer, a tab and a conflict have their line.
    """
    before = as_it_stands(world)

    world.commit("A mistake", {**fault.files, **fault.news})
    tell(world)

    status = unit_status(world, fault.unit)
    assert ("True", camel(fault.code)) == conditions(status)["Stalled"]
    assert ("False", camel(fault.code)) == conditions(status)["Ready"]
    assert f"{fault.path}:{fault.line}:" in message(status, "Stalled")
    place = (fault.code, fault.path, fault.line)
    assert sorted([place, *fault.others]) == sorted(errors(status))
    assert {place, *fault.others} == found_by(world)
    assert ("False", "UnitsNotReady") == conditions(fleet_status(world))["Ready"]
    assert [fault.unit] == [entry["unit"] for entry in fleet_status(world)["attention"]]
    assert before == as_it_stands(world)
    assert {"key": "new" if fault.news else "value"} == data(world, "side")

    world.commit("Fixed", {**the_village(), **dict.fromkeys(set(fault.files) - set(the_village()))})
    tell(world)

    assert is_clean(world)
    assert before == as_it_stands(world)
    assert {"key": "value"} == data(world, "side")


@pytest.mark.parametrize(
    ("code", "text", "line"),
    [
        ("invalid-yaml", "kind: ModelService\nmetadata: {name: tiny\nspec: 1\n", 3),
        ("conflict-marker", "<<<<<<< HEAD\nkind: ModelService\n", 1),
    ],
    ids=["not YAML", "merge conflict"],
)
def test_a_file_that_cannot_be_read_holds_every_delete(world, code, text, line):
    """Nobody can tell which units the file still holds: what left Git beside it stays, too.

    reliability-security c.3 row 67.
    """
    before = as_it_stands(world)

    world.commit("A mistake", {"models/tiny.yaml": text, "models/other.yaml": None, **NEWS})
    tell(world)

    status = fleet_status(world)
    assert ("True", camel(code)) == conditions(status)["Stalled"]
    assert ("False", camel(code)) == conditions(status)["Ready"]
    assert f"models/tiny.yaml:{line}:" in message(status, "Stalled")
    assert [(code, "models/tiny.yaml", line)] == errors(status)
    assert status["lastAttemptedRevision"] != status["lastAppliedRevision"]
    assert ("Unknown", "Unknown") == conditions(unit_status(world, TINY))["Ready"]
    assert before == as_it_stands(world)
    assert {"key": "new"} == data(world, "side")

    world.commit("Fixed", the_village())
    tell(world)

    assert is_clean(world)
    assert before == as_it_stands(world)


def test_a_fault_of_the_fleet_beside_its_units_is_its_own_condition(world):
    """A patch for a unit that is not there is nobody's fault but the Fleet file's."""
    patches = [{"target": {"kind": "ModelService", "name": "tinny"}, "patch": {"spec": {}}}]
    fleet = a_fleet(unitPatches=patches)
    before = as_it_stands(world)

    world.commit("A mistake", {FLEET: fleet, **NEWS})
    tell(world)

    status = fleet_status(world)
    line = line_of(fleet, "target:")
    assert ("True", "UnitPatchNoMatch") == conditions(status)["Stalled"]
    assert [("unit-patch-no-match", FLEET, line)] == errors(status)
    assert "tiny" in message(status, "Stalled"), "did you mean"
    assert before == as_it_stands(world)
    assert {"key": "new"} == data(world, "side")


def test_every_fault_of_a_commit_is_told_at_once(world):
    """Nobody wants to fix a commit as often as it has mistakes."""
    world.commit(
        "Three mistakes",
        {
            "models/tiny.yaml": a_text(replica=9, gpus=1),
            "models/other.yaml": a_service("other", replicas=-1),
        },
    )
    tell(world)

    told = {(code, path) for code, path, _ in errors(fleet_status(world))}
    assert 3 == len(errors(fleet_status(world)))
    assert {
        ("unknown-field", "models/tiny.yaml"),
        ("invalid-value", "models/other.yaml"),
    } == told

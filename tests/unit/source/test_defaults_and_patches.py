from __future__ import annotations

import pytest

from stoker.errors import SourceLocation
from stoker.model.fleet import ModelService
from stoker.model.refs import UnitRef
from unit.source.source_builders import (
    FLEET,
    SERVICE,
    codes,
    desired_of,
    fleet_with,
    named,
    with_spec,
)

QWEN = UnitRef("ModelService", "llm", "qwen")


def replicas(desired, name="qwen"):
    unit = desired.unit(UnitRef("ModelService", "llm", name))
    assert unit is not None
    assert isinstance(unit.spec, ModelService)
    return unit.spec.replicas


def test_defaults_go_below_a_service_and_the_service_wins():
    fleet = FLEET.replace(
        "{namespace: llm}",
        "{namespace: llm, modelService: {replicas: 3, drain: {max: 1s, shutdown: 2s}}}",
    )

    desired = desired_of(
        {
            "fleet.yaml": fleet,
            "models/q.yaml": with_spec("drain: {max: 5s}"),
            "models/a.yaml": named("a"),
        }
    )

    unit = desired.unit(QWEN)
    assert unit is not None
    assert isinstance(unit.spec, ModelService)
    assert (unit.spec.replicas, unit.spec.drain.max_ms, unit.spec.drain.shutdown_ms) == (
        3,
        5000,
        2000,
    )
    assert unit.line_of("spec.drain.max") == SourceLocation("models/q.yaml", 8, 11)
    assert unit.line_of("spec.replicas").path == "fleet.yaml"


def test_a_service_may_leave_a_default_count_to_others():
    fleet = FLEET.replace("{namespace: llm}", "{namespace: llm, modelService: {replicas: 3}}")

    desired = desired_of(
        {"fleet.yaml": fleet, "models/q.yaml": with_spec("scaling: {mode: External}")}
    )

    assert replicas(desired) is None


def test_a_fault_that_comes_from_the_defaults_is_told_there():
    fleet = FLEET.replace(
        "{namespace: llm}", "{namespace: llm, modelService: {placement: {pools: [{name: l5}]}}}"
    )

    desired = desired_of({"fleet.yaml": fleet, "models/q.yaml": SERVICE})

    assert codes(desired) == ["unknown-pool"]
    assert desired.findings[0].location.path == "fleet.yaml"


def test_patches_go_over_the_units_they_mean():
    fleet = fleet_with(
        "unitPatches:\n"
        "- {target: {kind: ModelService, name: qwen}, patch: {spec: {replicas: 4, cache: null}}}\n"
        "- {target: {kind: ModelService, name: qwen, namespace: llm}, patch: {spec: {replicas: 5}}}"
    )

    desired = desired_of(
        {
            "fleet.yaml": fleet,
            "models/q.yaml": with_spec("replicas: 2\ncache: {type: HostPath, path: /x}"),
            "models/a.yaml": named("a"),
        }
    )

    assert desired.findings == ()
    assert (replicas(desired), replicas(desired, "a")) == (5, 1)
    unit = desired.unit(QWEN)
    assert unit is not None
    assert isinstance(unit.spec, ModelService)
    assert unit.spec.cache.path == ""
    assert unit.line_of("spec.replicas").path == "fleet.yaml"


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("{kind: ModelService, name: qwem}", "did you mean qwen?"),
        ("{kind: ModelService, name: qwen, namespace: other}", "did you mean qwen?"),
        ("{kind: Bundle, name: qwen}", ""),
    ],
)
def test_a_patch_that_means_no_unit_is_an_error(target, hint):
    fleet = fleet_with(f"unitPatches: [{{target: {target}, patch: {{spec: {{}}}}}}]")

    desired = desired_of({"fleet.yaml": fleet, "models/q.yaml": SERVICE})

    assert [(f.code, f.field, f.hint) for f in desired.findings] == [
        ("unit-patch-no-match", "spec.unitPatches[0].target", hint)
    ]
    assert [unit.ref for unit in desired.units] == [QWEN]


def test_a_wrong_patch_breaks_its_unit_and_is_told_in_the_fleet_file():
    fleet = fleet_with(
        "unitPatches: [{target: {kind: ModelService, name: qwen}, patch: {spec: {replcas: 4}}}]"
    )

    desired = desired_of({"fleet.yaml": fleet, "models/q.yaml": SERVICE})

    assert [(f.code, f.location.path, f.unit) for f in desired.findings] == [
        ("unknown-field", "fleet.yaml", str(QWEN))
    ]


def test_a_patch_of_a_broken_unit_has_found_it():
    fleet = fleet_with(
        "unitPatches: [{target: {kind: ModelService, name: qwen}, patch: {spec: {}}}]"
    )

    desired = desired_of({"fleet.yaml": fleet, "models/q.yaml": with_spec("x: 1")})

    assert codes(desired) == ["unknown-field"]

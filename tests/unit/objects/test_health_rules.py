from __future__ import annotations

from typing import Any

import pytest

from stoker.cel import Cel
from stoker.model.expression import Answer, Truth
from stoker.model.health_file import HealthCheck
from stoker.model.outcome import Health
from stoker.objects.health import health_of
from stoker.objects.health_rules import HealthRules

WIDGET = HealthCheck(
    "example.com",
    "Widget",
    "policies/health/widget.yaml",
    current="status.phase == 'Up'",
    in_progress="status.phase in ['Rising', 'Both']",
    failed="status.phase in ['Down', 'Both']",
    suspended="status.phase == 'Paused'",
    message="['phase', status.phase].join(' ')",
)


def widget(phase: str | None = "Up", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v2",
        "kind": "Widget",
        "metadata": {"name": "w", **metadata},
        "status": {} if phase is None else {"phase": phase},
    }


def judged(manifest: dict[str, Any], *checks: HealthCheck, shipped: tuple[HealthCheck, ...] = ()):
    return health_of(manifest, HealthRules(Cel(), checks or (WIDGET,), lambda: shipped))


@pytest.mark.parametrize(
    ("phase", "status", "reason", "message"),
    [
        ("Up", Health.HEALTHY, "Current", ""),
        ("Rising", Health.PROGRESSING, "InProgress", "phase Rising"),
        ("Both", Health.PROGRESSING, "InProgress", "phase Both"),
        ("Down", Health.DEGRADED, "Failed", "phase Down"),
        ("Paused", Health.SUSPENDED, "Suspended", "phase Paused"),
        ("Else", Health.PROGRESSING, "NotCurrent", "phase Else"),
    ],
)
def test_the_first_expression_that_holds_decides(phase, status, reason, message):
    """In Flux's order: inProgress, failed, then current; none of them is progress."""
    verdict = judged(widget(phase))

    assert (verdict.status, verdict.reason, verdict.message) == (status, reason, message)
    assert verdict.by == "policies/health/widget.yaml"


def test_a_health_file_gives_the_answer_of_kstatus_where_people_want_it():
    """docs/health.md: what its controller has seen is current, whatever else its status says."""
    check = HealthCheck("example.com", "Widget", "w.yaml", current="true")
    seen = {
        **widget("Failed", generation=2),
        "status": {"phase": "Failed", "observedGeneration": 2},
    }
    late = {**seen, "status": {"phase": "Failed", "observedGeneration": 1}}

    assert judged(seen, check).status is Health.HEALTHY
    assert judged(late, check).status is Health.PROGRESSING
    assert health_of(seen).status is Health.UNKNOWN


def test_an_expression_that_fails_is_unknown_and_never_healthy():
    manifest = {**widget(), "status": {"state": "Up"}}

    verdict = judged(manifest)

    assert (verdict.status, verdict.reason) == (Health.UNKNOWN, "ExpressionFailed")
    assert "inProgress" in verdict.message
    assert verdict.by == "policies/health/widget.yaml"


def test_an_object_that_nobody_looked_at_is_on_its_way():
    """Or every new object would be Unknown until its controller writes a status."""
    verdict = judged(widget(None))

    assert (verdict.status, verdict.reason) == (Health.PROGRESSING, "NotObserved")


def test_a_message_that_fails_takes_nothing_from_the_verdict():
    check = HealthCheck("example.com", "Widget", "w.yaml", current="false", message="status.x")

    assert judged(widget(), check).status is Health.PROGRESSING


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"deletionTimestamp": "2026-11-29T03:05:02Z"}, id="on its way out"),
        pytest.param({"generation": 2}, id="not observed"),
    ],
)
def test_a_status_of_something_else_is_not_asked(metadata):
    manifest = widget(**metadata)
    manifest["status"]["observedGeneration"] = 1

    assert judged(manifest).status is Health.PROGRESSING
    assert judged(manifest).by == ""


def deployment() -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}, "status": {}}


def test_the_fleets_own_file_comes_before_the_rule_of_a_built_in_kind():
    own = HealthCheck("apps", "Deployment", "own.yaml", current="true")

    assert judged(deployment(), own).by == "own.yaml"


def test_the_rule_of_a_built_in_kind_comes_before_a_shipped_file():
    shipped = HealthCheck("apps", "Deployment", "shipped.yaml", current="true")

    assert judged(deployment(), WIDGET, shipped=(shipped,)).reason == "UpdatingPods"


def test_the_fleets_own_file_comes_before_a_shipped_one():
    shipped = HealthCheck("example.com", "Widget", "shipped.yaml", current="true")

    assert judged(widget("Down"), shipped=(shipped,)).by == "policies/health/widget.yaml"


def test_a_shipped_file_comes_before_the_condition_ready():
    shipped = HealthCheck("x.io", "Gadget", "shipped.yaml", current="false", failed="true")
    ready = [{"type": "Ready", "status": "True"}]
    manifest = {"apiVersion": "x.io/v1", "kind": "Gadget", "status": {"conditions": ready}}

    assert judged(manifest, WIDGET, shipped=(shipped,)).status is Health.DEGRADED
    assert judged(manifest, WIDGET).status is Health.HEALTHY


def test_shipped_files_are_read_when_a_custom_kind_is_met():
    """A fleet without custom kinds never reads them."""
    read: list[str] = []

    def shipped() -> tuple[HealthCheck, ...]:
        read.append("x")
        return ()

    rules = HealthRules(Cel(), (), shipped)
    health_of(deployment(), rules)
    assert read == []

    health_of(widget(), rules)
    health_of(widget("Down"), rules)
    assert read == ["x"]


def test_a_kind_whose_file_is_wrong_is_unknown():
    """Another rule might call well what the file would not."""
    broken = HealthCheck("example.com", "Widget", "w.yaml", "true", problem="w.yaml:3:5: no")

    verdict = judged(widget(), broken)

    assert (verdict.status, verdict.reason) == (Health.UNKNOWN, "HealthFileWrong")
    assert verdict.message == "w.yaml:3:5: no"


class Missing:
    """The port where the package is not installed."""

    missing = "cel-expr-python"

    def about(self, manifest):
        return self

    def ask(self, expression: str) -> Answer:
        return Answer(Truth.ERROR, "the package cel-expr-python is not installed")

    def text(self, expression: str) -> str:
        return ""

    def about_all(self, manifests):
        return self.about({"objects": manifests})

    def faults(self, expression: str, *, text: bool = False, about_all: bool = False):
        return ()


def test_without_the_package_built_in_kinds_are_judged_as_ever():
    rules = HealthRules(Missing(), (WIDGET,))

    assert health_of(deployment(), rules) == health_of(deployment())
    verdict = health_of(widget(), rules)
    assert (verdict.status, verdict.reason) == (Health.UNKNOWN, "ExpressionsMissing")
    assert "cel-expr-python" in verdict.message

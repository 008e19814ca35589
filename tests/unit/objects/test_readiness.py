from __future__ import annotations

from typing import Any

import pytest

from stoker.cel import Cel
from stoker.model.health_file import HealthCheck
from stoker.objects.health_rules import HealthRules
from stoker.objects.readiness import Readiness, Ready, readiness
from unit.objects.test_health_rules import Missing

RULES = HealthRules(
    Cel(), (HealthCheck("x.io", "Db", "db.yaml", current="status.up", failed="!status.up"),)
)


def db(*, generation: int = 1, **status: Any) -> dict[str, Any]:
    metadata = {"name": "db", "generation": generation}
    return {"apiVersion": "x.io/v1", "kind": "Db", "metadata": metadata, "status": status}


@pytest.mark.parametrize(
    ("manifest", "expression", "state", "message"),
    [
        pytest.param(db(n=3), "status.n >= 3", Ready.READY, "", id="holds"),
        pytest.param(
            db(n=2), "status.n >= 3", Ready.NOT_READY, "not yet: status.n >= 3", id="does not"
        ),
        pytest.param(None, "true", Ready.NOT_READY, "does not exist", id="absent"),
        pytest.param(
            db(generation=2, observedGeneration=1, n=3),
            "status.n >= 3",
            Ready.NOT_READY,
            "generation 2, controller saw 1",
            id="a status of the generation before",
        ),
        pytest.param(
            {**db(n=3), "metadata": {"deletionTimestamp": "2026-11-29T03:05:02Z"}},
            "status.n >= 3",
            Ready.NOT_READY,
            "waits for its finalizers",
            id="on its way out",
        ),
        pytest.param(db(), "status.n >= 3", Ready.NOT_READY, "no status yet", id="no status"),
        pytest.param(
            db(other=1),
            "status.n >= 3",
            Ready.UNKNOWN,
            'status.n >= 3: Key not found in map : "n"',
            id="a field that is not there",
        ),
        pytest.param(db(n=1), "status.n", Ready.UNKNOWN, "status.n: comes to", id="no yes or no"),
        pytest.param(db(up=True), "", Ready.READY, "", id="by its health"),
        pytest.param(db(up=False), "", Ready.NOT_READY, "Failed", id="not healthy"),
        pytest.param(db(down=1), "", Ready.UNKNOWN, "ExpressionFailed: ", id="health unknown"),
    ],
)
def test_a_dependency_is_ready_not_ready_or_unknown(manifest, expression, state, message):
    found = readiness(manifest, expression, RULES)

    assert found.state is state
    assert found.message.startswith(message)
    assert bool(found.message) is (state is not Ready.READY)


def test_without_the_package_an_expression_is_unknown():
    """A missing package must never let a dependent go first."""
    found = readiness(db(), "true", HealthRules(Missing()))

    assert found == Readiness(Ready.UNKNOWN, "true: the package cel-expr-python is not installed")

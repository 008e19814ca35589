from __future__ import annotations

from typing import Any

import pytest

from fakes_live import FakeLive
from stoker.cel import Cel
from stoker.model.refs import ObjectRef
from stoker.objects.readiness import Readiness, Ready, readiness
from unit.objects.test_health_rules import Missing

DB = ObjectRef("x.io", "Db", "llm", "db", "v1")
UP = "objects.all(o, o.status.n >= 3)"


def db(*, name: str = "db", generation: int = 1, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "llm", "uid": name, "generation": generation}
    return {"apiVersion": "x.io/v1", "kind": "Db", "metadata": metadata, "status": status}


def asked(expression: str, *there: dict[str, Any], members: tuple[ObjectRef, ...] = (DB,)):
    return readiness(members, FakeLive().put(*there), expression, Cel())


@pytest.mark.parametrize(
    ("manifest", "expression", "state", "message"),
    [
        pytest.param(db(n=3), UP, Ready.READY, "", id="holds"),
        pytest.param(
            db(n=2), UP, Ready.NOT_READY, f"it is not ready: {UP} is false", id="does not"
        ),
        pytest.param(
            db(generation=2, observedGeneration=1, n=3),
            UP,
            Ready.NOT_READY,
            "Db llm/db: generation 2, controller saw 1",
            id="a status of the generation before",
        ),
        pytest.param(
            {**db(n=3), "metadata": {**db()["metadata"], "deletionTimestamp": "2026-11-29"}},
            UP,
            Ready.NOT_READY,
            "Db llm/db: waits for its finalizers",
            id="on its way out",
        ),
        pytest.param(
            db(other=1),
            UP,
            Ready.UNKNOWN,
            'whether it is ready is not known: Key not found in map : "n" (asked: objects.all(',
            id="a field that is not there",
        ),
        pytest.param(
            db(n=1),
            "objects.size()",
            Ready.UNKNOWN,
            "whether it is ready is not known: comes to INT; true or false is wanted (asked: ",
            id="no yes or no",
        ),
        pytest.param(
            db(n=1),
            "objects[0].metadata.name",
            Ready.UNKNOWN,
            "whether it is ready is not known: comes to STRING; true or false is wanted (asked: ",
            id="a text",
        ),
    ],
)
def test_a_dependency_is_ready_not_ready_or_unknown(manifest, expression, state, message):
    found = asked(expression, manifest)

    assert found.state is state
    assert found.message.startswith(message)
    assert bool(found.message) is (state is not Ready.READY)


def test_an_object_that_is_absent_is_not_ready_even_where_all_of_none_holds():
    other = ObjectRef("x.io", "Db", "llm", "other", "v1")

    assert asked("true") == Readiness(Ready.NOT_READY, "Db llm/db does not exist")
    assert asked(UP, db(n=3), members=(DB, other)) == Readiness(
        Ready.NOT_READY, "Db llm/other does not exist"
    )


def test_an_object_that_could_not_be_read_is_unknown_and_not_absent():
    live = FakeLive(unknown={DB: "forbidden"})

    found = readiness((DB,), live, "true", Cel())

    assert found.state is Ready.UNKNOWN
    assert found.message == "whether Db llm/db is ready is not known: forbidden"


def test_an_expression_sees_all_objects_in_the_order_of_the_unit():
    second = ObjectRef("x.io", "Db", "llm", "second", "v1")
    expression = "objects.map(o, o.metadata.name).join(' ') == 'second db'"

    found = asked(expression, db(), db(name="second"), members=(second, DB))

    assert found.state is Ready.READY


def test_without_the_package_an_expression_is_unknown():
    """A missing package must never let a dependent go first."""
    found = readiness((DB,), FakeLive().put(db()), "true", Missing())

    assert found.state is Ready.UNKNOWN
    assert found.message == (
        "whether it is ready is not known: the package cel-expr-python is not installed "
        "(asked: true)"
    )

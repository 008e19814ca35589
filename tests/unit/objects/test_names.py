"""Names, marks and labels that everything else relies on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects.names import (
    deployment_name,
    fleet_id_of,
    manager_of,
    owner_mark,
    placement_label,
    unit_of_mark,
)

UNIT = UnitRef("Bundle", "llm", "a.b")
REF = ObjectRef("apps", "Deployment", "llm", "d", "v1")

words = st.text("abcdefgh-.", min_size=1, max_size=60)


def test_a_mark_names_its_unit_and_the_object_itself():
    mark = owner_mark("f1", UNIT, REF)

    assert mark == "f1/Bundle.llm.a.b/apps/Deployment/llm/d"
    assert unit_of_mark(mark, "f1", REF) == UNIT


@pytest.mark.parametrize(
    ("mark", "fleet", "ref"),
    [
        ("", "f1", REF),
        (owner_mark("f1", UNIT, REF), "f2", REF),
        (owner_mark("f1", UNIT, REF), "f1", ObjectRef("apps", "Deployment", "llm", "copy")),
        (owner_mark("f1", UNIT, REF), "f1", ObjectRef("apps", "ReplicaSet", "llm", "d")),
        ("f1/Bundle/apps/Deployment/llm/d", "f1", REF),
    ],
    ids=["none", "other-fleet", "copied-to-another-name", "copied-to-a-child", "no-unit"],
)
def test_a_copied_or_foreign_mark_is_worthless(mark, fleet, ref):
    """cases.md row 71."""
    assert unit_of_mark(mark, fleet, ref) is None


def test_the_managers_name_holds_the_fleets_id():
    assert manager_of("f1") == "stoker-f1"


def test_a_fleets_id_is_fixed_by_cluster_and_first_name():
    """a.4 P1."""
    assert fleet_id_of("c", "prod") == fleet_id_of("c", "prod")
    assert fleet_id_of("c", "prod") != fleet_id_of("c2", "prod")
    assert len(fleet_id_of("c", "prod")) == 8


@settings(deadline=None)
@given(words, words, words)
def test_names_of_deployments_are_names_and_differ_by_node(service, one, other):
    """Node names have dots and 253 characters, so they are hashed."""
    name = deployment_name(service, one, "12345678")

    assert len(name) <= 40 + 1 + 8 + 1 + 8
    assert name.endswith("-12345678")
    assert (name == deployment_name(service, other, "12345678")) == (one == other)


def test_in_mode_scheduler_the_deployment_is_called_as_the_service():
    assert deployment_name("qwen", "", "") == "qwen"
    assert placement_label("qwen", "", "").startswith("any-")


def test_selectors_of_siblings_differ():
    """Siblings with one selector adopt each other's ReplicaSets."""
    labels = {
        placement_label("qwen", "n1", "aaaaaaaa"),
        placement_label("qwen", "n2", "aaaaaaaa"),
        placement_label("qwen", "n1", "bbbbbbbb"),
        placement_label("other", "n1", "aaaaaaaa"),
        placement_label("qwen", "", ""),
    }

    assert len(labels) == 5

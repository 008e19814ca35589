"""Objects in namespaces or of kinds that are not there yet are marked so."""

import pytest

from fakes_live import FakeLive
from stoker.cli.print_diff import diff_text
from stoker.cli.style import Style
from stoker.diff import DiffMemo, diff
from stoker.model.change import Action
from stoker.objects.inventory import Inventory
from unit.diff.diff_builders import (
    FLEET_ID,
    NO_CLUSTER,
    A,
    config,
    crd,
    desired,
    gizmo,
    namespace,
    rendered,
)

INVENTORY = Inventory(FLEET_ID, "prod")


def shown(view, *bodies, **options):
    changes = diff(
        desired(A), (rendered(A, *bodies),), view, INVENTORY, NO_CLUSTER, FLEET_ID, DiffMemo(),
        **options,
    )  # fmt: skip
    return changes, diff_text(changes, desired(A), Style(no_color=True))


def test_what_waits_for_a_namespace_of_this_fleet_says_so():
    """cases.md row 51: it is a create all the same."""
    changes, text = shown(FakeLive(phases={"llm": ""}), namespace("llm"), config())

    assert {c.action for c in changes.units[0].changes} == {Action.CREATE}
    assert "+ create  ConfigMap llm/c\n    namespace llm does not exist yet and comes first" in text


def test_what_waits_for_a_definition_of_this_fleet_says_so():
    view = FakeLive(missing_kinds={("example.org", "Gizmo")})
    _, text = shown(view, crd(), gizmo())

    assert "the cluster does not serve Gizmo yet; its definition comes first" in text


def test_a_namespace_that_nobody_brings_is_waited_for():
    changes, text = shown(FakeLive(phases={"llm": ""}), config())

    assert [c.action for c in changes.units[0].changes] == [Action.WAIT]
    assert "namespace llm does not exist [namespace-not-found]" in text


@pytest.mark.parametrize("body", [gizmo()], ids=["a custom resource"])
def test_a_kind_that_nobody_brings_is_waited_for(body):
    view = FakeLive(missing_kinds={("example.org", "Gizmo")})
    changes, text = shown(view, body)

    assert [c.action for c in changes.units[0].changes] == [Action.WAIT]
    assert "[kind-not-found]" in text

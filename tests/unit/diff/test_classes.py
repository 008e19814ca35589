"""Classes of consequences: what stops a pipeline, and what does not."""

import pytest

from stoker.diff.classes import ChangeClass, classes_of
from stoker.model.change import Action, Change, ChangeSet, Impact, UnitChanges
from stoker.model.fleet import PlacementMode
from stoker.model.plan import CountReason, Plan, Retirement, RetireStage, ServiceDecision
from stoker.model.refs import ObjectRef
from unit.diff.diff_builders import QWEN

REF = ObjectRef("apps", "Deployment", "llm", "d")
OLD = ObjectRef("apps", "Deployment", "llm", "old")
LEAVING = Retirement("old", "u", RetireStage.STOP_TRAFFIC, "why")


def found(*changes, retirements=(), plan=None):
    unit = UnitChanges(QWEN, tuple(changes), retirements=retirements)
    return {str(one) for one in classes_of(ChangeSet((unit,)), plan)}


def updating(replicas=1):
    decision = ServiceDecision(
        QWEN, PlacementMode.NODES, "r", replicas, CountReason("Git"), updating=True
    )
    return Plan(0, (decision,))


@pytest.mark.parametrize(
    ("change", "classes"),
    [
        (Change(REF, Action.CREATE), set()),
        (Change(REF, Action.UNCHANGED), set()),
        (Change(REF, Action.KEEP), set()),
        (Change(REF, Action.CHANGE), set()),
        (Change(REF, Action.DELETE), {"delete"}),
        (Change(REF, Action.CREATE, replaces=OLD), {"restart", "placement"}),
        (Change(REF, Action.CHANGE, impact=Impact.SCALE), {"scale"}),
        (Change(REF, Action.CHANGE, impact=Impact.RESTART), {"restart"}),
        (Change(REF, Action.CHANGE, impact=Impact.PLACEMENT), {"placement", "restart"}),
        (Change(REF, Action.CHANGE, impact=Impact.RECREATE), {"recreate"}),
        (Change(REF, Action.ERROR, impact=Impact.RECREATE), {"recreate"}),
    ],
)
def test_each_change_has_its_classes(change, classes):
    assert classes == found(change)


def test_a_replica_that_leaves_for_good_is_a_delete():
    assert {"delete"} == found(retirements=(LEAVING,))


def test_surplus_of_one_deployment_is_a_scale():
    kept = Retirement("old", "u", RetireStage.SCALE_TO_ZERO, "why", keep=1)

    assert {"scale"} == found(retirements=(kept,))


def test_a_replica_that_makes_room_for_a_newer_one_is_a_restart():
    """On a full cluster the first step of an update only ends something."""
    assert {"restart"} == found(retirements=(LEAVING,), plan=updating())


def test_an_update_that_begins_with_an_addition_is_a_restart():
    assert {"restart"} == found(Change(REF, Action.CREATE), plan=updating())


def test_an_update_down_to_nothing_is_a_delete():
    assert {"delete"} == found(retirements=(LEAVING,), plan=updating(replicas=0))


def test_a_replaced_replica_is_no_delete_beside():
    new = Change(REF, Action.CREATE, replaces=OLD)

    assert {"restart", "placement"} == found(new, retirements=(LEAVING,))


def test_the_classes_are_those_of_the_flag():
    assert set(ChangeClass) == {"restart", "delete", "recreate", "scale", "placement"}

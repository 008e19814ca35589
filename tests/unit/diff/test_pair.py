"""What stands where an object is to be, and whether it may be touched."""

from dataclasses import replace

import pytest

from fakes_live import FakeLive, applied_by
from stoker.diff import DiffMemo, diff
from stoker.errors import Unreachable
from stoker.kube.errors import api_error
from stoker.model.change import Action
from stoker.model.fleet import PlacementMode
from stoker.model.plan import CountReason, Placement, Plan, ServiceDecision
from stoker.model.refs import ref_from_manifest
from stoker.objects.inventory import Inventory
from unit.diff.diff_builders import (
    FLEET_ID,
    NO_CLUSTER,
    QWEN,
    US,
    A,
    B,
    broken_render,
    config,
    crd,
    deployment,
    desired,
    gizmo,
    marked,
    namespace,
    placement,
    rendered,
    secret,
    with_mark_removed,
)

EMPTY = Inventory(FLEET_ID, "prod")


class Reads:
    """A cluster that only answers GETs."""

    def __init__(self, *bodies, error=None):
        self.bodies = {ref_from_manifest(body): body for body in bodies}
        self.error = error
        self.asked = 0

    def get(self, ref, *, subresource=""):
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.bodies[ref]


def changes_of(sets, live, *, inventory=EMPTY, fleet=None, cluster=None, memo=None, plan=None):
    found = diff(
        fleet or desired(*(s.unit for s in sets)),
        tuple(sets),
        live,
        inventory,
        cluster,
        FLEET_ID,
        memo or DiffMemo(),
        plan=plan,
    )
    return {(u.unit, c.ref.kind): c for u in found.units for c in u.changes}


def one(body, live, unit=A, **options):
    (change,) = changes_of([rendered(unit, body)], live, **options).values()
    return change


def test_a_foreign_object_needs_adoption():
    """ssa-facts 4: an unforced apply would silently merge into it."""
    live = applied_by("terraform", config())
    change = one(config(), FakeLive().put(live), cluster=Reads(live))

    assert change.action is Action.ERROR
    assert change.code == "adoption-required"
    assert "terraform" in change.note
    assert change.payload is None


def test_owners_of_a_foreign_object_are_read_once():
    live = applied_by("terraform", config())
    cluster, memo, view = Reads(live), DiffMemo(), FakeLive().put(live)
    first = one(config(), view, cluster=cluster, memo=memo)

    assert first == one(config(), view, cluster=cluster, memo=memo)
    assert cluster.asked == 1


def test_a_foreign_object_that_we_may_not_read_is_still_foreign():
    live = applied_by("terraform", config())
    forbidden = api_error(403, {"message": "no"}, what="get")
    change = one(config(), FakeLive().put(live), cluster=Reads(error=forbidden))

    assert change.code == "adoption-required"


def test_a_foreign_object_of_a_silent_server_is_waited_for():
    live = applied_by("terraform", config())
    change = one(config(), FakeLive().put(live), cluster=Reads(error=Unreachable("no answer")))

    assert change.action is Action.WAIT


def test_a_copied_mark_is_worthless():
    """cases.md row 71: the mark names the object itself."""
    live = applied_by("operator", {**config(), "metadata": marked(A, config("other"))["metadata"]})
    live["metadata"]["name"] = "c"
    change = one(config(), FakeLive().put(live), cluster=Reads(live))

    assert change.code == "adoption-required"


def test_another_fleets_object_needs_adoption():
    """reliability-security.md c.2 row 52: refused, with both names."""
    body = marked(A, config())
    body["metadata"]["annotations"] = {
        key: text.replace("f1/", "f2/") for key, text in body["metadata"]["annotations"].items()
    }
    live = applied_by("stoker-f2", body)
    change = one(config(), FakeLive().put(live), cluster=Reads(live))

    assert change.code == "adoption-required"
    assert "stoker-f2" in change.note


def test_a_removed_mark_is_put_back_where_the_inventory_proves_the_object():
    live = applied_by(US, marked(A, config()))
    live = with_mark_removed(live)
    inventory = EMPTY.union([(A, ref_from_manifest(live), live["metadata"]["uid"])])
    change = one(config(), FakeLive().put(live), inventory=inventory)

    assert change.action is Action.CHANGE


def test_an_intent_proves_nothing_about_a_namesake():
    live = applied_by("terraform", config())
    inventory = EMPTY.union([(A, ref_from_manifest(live), "")])
    change = one(config(), FakeLive().put(live), inventory=inventory, cluster=Reads(live))

    assert change.code == "adoption-required"


def test_unknown_is_neither_absent_nor_foreign():
    ref = ref_from_manifest(config())
    change = one(config(), FakeLive(unknown={ref: "forbidden"}))

    assert (change.action, change.code, change.note) == (
        Action.WAIT,
        "live-state-unknown",
        "forbidden",
    )


def test_a_secret_that_cannot_be_read_is_waited_for():
    class Silent(FakeLive):
        def get(self, ref):
            raise Unreachable("no answer")

    assert one(secret(), Silent()).action is Action.WAIT


def test_a_terminating_namespace_is_waited_for():
    """reliability-security.md c.2 row 45."""
    change = one(config(), FakeLive(phases={"llm": "Terminating"}))

    assert (change.action, change.code) == (Action.WAIT, "namespace-terminating")


def test_an_absent_namespace_is_waited_for_unless_this_fleet_brings_it():
    absent = FakeLive(phases={"llm": ""})
    found = changes_of([rendered(A, config()), rendered(B, namespace())], absent)

    assert one(config(), absent).code == "namespace-not-found"
    assert found[A, "ConfigMap"].action is Action.CREATE
    assert found[B, "Namespace"].action is Action.CREATE


def test_an_absent_kind_is_waited_for_unless_this_fleet_brings_it():
    """cases.md row 65; the CRD's own names count, row 63."""
    absent = FakeLive(missing_kinds={("example.org", "Gizmo")})
    found = changes_of([rendered(A, gizmo()), rendered(B, crd(plural="gizmen"))], absent)

    assert one(gizmo(), absent).code == "kind-not-found"
    assert found[A, "Gizmo"].action is Action.CREATE


def test_a_failed_discovery_is_not_an_absent_kind():
    """reliability-security.md c.2 row 38."""
    change = one(gizmo(), FakeLive(unread_kinds={("example.org", "Gizmo")}))

    assert (change.action, change.code) == (Action.WAIT, "live-state-unknown")


def test_an_object_being_deleted_is_waited_for():
    """ssa-facts 37: an apply to the dying object would be lost with it."""
    live = applied_by(US, marked(A, config()))
    live["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"])
    change = one(config(), FakeLive().put(live))

    assert (change.action, change.code) == (Action.WAIT, "deletion-pending")
    assert "x/y" in change.note


def test_two_units_may_not_render_the_same_object():
    found = changes_of([rendered(A, config()), rendered(B, config())], FakeLive())

    assert found[A, "ConfigMap"].action is Action.CREATE
    assert (found[B, "ConfigMap"].action, found[B, "ConfigMap"].code) == (
        Action.ERROR,
        "duplicate-object",
    )


def test_an_object_that_moves_to_another_unit_changes_its_mark():
    live = applied_by(US, marked(A, config()))
    found = changes_of([rendered(A), rendered(B, config())], FakeLive().put(live))

    change = found[B, "ConfigMap"]
    assert change.action is Action.CHANGE
    assert [f.path for f in change.fields] == ["metadata.annotations[stoker.dev/owner]"]


def test_an_object_does_not_move_while_its_unit_may_still_want_it():
    live = FakeLive().put(applied_by(US, marked(A, config())))
    sets = [rendered(B, config())]
    failed = changes_of([broken_render(A), *sets], live)
    unread = changes_of(sets, live, fleet=desired(B, broken=(A,)))
    hidden = changes_of(sets, live, fleet=desired(B, unit_set_known=False))
    partial = changes_of(sets, live, fleet=desired(A, B))
    gone = changes_of(sets, live)

    for found in (failed, unread, hidden, partial):
        assert found[B, "ConfigMap"].code == "claimed-by-other-unit"
    assert gone[B, "ConfigMap"].action is Action.CHANGE


def test_a_deleted_object_is_made_again_and_says_so():
    """cases.md row 47 of c.2: re-created once."""
    inventory = EMPTY.union([(A, ref_from_manifest(config()), "u1")])
    change = one(config(), FakeLive(), inventory=inventory)

    assert (change.action, change.note) == (Action.CREATE, "somebody deleted it")


def once(data=None):
    return config(data=data, annotations={"stoker.dev/reconcile": "create-only"})


def test_a_create_only_object_is_made_where_it_is_absent():
    """cases.md row 75."""
    inventory = EMPTY.union([(A, ref_from_manifest(once()), "u1")])

    assert Action.CREATE is one(once(), FakeLive()).action
    assert Action.CREATE is one(once(), FakeLive(), inventory=inventory).action


@pytest.mark.parametrize("made_by", [US, "terraform"])
@pytest.mark.parametrize("mark", [A, B, None], ids=["ours", "another unit's", "unmarked"])
def test_a_create_only_object_that_stands_is_never_changed(made_by, mark):
    """cases.md row 75: whoever made it, and whatever Git says by now."""
    body = once() if mark is None else marked(mark, once())
    live = FakeLive().put(applied_by(made_by, body))

    found = one(once({"a": "2"}), live)

    assert (Action.UNCHANGED, "create-only") == (found.action, found.code)
    assert found.payload is None
    assert bool(found.live_uid) is (mark == A)


def test_only_a_create_only_object_of_ours_is_proven_for_the_inventory():
    """The UID in it is what prune goes by."""
    for mark, proven in ((A, 1), (None, 0)):
        body = once() if mark is None else marked(mark, once())
        live = FakeLive().put(applied_by(US, body))
        found = diff(
            desired(A), (rendered(A, once()),), live, EMPTY, NO_CLUSTER, FLEET_ID, DiffMemo()
        )
        assert proven == len(found.proven)
        assert () == found.forgotten
        assert found.units[0].in_sync


def test_a_create_only_object_whose_state_is_unknown_is_waited_for():
    ref = ref_from_manifest(once())

    assert "live-state-unknown" == one(once(), FakeLive(unknown={ref: "forbidden"})).code


def plan_of(*placements):
    decision = ServiceDecision(
        QWEN, PlacementMode.NODES, "r2", 1, CountReason("Git"), placements=placements
    )
    return Plan(0, (decision,))


def spot(name, **options):
    return Placement(name=name, rev="r2", node="n2", node_uid="u", pool="p", count=1, **options)


def test_a_replacement_is_paired_with_what_it_replaces():
    """ux.md: a replace prints the fields beside the node."""
    old = applied_by(US, marked(QWEN, placement("qwen-1", image="x:1")))
    new = placement("qwen-2", rev="r2", node="n2", image="x:2")
    new["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": {}}
    plan = plan_of(spot("qwen-2", replaces="qwen-1"))
    leaving = rendered(QWEN, new, kept=(ref_from_manifest(old),))
    (change,) = changes_of([leaving], FakeLive().put(old), plan=plan).values()

    assert change.action is Action.CREATE
    assert change.replaces is not None
    assert change.replaces.name == "qwen-1"
    assert [(f.before, f.after) for f in change.fields] == [("x:1", "x:2")]


def test_a_replacement_of_what_is_gone_is_still_one():
    plan = plan_of(spot("qwen-2", replaces="qwen-1"))
    change = one(placement("qwen-2"), FakeLive(), unit=QWEN, plan=plan)

    assert change.replaces is not None
    assert change.fields == ()


def test_a_plan_without_the_unit_pairs_nothing():
    assert one(deployment(), FakeLive(), plan=plan_of()).replaces is None


def test_changes_come_in_apply_order_and_keep_the_render_findings():
    bodies = [deployment(), config(), namespace()]
    found = diff(
        desired(A, B),
        (broken_render(B), rendered(A, *bodies)),
        FakeLive(),
        EMPTY,
        NO_CLUSTER,
        FLEET_ID,
        DiffMemo(),
    )

    assert [u.unit for u in found.units] == [A, B]
    assert [c.ref.kind for c in found.units[0].changes] == ["Namespace", "ConfigMap", "Deployment"]
    assert not found.units[1].complete
    assert not found.units[1].in_sync
    assert [f.code for f in found.units[1].findings] == ["render-failed"]


def test_uids_that_the_inventory_lacks_are_handed_to_apply():
    live = applied_by(US, marked(A, config()))
    ref = ref_from_manifest(live)
    found = diff(
        desired(A),
        (rendered(A, config()),),
        FakeLive().put(live),
        EMPTY,
        NO_CLUSTER,
        FLEET_ID,
        DiffMemo(),
    )
    known = replace(EMPTY.union([(A, ref, live["metadata"]["uid"])]))
    again = diff(
        desired(A),
        (rendered(A, config()),),
        FakeLive().put(live),
        known,
        NO_CLUSTER,
        FLEET_ID,
        DiffMemo(),
    )

    older = EMPTY.union([(A, replace(ref, version="v0"), live["metadata"]["uid"])])
    moved = diff(
        desired(A),
        (rendered(A, config()),),
        FakeLive().put(live),
        older,
        NO_CLUSTER,
        FLEET_ID,
        DiffMemo(),
    )

    assert found.proven == moved.proven == ((A, ref, live["metadata"]["uid"]),)
    assert again.proven == ()

"""What left Git: nothing is deleted without proof, on partial truth, or over the cap."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes_live import FakeLive, applied_by, updated_by
from stoker.diff import DiffMemo, diff
from stoker.errors import Unreachable
from stoker.model.change import Action
from stoker.model.prune import MaxUnits, PruneMode
from stoker.model.refs import UnitRef, ref_from_manifest
from stoker.objects import names
from stoker.objects.inventory import INTENT, Inventory
from unit.diff.diff_builders import (
    FLEET_ID,
    NO_CLUSTER,
    QWEN,
    US,
    A,
    B,
    C,
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


def applied(unit, body):
    return applied_by(US, marked(unit, body))


def listing(*pairs):
    """An inventory that lists these objects with their live UIDs."""
    return EMPTY.union((unit, ref_from_manifest(b), b["metadata"]["uid"]) for unit, b in pairs)


def run(sets, fleet, pairs, *, live=None, inventory=None):
    view = live or FakeLive()
    view.put(*(body for _, body in pairs))
    return diff(
        fleet,
        tuple(sets),
        view,
        listing(*pairs) if inventory is None else inventory,
        NO_CLUSTER,
        FLEET_ID,
        DiffMemo(),
    )


def left(found):
    """Changes of objects that no unit renders, by name."""
    return {c.ref.name: c for u in found.units for c in u.changes if c.manifest is None}


def verdict(found, name="gone"):
    change = left(found)[name]
    return change.action, change.code


GONE = config("gone")


def test_what_left_a_unit_is_deleted_by_uid():
    gone = applied(A, GONE)
    found = run([rendered(A, config())], desired(A), [(A, gone)])

    change = left(found)["gone"]
    assert change.action is Action.DELETE
    assert change.live_uid == gone["metadata"]["uid"]
    assert found.prune_hold == ""


def test_a_unit_that_left_git_loses_everything():
    found = run([rendered(A, config())], desired(A), [(B, applied(B, GONE))])

    assert [u.unit for u in found.units] == [A, B]
    assert verdict(found) == (Action.DELETE, "")
    assert not found.units[1].in_sync


def test_nothing_left_means_nothing_to_prune():
    live = applied(A, config())
    found = run([rendered(A, config())], desired(A), [(A, live)])

    assert left(found) == {}
    assert found.forgotten == ()


def test_what_is_certainly_gone_is_only_forgotten():
    ref = ref_from_manifest(GONE)
    found = run([rendered(A, config())], desired(A), [], inventory=EMPTY.union([(A, ref, "u")]))

    assert left(found) == {}
    assert found.forgotten == ((A, ref),)


# -------------------------------------------------------------------------- proof


def test_a_mark_alone_deletes_nothing():
    """cases.md row 73: listed as an orphan, deleted only by inventory proof."""
    found = run([rendered(A, config())], desired(A), [(A, applied(A, GONE))], inventory=EMPTY)

    assert verdict(found) == (Action.KEEP, "orphan")
    assert left(found)["gone"].action is Action.KEEP


def test_orphans_of_units_that_did_not_render_are_not_listed():
    gone = applied(B, GONE)
    sets = [rendered(A, config()), broken_render(B)]
    kept = (ref_from_manifest(gone),)

    assert left(run(sets, desired(A, B), [(B, gone)], inventory=EMPTY)) == {}
    assert left(run(sets[:1], desired(A, broken=(B,)), [(B, gone)], inventory=EMPTY)) == {}
    keeping = [rendered(A, config()), rendered(B, config("x"), kept=kept)]
    assert left(run(keeping, desired(A, B), [(B, gone)], inventory=EMPTY)) == {}


def test_a_copy_made_by_an_operator_is_never_ours():
    """cases.md row 71: all labels and annotations copied to a child."""
    child = applied(A, GONE)
    child["metadata"]["name"] = "child"
    child["metadata"]["ownerReferences"] = [{"kind": "Operator", "name": "o", "uid": "x"}]
    found = run([rendered(A, config())], desired(A), [(A, child)])

    assert verdict(found, "child") == (Action.KEEP, "owner-mark-missing")


def test_an_object_of_another_owner_is_kept():
    """a.4 P3: a foreign ownerReference is a conflict, not a delete."""
    gone = applied(A, GONE)
    gone["metadata"]["ownerReferences"] = [{"kind": "Operator", "name": "o", "uid": "x"}]
    found = run([rendered(A, config())], desired(A), [(A, gone)])

    assert verdict(found) == (Action.KEEP, "foreign-owner")
    assert "Operator/o" in left(found)["gone"].note


def test_another_uid_is_another_object():
    """reliability-security.md c.2 row 47: no action on the new UID with the old intent."""
    gone = applied(A, GONE)
    old = EMPTY.union([(A, ref_from_manifest(gone), "old-uid")])

    assert verdict(run([rendered(A, config())], desired(A), [(A, gone)], inventory=old)) == (
        Action.KEEP,
        "uid-differs",
    )


def test_a_mark_that_is_gone_or_names_another_unit_proves_nothing():
    gone = applied(A, GONE)
    bare = with_mark_removed(gone)
    other = applied(B, GONE)
    fleet = desired(A, B)
    sets = [rendered(A, config()), rendered(B, config("x"))]

    assert verdict(run(sets, fleet, [(A, bare)])) == (Action.KEEP, "owner-mark-missing")
    assert verdict(run(sets, fleet, [(A, other)])) == (Action.KEEP, "owner-mark-differs")


def test_an_intent_is_recorded_before_it_may_be_deleted():
    """c.1 row 1: a kill between apply and the last inventory write leaves no orphan for ever."""
    gone = applied(A, GONE)
    ref = ref_from_manifest(gone)
    intent = EMPTY.union([(A, ref, INTENT)])
    found = run([rendered(A, config())], desired(A), [(A, gone)], inventory=intent)

    assert verdict(found) == (Action.KEEP, "inventory-intent")
    assert found.proven == ((A, ref, gone["metadata"]["uid"]),)
    healed = run(
        [rendered(A, config())], desired(A), [(A, gone)], inventory=intent.union(found.proven)
    )
    assert verdict(healed) == (Action.DELETE, "")


def test_an_intent_that_somebody_else_fulfilled_is_forgotten():
    theirs = applied_by("terraform", GONE)
    ref = ref_from_manifest(theirs)
    found = run(
        [rendered(A, config())],
        desired(A),
        [(A, theirs)],
        inventory=EMPTY.union([(A, ref, INTENT)]),
    )

    assert left(found) == {}
    assert found.forgotten == ((A, ref),)


def test_an_intent_with_a_mark_that_we_never_applied_is_kept():
    typed = applied_by("kubectl", marked(A, GONE))
    ref = ref_from_manifest(typed)
    found = run(
        [rendered(A, config())], desired(A), [(A, typed)], inventory=EMPTY.union([(A, ref, INTENT)])
    )

    assert verdict(found) == (Action.KEEP, "inventory-intent")
    assert found.proven == ()


def test_unknown_is_not_absent():
    ref = ref_from_manifest(GONE)
    live = FakeLive(unknown={ref: "forbidden"})
    found = run(
        [rendered(A, config())], desired(A), [], live=live, inventory=EMPTY.union([(A, ref, "u")])
    )

    assert verdict(found) == (Action.KEEP, "live-state-unknown")
    assert found.forgotten == ()


def test_a_secret_that_cannot_be_read_is_kept():
    class Silent(FakeLive):
        def get(self, ref):
            if ref.kind == "Secret":
                raise Unreachable("no answer")
            return super().get(ref)

    ref = ref_from_manifest(secret("gone"))
    found = run(
        [rendered(A, config())],
        desired(A),
        [],
        live=Silent(),
        inventory=EMPTY.union([(A, ref, "u")]),
    )

    assert verdict(found) == (Action.KEEP, "live-state-unknown")


def test_an_object_being_deleted_is_only_waited_for():
    """reliability-security.md c.2 row 46: one delete, then waiting."""
    gone = applied(A, GONE)
    gone["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"])
    found = run([rendered(A, config())], desired(A), [(A, gone)])

    assert verdict(found) == (Action.WAIT, "deletion-pending")
    assert "x/y" in left(found)["gone"].note
    del gone["metadata"]["finalizers"]
    assert "held" not in left(run([rendered(A, config())], desired(A), [(A, gone)]))["gone"].note


# ------------------------------------------------------------------------- policy


@pytest.mark.parametrize(
    "annotation", [{"stoker.dev/prune": "disabled"}, {"helm.sh/resource-policy": "keep"}]
)
def test_an_object_with_a_keep_annotation_is_kept_by_policy(annotation):
    """cases.md row 79."""
    gone = applied(A, config("gone", annotations=annotation))
    found = run([rendered(A, config())], desired(A), [(A, gone)])

    assert verdict(found) == (Action.KEEP, "kept-by-policy")
    assert left(found)["gone"].note == "kept by policy"


@pytest.mark.parametrize(
    ("body", "trailer"),
    [
        (secret("gone"), "Secret/llm/gone"),
        (namespace("gone"), "Namespace/gone"),
        (crd(plural="gone", group="x.org"), "CustomResourceDefinition/gone.x.org"),
    ],
    ids=["secret", "namespace", "crd"],
)
def test_some_kinds_go_only_by_their_own_name(body, trailer):
    """a.4 P6: design section 6: never without consent; `all` lifts caps, not this."""
    live = [(A, applied(A, body))]
    sets = [rendered(A, config())]
    name = body["metadata"]["name"]
    asked = run(sets, desired(A, allow_delete=("all",)), live)

    assert verdict(asked, name) == (Action.KEEP, "needs-consent")
    assert f"Stoker-Allow-Delete: {trailer}" in left(asked)[name].note
    allowed = run(sets, desired(A, allow_delete=(trailer,)), live)
    assert verdict(allowed, name) == (Action.DELETE, "")


def test_claims_of_a_volume_need_consent():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "gone", "namespace": "llm"},
        "spec": {},
    }

    assert verdict(run([rendered(A, config())], desired(A), [(A, applied(A, claim))])) == (
        Action.KEEP,
        "needs-consent",
    )


@pytest.mark.parametrize(
    ("mode", "trailers", "expected"),
    [
        (PruneMode.AUTO, (), (Action.DELETE, "")),
        (PruneMode.CONFIRM, (), (Action.KEEP, "prune-unconfirmed")),
        (PruneMode.CONFIRM, ("Bundle/llm/a",), (Action.DELETE, "")),
        (PruneMode.CONFIRM, ("llm/a, other",), (Action.DELETE, "")),
        (PruneMode.CONFIRM, ("all",), (Action.DELETE, "")),
        (PruneMode.NEVER, ("all",), (Action.KEEP, "prune-never")),
    ],
)
def test_the_fleets_prune_mode_decides(mode, trailers, expected):
    fleet = desired(A, prune=mode, allow_delete=trailers)

    assert verdict(run([rendered(A, config())], fleet, [(A, applied(A, GONE))])) == expected


def test_an_unconfirmed_delete_says_what_to_paste():
    found = run(
        [rendered(A, config())], desired(A, prune=PruneMode.CONFIRM), [(A, applied(A, GONE))]
    )

    assert "Stoker-Allow-Delete: Bundle/llm/a" in left(found)["gone"].note


# ----------------------------------------------------------------------- services


def test_a_leaving_deployment_of_a_service_is_never_pruned():
    """Retire is a decision, not a prune: it is drained first."""
    leaving = applied(QWEN, placement("gone"))
    sets = [rendered(QWEN, config(), kept=(ref_from_manifest(leaving),))]
    found = run(sets, desired(QWEN), [(QWEN, leaving)])

    assert left(found) == {}
    assert found.forgotten == ()


def test_a_placement_that_decide_forgot_is_kept_too():
    found = run(
        [rendered(QWEN, config())], desired(QWEN), [(QWEN, applied(QWEN, placement("gone")))]
    )

    assert verdict(found) == (Action.KEEP, "leaves-by-retirement")


def test_a_deployment_that_is_no_placement_is_pruned():
    found = run(
        [rendered(QWEN, config())], desired(QWEN), [(QWEN, applied(QWEN, deployment("gone")))]
    )

    assert verdict(found) == (Action.DELETE, "")


def test_a_service_that_left_git_loses_its_placements():
    found = run([rendered(A, config())], desired(A), [(QWEN, applied(QWEN, placement("gone")))])

    assert verdict(found) == (Action.DELETE, "")


# -------------------------------------------------------------------------- moves


def test_a_moved_object_is_transferred_not_deleted():
    """Design section 6: moved objects are not deleted, nor counted."""
    live = applied(A, GONE)
    sets = [rendered(A, config()), rendered(B, GONE)]
    before = run(sets, desired(A, B), [(A, live)])
    ref = ref_from_manifest(live)
    moved = applied(B, GONE)
    after = run(sets, desired(A, B), [(A, moved)], inventory=listing((A, moved), (B, moved)))

    assert left(before) == {}
    assert before.forgotten == ()
    assert left(after) == {}
    assert after.forgotten == ((A, ref),)


# -------------------------------------------------------------------------- holds


@pytest.mark.parametrize(
    ("sets", "fleet", "reason"),
    [
        ([rendered(A, config()), broken_render(B)], desired(A, B), "Bundle/llm/b did not render"),
        ([rendered(A, config())], desired(A, B), "Bundle/llm/b did not render"),
        ([rendered(A, config())], desired(A, broken=(B,)), "Bundle/llm/b could not be read"),
        ([rendered(A, config())], desired(A, unit_set_known=False), "not every file"),
    ],
    ids=["failed-render", "no-set", "broken-file", "unknown-units"],
)
def test_nothing_is_deleted_on_partial_truth(sets, fleet, reason):
    """a.4 P7; no other unit may claim what is deleted."""
    found = run(sets, fleet, [(C, applied(C, GONE))])

    assert verdict(found) == (Action.KEEP, "prune-held")
    assert reason in found.prune_hold
    assert reason in left(found)["gone"].note


def test_a_rebuilt_inventory_prunes_nothing():
    gone = applied(A, GONE)
    lost = Inventory(FLEET_ID, "prod", rebuilt=True).union(
        [(A, ref_from_manifest(gone), gone["metadata"]["uid"])]
    )
    found = run([rendered(A, config())], desired(A), [(A, gone)], inventory=lost)

    assert verdict(found) == (Action.KEEP, "prune-held")
    assert "inventory was lost" in found.prune_hold


def test_a_fleet_without_units_deletes_nothing():
    """A unit set that shrank to nothing is an error (argo 24408, cases.md row 69)."""
    gone = applied(A, GONE)

    assert "no unit left" in run([], desired(), [(A, gone)]).prune_hold
    assert verdict(run([], desired(allow_delete=("all",)), [(A, gone)])) == (Action.DELETE, "")


def test_a_render_that_shrank_to_nothing_is_an_error():
    """cases.md row 69: nothing changed in Git, and the renderer gave an empty set."""
    gone = [(A, applied(A, GONE))]
    found = run([rendered(A)], desired(A), gone)

    assert verdict(found) == (Action.KEEP, "prune-held")
    assert [f.code for f in found.units[0].findings] == ["render-empty"]
    allowed = run([rendered(A)], desired(A, allow_delete=("Bundle/llm/a",)), gone)
    assert verdict(allowed) == (Action.DELETE, "")
    assert allowed.units[0].findings == ()


def test_a_unit_that_never_had_objects_may_be_empty():
    found = run([rendered(A), rendered(B, config())], desired(A, B), [(C, applied(C, GONE))])

    assert verdict(found) == (Action.DELETE, "")
    assert found.units[0].findings == ()


def test_a_hold_is_not_announced_where_nothing_would_go():
    assert run([broken_render(A)], desired(A), []).prune_hold == ""


def test_units_that_were_not_asked_for_are_left_out_of_a_partial_pass():
    """A notice pass renders some units only: the others are neither judged nor told of."""
    other = applied(B, config("x"))
    found = run([rendered(A, config())], desired(A, B), [(B, other)])
    lost = run([rendered(A, config())], desired(A, B), [(B, other)], inventory=EMPTY)

    assert left(found) == left(lost) == {}
    assert found.prune_hold == ""
    assert [u.unit for u in found.units] == [A]


def test_units_of_broken_files_keep_their_objects():
    found = run([rendered(A, config())], desired(A, broken=(B,)), [(B, applied(B, GONE))])

    assert left(found) == {}
    assert found.forgotten == ()


# ---------------------------------------------------------------------------- cap


def many(count):
    units = [UnitRef("Bundle", "llm", f"u{n}") for n in range(count)]
    return [(unit, applied(unit, config(f"gone-{unit.name}"))) for unit in units]


def test_more_units_than_the_cap_lose_nothing():
    """a.4 P8: incident of argo 7412: 90 % pruned."""
    fleet = desired(A, max_units=MaxUnits(count=2))
    found = run([rendered(A, config())], fleet, many(3))

    assert "3 units would lose objects and prune.maxUnits allows 2" in found.prune_hold
    assert "Stoker-Allow-Delete: Bundle/llm/u0, Bundle/llm/u1, Bundle/llm/u2" in found.prune_hold
    assert {c.code for c in left(found).values()} == {"prune-held"}


def test_a_percentage_is_of_the_units_that_stand():
    fleet = desired(A, max_units=MaxUnits(percent=10))

    assert run([rendered(A, config())], fleet, many(1)).prune_hold == ""
    assert run([rendered(A, config())], fleet, many(2)).prune_hold
    assert run([rendered(A, config())], fleet, many(20)).prune_hold


def test_trailers_lift_the_cap_for_the_units_they_name():
    names = ("Bundle/llm/u0", "llm/u1")
    fleet = desired(A, max_units=MaxUnits(count=1), allow_delete=names)

    assert run([rendered(A, config())], fleet, many(3)).prune_hold == ""
    assert (
        run(
            [rendered(A, config())],
            desired(A, max_units=MaxUnits(count=0), allow_delete=("all",)),
            many(3),
        ).prune_hold
        == ""
    )


def test_replaced_objects_are_not_counted():
    """A renamed ConfigMap is a replacement, not a loss."""
    fleet = desired(A, B, max_units=MaxUnits(count=1))
    sets = [rendered(A, config("a-new")), rendered(B, config("b-new"))]
    live = [(A, applied(A, config("a-old"))), (B, applied(B, config("b-old")))]
    found = run(sets, fleet, live)

    assert found.prune_hold == ""
    assert verdict(found, "a-old") == (Action.DELETE, "")
    less = [rendered(A, config("a-new")), rendered(B, secret("b-new"))]
    more = [*live, (A, applied(A, config("a-old-2")))]
    assert run(less, fleet, more).prune_hold


# -------------------------------------------------------------------------- order


def test_dependents_go_first_and_the_namespace_last():
    """cases.md row 81: children once, namespace last."""
    bodies = [namespace("gone-ns"), config("gone"), deployment("gone")]
    for body in bodies[1:]:
        body["metadata"]["namespace"] = "gone-ns"
    live = [(B, applied(B, body)) for body in bodies]
    fleet = desired(A, allow_delete=("Namespace/gone-ns",))
    found = run([rendered(A, config())], fleet, live)

    changes = [(c.ref.kind, c.action) for c in found.units[1].changes]
    assert changes == [
        ("Deployment", Action.DELETE),
        ("ConfigMap", Action.DELETE),
        ("Namespace", Action.DELETE),
    ]


def test_a_namespace_stays_while_anything_of_the_fleet_stays_in_it():
    """Deleting it would take along what is kept."""
    kept = secret("kept")
    kept["metadata"]["namespace"] = "gone-ns"
    live = [(B, applied(B, namespace("gone-ns"))), (B, applied(B, kept))]
    fleet = desired(A, QWEN, allow_delete=("Namespace/gone-ns", "Namespace/llm"))
    sets = [
        rendered(A, config()),
        rendered(QWEN, config("q"), kept=(ref_from_manifest(placement()),)),
    ]

    assert verdict(run(sets, fleet, live), "gone-ns") == (Action.KEEP, "namespace-in-use")
    rendered_in = run(sets, fleet, [(B, applied(B, namespace("llm")))])
    assert verdict(rendered_in, "llm") == (Action.KEEP, "namespace-in-use")
    nothing = [rendered(QWEN, namespace("other"), kept=(ref_from_manifest(placement()),))]
    standing = run(
        nothing, desired(QWEN, allow_delete=("Namespace/llm",)), [(B, applied(B, namespace("llm")))]
    )
    assert verdict(standing, "llm") == (Action.KEEP, "namespace-in-use")


def test_a_crd_waits_for_its_custom_resources():
    live = [(B, applied(B, crd())), (B, applied(B, gizmo("gone")))]
    fleet = desired(A, allow_delete=("CustomResourceDefinition/gizmos.example.org",))
    found = run([rendered(A, config())], fleet, live)

    assert verdict(found, "gone") == (Action.DELETE, "")
    assert verdict(found, "gizmos.example.org") == (Action.WAIT, "custom-resources-left")
    alone = run([rendered(A, config())], fleet, live[:1])
    assert verdict(alone, "gizmos.example.org") == (Action.DELETE, "")


# -------------------------------------------------------------- fetches ahead of starts


def a_job(name="gone"):
    metadata = {"name": name, "namespace": "llm", "labels": {names.PREFETCH_LABEL: "qwen"}}
    return applied(QWEN, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata})


@pytest.mark.parametrize("mode", list(PruneMode))
def test_a_fetch_that_is_over_leaves_whatever_prune_says(mode):
    """A decision ends it, as it ends replicas; it counts against no cap."""
    job = a_job()
    over = replace(rendered(QWEN, config()), over=(ref_from_manifest(job),))
    fleet = desired(QWEN, prune=mode, max_units=MaxUnits(count=0))

    found = run([over], fleet, [(QWEN, job)])

    assert verdict(found) == (Action.DELETE, "")
    assert left(found)["gone"].live_uid == job["metadata"]["uid"]


def test_a_fetch_that_nobody_ended_stays_without_a_word():
    """Jobs may not have been read when it was decided: unknown is not over."""
    found = run([rendered(QWEN, config())], desired(QWEN), [(QWEN, a_job())])

    assert left(found) == {}


def test_fetches_of_a_service_that_left_git_are_pruned_like_anything():
    job = a_job()
    found = run([rendered(A, config())], desired(A), [(QWEN, job)])

    assert verdict(found) == (Action.DELETE, "")


def test_a_fetch_that_another_made_under_our_name_is_not_deleted():
    job = a_job()
    over = replace(rendered(QWEN, config()), over=(ref_from_manifest(job),))
    again = {**job, "metadata": {**job["metadata"], "uid": "another"}}
    found = run(
        [over], desired(QWEN), [], live=FakeLive().put(again), inventory=listing((QWEN, job))
    )

    assert Action.DELETE not in {change.action for change in left(found).values()}


# ---------------------------------------------------------------------- histories

units = st.sampled_from([A, B, C])
history = st.dictionaries(units, st.sets(st.sampled_from("uvwxyz"), max_size=4), max_size=3)


@settings(deadline=None)
@given(history, history, st.booleans())
def test_preview_deletes_exactly_what_left_git_and_is_proven(before, after, foreign):
    """a.4 P5 and P6: whatever the history, only proven objects go."""
    owner = {name: unit for unit in sorted(before) for name in sorted(before[unit])}
    claims = {name: unit for unit in sorted(after, reverse=True) for name in after[unit]}
    live = [(unit, applied(unit, config(name))) for name, unit in sorted(owner.items())]
    view = FakeLive()
    if foreign:
        view.put(applied_by("terraform", config("theirs")))
    sets = [
        rendered(unit, *(config(name) for name in sorted(after[unit]) if claims[name] == unit))
        for unit in sorted(after)
    ]
    fleet = desired(*sorted(after), allow_delete=("all",))
    found = run(sets, fleet, live, live=view)
    going = {name for name, change in left(found).items() if change.action is Action.DELETE}

    assert found.prune_hold == ""
    assert going == set(owner) - set(claims)


def test_fields_that_a_person_added_do_not_protect_an_object():
    live = updated_by("kubectl-edit", applied(A, GONE), {"data": {"b": "2"}})

    assert verdict(run([rendered(A, config())], desired(A), [(A, live)])) == (Action.DELETE, "")

"""Deleting what left Git: by UID, dependents first, once, and only when all is well."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.kube.errors import api_error
from stoker.model.outcome import Result
from stoker.model.refs import UnitRef, ref_from_manifest
from unit.apply.apply_world import World, outcomes, results
from unit.diff.diff_builders import (
    A,
    B,
    C,
    broken_render,
    config,
    crd,
    deployment,
    desired,
    gizmo,
    namespace,
    rendered,
)

GONE = config("gone")


@pytest.fixture
def world():
    found = World()
    found.run(rendered(A, config(), GONE), rendered(B, config("b")))
    return found


def test_what_left_git_is_deleted_and_leaves_the_inventory(world):
    uid = world.get(GONE)["metadata"]["uid"]
    outcome = world.run(rendered(A, config()), rendered(B, config("b")))

    assert results(outcome)["gone"] == "deleted"
    assert not world.has(GONE)
    assert ("a", "gone") not in world.stored()
    assert world.caches.deleted == [(ref_from_manifest(GONE), uid)]


def test_a_unit_that_left_git_is_deleted_whole(world):
    outcome = world.run(rendered(A, config(), GONE))

    assert [o.ref.name for o in outcome.pruned] == ["b"]
    assert not world.has(config("b"))
    assert set(world.stored()) == {("a", "c"), ("a", "gone")}


def test_every_delete_carries_the_uid(world):
    """a.4 P9 and oracle I2."""
    seen: list[Any] = []
    world.server.before = seen.append
    uid = world.get(GONE)["metadata"]["uid"]
    world.run(rendered(A, config()), rendered(B, config("b")))
    (request,) = [r for r in seen if r.method == "DELETE"]

    assert uid.encode() in request.body


def test_an_object_made_again_meanwhile_survives(world):
    """A 409 on the precondition is a benign skip."""

    def replace():
        world.delete(GONE)
        world.make(GONE, manager="terraform")

    outcome = world.run(rendered(A, config()), rendered(B, config("b")), between=replace)

    assert (outcomes(outcome)["gone"].result, outcomes(outcome)["gone"].code) == (
        Result.KEPT,
        "uid-differs",
    )
    assert world.has(GONE)


def test_an_object_that_is_gone_already_counts_as_deleted(world):
    outcome = world.run(
        rendered(A, config()), rendered(B, config("b")), between=lambda: world.delete(GONE)
    )

    assert results(outcome)["gone"] == "deleted"


def test_nothing_of_a_unit_is_deleted_before_it_has_applied(world):
    """Design section 6: its own unit has applied."""
    bad = deployment("bad")
    bad["spec"]["replicas"] = -1
    outcome = world.run(rendered(A, config(), bad), rendered(B, config("b")))

    assert outcomes(outcome)["gone"].code == "prune-held"
    assert "has not applied" in outcomes(outcome)["gone"].message
    assert world.has(GONE)


def test_another_units_failure_does_not_hold_the_delete(world):
    bad = deployment("bad")
    bad["spec"]["replicas"] = -1
    outcome = world.run(rendered(A, config()), rendered(B, config("b"), bad))

    assert results(outcome)["gone"] == "deleted"


def test_nothing_is_deleted_while_a_unit_does_not_render(world):
    """a.4 P7."""
    outcome = world.run(rendered(A, config()), broken_render(B))

    assert outcomes(outcome)["gone"].result is Result.KEPT
    assert outcome.prune_hold
    assert world.has(GONE)
    assert world.has(config("b"))
    assert set(world.stored()) == {("a", "c"), ("a", "gone"), ("b", "b")}


def test_finalizers_are_waited_for_with_one_delete(world):
    """reliability-security.md c.2 row 46."""
    world.patch(GONE, {"metadata": {"finalizers": ["x.io/y"]}})
    sets = [rendered(A, config()), rendered(B, config("b"))]
    first = world.run(*sets)
    mark = world.mark
    second = world.run(*sets)
    repeated = world.writes(mark)
    world.patch(GONE, {"metadata": {"finalizers": None}})
    third = world.run(*sets)

    assert outcomes(first)["gone"].code == outcomes(second)["gone"].code == "deletion-pending"
    assert "x.io/y" in outcomes(first)["gone"].message
    assert ("DELETE", "gone") not in repeated
    assert "gone" not in results(third)
    assert ("a", "gone") not in world.stored()


def test_pods_of_a_workload_go_with_it(world):
    """Foreground: the workload is gone only when its pods are."""
    world.run(rendered(A, config(), deployment("gone")), rendered(B, config("b")))
    seen: list[Any] = []
    world.server.before = seen.append
    world.run(rendered(A, config()), rendered(B, config("b")))
    bodies = [r.body for r in seen if r.method == "DELETE" and "deployments" in r.path]

    assert any(b"Foreground" in body for body in bodies)


def test_a_moved_object_is_never_absent(world):
    """Transferred: one apply that changes the mark, no delete, same UID."""
    uid = world.get(GONE)["metadata"]["uid"]
    sets = [rendered(A, config()), rendered(B, config("b"), GONE)]
    mark = world.mark
    outcome = world.run(*sets)
    world.run(*sets)

    assert [method for method, name in world.writes(mark) if method == "DELETE"] == []
    assert results(outcome)["gone"] == "changed"
    assert world.get(GONE)["metadata"]["uid"] == uid
    assert set(world.stored()) == {("a", "c"), ("b", "b"), ("b", "gone")}
    world.run(rendered(A, config()), rendered(B, config("b")))
    assert not world.has(GONE)


def test_custom_resources_go_before_their_crd(world):
    world.run(rendered(A, config()), rendered(B, config("b")), rendered(C, crd(), gizmo()))
    fleet = desired(A, B, allow_delete=("CustomResourceDefinition/gizmos.example.org",))
    sets = [rendered(A, config()), rendered(B, config("b"))]
    first = world.run(*sets, fleet=fleet)
    second = world.run(*sets, fleet=fleet)

    assert results(first)["g"] == "deleted"
    assert outcomes(first)["gizmos.example.org"].code == "custom-resources-left"
    assert results(second)["gizmos.example.org"] == "deleted"
    assert not world.has(crd())


def test_a_crd_never_takes_foreign_objects_along(world):
    """Objects of its kind that somebody else made would be deleted unproven."""
    world.run(rendered(A, config()), rendered(B, config("b")), rendered(C, crd()))
    world.make(gizmo("theirs"), manager="terraform")
    fleet = desired(A, B, allow_delete=("CustomResourceDefinition/gizmos.example.org",))
    outcome = world.run(rendered(A, config()), rendered(B, config("b")), fleet=fleet)

    assert outcomes(outcome)["gizmos.example.org"].code == "custom-resources-left"
    assert world.has(gizmo("theirs"))


def test_a_crd_whose_objects_cannot_be_listed_stays(world):
    world.run(rendered(A, config()), rendered(B, config("b")), rendered(C, crd()))
    fleet = desired(A, B, allow_delete=("CustomResourceDefinition/gizmos.example.org",))

    def before(request):
        if request.path.endswith("/apis/example.org/v1/gizmos"):
            raise api_error(403, {"message": "no"}, what="list")

    outcome = world.run(
        rendered(A, config()),
        rendered(B, config("b")),
        fleet=fleet,
        between=lambda: setattr(world.server, "before", before),
    )

    assert outcomes(outcome)["gizmos.example.org"].code == "forbidden"


def test_a_crd_that_is_gone_already_counts_as_deleted(world):
    sets = [rendered(A, config()), rendered(B, config("b"))]
    world.run(*sets, rendered(C, crd()))
    fleet = desired(A, B, allow_delete=("CustomResourceDefinition/gizmos.example.org",))
    outcome = world.run(*sets, fleet=fleet, between=lambda: world.delete(crd()))

    assert results(outcome)["gizmos.example.org"] == "deleted"


def test_a_namesake_right_after_the_delete_is_read_again(world):
    """A controller makes it anew at once: ours is gone, theirs is not ours."""

    def after(request, response):
        if request.method == "DELETE":
            world.server.after = None
            world.make(GONE, manager="operator")

    world.server.after = after
    outcome = world.run(rendered(A, config()), rendered(B, config("b")))

    assert results(outcome)["gone"] == "deleted"
    assert [ref.name for ref in world.caches.unknown] == ["gone"]


def test_children_go_once_and_the_namespace_last(world):
    """cases.md row 81: preview equals action."""
    child = config("child")
    child["metadata"]["namespace"] = "team"
    sets = [rendered(A, config()), rendered(B, config("b"))]
    world.run(*sets, rendered(C, namespace("team"), child))
    fleet = desired(A, B, allow_delete=("Namespace/team",))
    mark = world.mark
    outcome = world.run(*sets, fleet=fleet)
    deletes = [name for method, name in world.writes(mark) if method == "DELETE"]

    assert deletes == ["child", "team"]
    assert results(outcome)["child"] == "deleted"


def test_what_is_kept_stays_in_the_inventory(world):
    """cases.md row 79: listed in every pass until somebody decides."""
    kept = config("kept", annotations={"stoker.dev/prune": "disabled"})
    world.run(rendered(A, config(), kept), rendered(B, config("b")))
    for _ in range(2):
        outcome = world.run(rendered(A, config()), rendered(B, config("b")))
        assert outcomes(outcome)["kept"].code == "kept-by-policy"
    assert world.has(kept)
    assert ("a", "kept") in world.stored()


objects = st.sets(st.sampled_from("uvwxyz"), max_size=4)
fleets = st.dictionaries(st.sampled_from([A, B, C]), objects, min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(st.lists(fleets, min_size=1, max_size=4))
def test_after_any_history_exactly_what_git_wants_stands(history):
    """P4 and P5: no orphan, no wrong delete, whatever units and objects come and go."""
    world = World()
    world.make(config("foreign"), manager="terraform")
    for wanted in history:
        claims: dict[str, UnitRef] = {}
        for unit in sorted(wanted):
            for name in sorted(wanted[unit]):
                claims.setdefault(name, unit)
        sets = [
            rendered(
                unit, *(config(name) for name, owner in sorted(claims.items()) if owner == unit)
            )
            for unit in sorted(wanted)
        ]
        fleet = desired(*sorted(wanted), allow_delete=("all",))
        for _ in range(2):
            world.run(*sets, fleet=fleet)
        standing = {o.ref.name for o in world.live().owned("f1")}
        assert standing == set(claims)
        assert world.has(config("foreign"))
        assert {name for _, name in world.stored()} == set(claims)
        mark = world.mark
        world.run(*sets, fleet=fleet)
        assert world.writes(mark) == []

"""Whole passes on a cluster in memory."""

from typing import Any

import pytest

from stoker.kube.errors import api_error
from stoker.model.fleet import FleetMode
from stoker.model.outcome import Result
from stoker.model.refs import ObjectRef
from stoker.objects.names import OWNER
from unit.apply.apply_world import World, fail_on, outcomes, results
from unit.diff.diff_builders import (
    A,
    B,
    config,
    crd,
    deployment,
    desired,
    gizmo,
    marked,
    namespace,
    rendered,
    secret,
)


@pytest.fixture
def world():
    return World()


def test_a_first_pass_creates_everything_and_a_second_writes_nothing(world):
    """a.3 A1 and A11: a fixed point after one pass."""
    sets = [rendered(A, config(), deployment()), rendered(B, secret(stringData={"x": "1"}))]
    first = world.run(*sets)
    mark = world.mark
    second = world.run(*sets)

    assert results(first) == {"c": "created", "d": "created", "s": "created"}
    assert all(unit.applied for unit in first.units)
    assert results(second) == {"c": "unchanged", "d": "unchanged", "s": "unchanged"}
    assert world.writes(mark) == []
    assert first.failure is None


def test_answers_are_folded_into_the_caches(world):
    """Read your writes: the next pass must not decide on an older look."""
    world.run(rendered(A, config()))

    assert [body["metadata"]["name"] for body in world.caches.folded] == ["c"]
    assert world.caches.unknown == []


def test_what_stands_bears_the_owner_mark_and_our_manager(world):
    world.run(rendered(A, config()))
    live = world.get(config())

    assert (
        live["metadata"]["annotations"][OWNER]
        == marked(A, config())["metadata"]["annotations"][OWNER]
    )
    assert [e["manager"] for e in live["metadata"]["managedFields"]] == ["stoker-f1"]


def test_a_change_is_one_unforced_apply_with_the_uid(world):
    world.run(rendered(A, config()))
    uid = world.get(config())["metadata"]["uid"]
    seen: list[Any] = []
    world.server.before = seen.append
    mark = world.mark
    outcome = world.run(rendered(A, config(data={"a": "2"})))
    (sent,) = [r for r in seen if r.method == "PATCH"]

    assert results(outcome) == {"c": "changed"}
    assert world.writes(mark) == [("PATCH", "c")]
    assert ("force", "false") in sent.query
    assert uid.encode() in sent.body
    assert b"resourceVersion" not in sent.body


def test_a_field_that_left_git_is_removed(world):
    """cases.md row 49: apply removes what the diff shows."""
    world.run(rendered(A, config(data={"a": "1", "b": "2"})))
    world.run(rendered(A, config(data={"a": "1"})))

    assert world.get(config())["data"] == {"a": "1"}


def test_observe_writes_nothing_at_all(world):
    """FleetMode.OBSERVE: not even the inventory."""
    mark = world.mark
    outcome = world.run(rendered(A, config()), fleet=desired(A, mode=FleetMode.OBSERVE))

    assert world.writes(mark) == []
    assert outcomes(outcome)["c"].result is Result.SKIPPED
    assert outcomes(outcome)["c"].code == "observe-only"
    assert not outcome.units[0].applied


def test_observe_tells_what_stands_already(world):
    world.run(rendered(A, config()), rendered(B, config("gone")))
    outcome = world.run(rendered(A, config()), fleet=desired(A, mode=FleetMode.OBSERVE))

    assert outcome.units[0].applied
    assert [o.result for o in outcome.pruned] == [Result.SKIPPED]


def test_namespaces_and_crds_of_all_units_come_first_then_config_then_workloads(world):
    """Design section 6, order; a.3 A9: one pass."""
    team = [config("x"), deployment("y")]
    for body in team:
        body["metadata"]["namespace"] = "team"
    sets = [
        rendered(A, *team, gizmo()),
        rendered(B, namespace("team"), crd(), deployment("z"), config("w")),
    ]
    mark = world.mark
    outcome = world.run(*sets)
    sent = [name for method, name in world.writes(mark) if method == "PATCH"]

    assert sent == ["team", "gizmos.example.org", "x", "g", "y", "w", "z"]
    assert all(unit.applied for unit in outcome.units)


def test_units_are_sent_in_order_and_stages_do_not_overlap(world):
    """Parallel requests keep config before workloads."""
    sets = [rendered(A, *(config(f"c{n}") for n in range(9)), deployment())]
    mark = world.mark
    world.run(*sets, in_flight=4)
    sent = [name for method, name in world.writes(mark) if method == "PATCH"]

    assert sent[-1] == "d"
    assert sorted(sent[:-1]) == [f"c{n}" for n in range(9)]


def test_one_bad_object_stops_neither_its_unit_nor_another(world):
    bad = deployment("bad")
    bad["spec"]["replicas"] = -1
    outcome = world.run(rendered(A, bad, config()), rendered(B, deployment()))

    assert results(outcome) == {"bad": "failed", "c": "created", "d": "created"}
    assert [unit.applied for unit in outcome.units] == [False, True]
    assert "must be greater than or equal to 0" in outcomes(outcome)["bad"].message


def test_a_schema_error_is_bad_input_and_not_retried(world):
    """ssa-facts 70: HTTP 500, and still the manifest's fault."""
    bad = deployment("bad", container={"imge": "x"})
    outcome = world.run(rendered(A, bad))

    assert outcomes(outcome)["bad"].code == "invalid-object"
    assert outcome.wake_at_ms is None


def test_a_custom_resource_waits_for_its_kind(world):
    """cases.md row 65: the rest is applied, and the reason clears when the CRD comes."""
    live = world.live()
    live.missing_kinds.clear()  # discovery was older than the look
    waiting = world.run(rendered(A, gizmo(), config()), live=live)
    world.make(crd())
    applied = world.run(rendered(A, gizmo(), config()))

    assert results(waiting) == {"g": "waiting", "c": "created"}
    assert outcomes(waiting)["g"].code == "kind-not-found"
    assert results(applied)["g"] == "created"


def test_a_crd_with_an_odd_plural_converges_in_one_pass(world):
    """cases.md row 63: the CRD's own names, never a guess."""
    outcome = world.run(rendered(A, crd(plural="gizmen"), gizmo()))

    assert results(outcome) == {"gizmen.example.org": "created", "g": "created"}


def test_a_kind_that_comes_late_is_tried_once_more_in_the_same_pass(world):
    """Discovery may lag behind the CRD by a moment."""
    hide = [1]

    def before(request):
        if request.method == "PATCH" and request.path.endswith("/g") and hide[0]:
            hide[0] -= 1
            world.cluster.forget_discovery()
            raise_not_served()

    def raise_not_served():
        raise api_error(404, "404 page not found", what="apply")

    world.server.before = before
    outcome = world.run(rendered(A, crd(), gizmo()))

    assert results(outcome)["g"] == "created"


def test_a_namespace_that_vanished_is_waited_for(world):
    """ssa-facts 9."""
    body = config()
    body["metadata"]["namespace"] = "team"
    live = world.live(phases={"team": "Active"})
    outcome = world.run(rendered(A, body), live=live)

    assert (outcomes(outcome)["c"].result, outcomes(outcome)["c"].code) == (
        Result.WAITING,
        "not-found",
    )


def test_a_namespace_that_ends_meanwhile_is_waited_for(world):
    """ssa-facts 11, reliability-security.md c.2 row 45."""
    held = config("held", finalizers=["x.io/y"])
    world.make(held)
    live = world.live()
    world.cluster.delete(ObjectRef("", "Namespace", "", "llm"))
    outcome = world.run(rendered(A, config()), live=live)

    assert outcomes(outcome)["c"].code == "namespace-terminating"
    assert outcomes(outcome)["c"].result is Result.WAITING


def test_what_cannot_be_sent_keeps_its_reason(world):
    outcome = world.run(rendered(A, gizmo()))

    assert (results(outcome)["g"], outcomes(outcome)["g"].code) == ("waiting", "kind-not-found")
    assert not outcome.units[0].applied


# ------------------------------------------------------------------------ adoption


def test_a_name_taken_by_others_is_never_merged_into(world):
    """ssa-facts 4: seen by the cache."""
    world.make(config(data={"theirs": "1"}), manager="terraform")
    outcome = world.run(rendered(A, config()))

    assert outcomes(outcome)["c"].code == "adoption-required"
    assert "terraform" in outcomes(outcome)["c"].message
    assert world.get(config())["data"] == {"theirs": "1"}


def test_a_name_that_the_cache_missed_is_found_by_one_list(world):
    """Before a create one metadata LIST per kind and namespace shows the name free."""
    sets = [rendered(A, config(), config("other")), rendered(B, config("third"))]
    seen: list[Any] = []

    def steal():
        world.make(config(data={"theirs": "1"}), manager="terraform")
        world.server.before = seen.append

    outcome = world.run(*sets, between=steal)
    lists = [r for r in seen if r.method == "GET" and r.path.endswith("/llm/configmaps")]

    assert outcomes(outcome)["c"].code == "adoption-required"
    assert "terraform" in outcomes(outcome)["c"].message
    assert results(outcome)["other"] == results(outcome)["third"] == "created"
    assert world.get(config())["data"] == {"theirs": "1"}
    assert len(lists) == 1
    assert "PartialObjectMetadata" in lists[0].accept


def test_our_own_object_that_the_cache_missed_is_simply_applied(world):
    """Neither inventory nor cache knew it, but its mark says whose it is."""
    empty = world.live()
    world.run(rendered(A, config()))
    world.forget_inventory()
    outcome = world.run(rendered(A, config(data={"a": "2"})), live=empty)

    assert world.get(config())["data"] == {"a": "2"}
    assert results(outcome) == {"c": "changed"}
    assert world.stored()["a", "c"] == world.get(config())["metadata"]["uid"]


def test_names_that_the_inventory_proves_ours_are_not_looked_for(world):
    """A deleted object is made again with no request beside the apply itself."""
    world.run(rendered(A, config()))
    world.delete(config())
    seen: list[Any] = []
    outcome = world.run(
        rendered(A, config()), between=lambda: setattr(world.server, "before", seen.append)
    )

    assert results(outcome) == {"c": "created"}
    assert [r.path for r in seen if r.method == "GET" and r.path.endswith("/llm/configmaps")] == []


def test_whoever_may_not_list_reads_the_single_names(world):
    """Rights by namespace may leave list out; a 403 is not an empty list."""

    def before(request):
        if request.method == "GET" and request.path.endswith("/llm/configmaps"):
            raise api_error(403, {"message": "no"}, what="list")

    def steal():
        world.make(config(data={"theirs": "1"}), manager="terraform")
        world.server.before = before

    outcome = world.run(rendered(A, config(), config("free")), between=steal)

    assert outcomes(outcome)["c"].code == "adoption-required"
    assert results(outcome)["free"] == "created"


def test_whoever_may_neither_list_nor_read_creates_nothing(world):
    def before(request):
        if request.method == "GET" and "/llm/configmaps" in request.path:
            raise api_error(403, {"message": "no"}, what="read")

    outcome = world.run(
        rendered(A, config()), between=lambda: setattr(world.server, "before", before)
    )
    world.server.before = None

    assert outcomes(outcome)["c"].code == "forbidden"
    assert not world.has(config())


def test_a_server_that_refuses_the_probe_still_answers(world):
    """Only silence ends a pass."""

    def before(request):
        if request.path.endswith("/namespaces/kube-system"):
            raise api_error(403, {"message": "no"}, what="get")
        fail_on("PATCH", "/configmaps/bad")(request)

    world.server.before = before
    outcome = world.run(rendered(A, *(config(f"bad{n}") for n in range(4)), config("good")))

    assert results(outcome)["good"] == "created"


def test_a_look_that_fails_creates_nothing(world):
    """Unknown is not free."""
    hook = fail_on("GET", "/llm/configmaps")
    outcome = world.run(
        rendered(A, config(), secret(data={})),
        between=lambda: setattr(world.server, "before", hook),
    )

    world.server.before = None

    assert results(outcome) == {"c": "unknown", "s": "created"}
    assert not world.has(config())


# -------------------------------------------------------------------- unreachable


def test_a_lost_answer_makes_the_object_unknown(world):
    """reliability-security.md c.2 row 20: written or not, it is read again first."""
    world.server.after = lambda request, response: fail_on("PATCH", "/configmaps/c")(request)
    outcome = world.run(rendered(A, config()))
    world.server.after = None

    assert results(outcome) == {"c": "unknown"}
    assert [ref.name for ref in world.caches.unknown] == ["c"]
    assert outcome.wake_at_ms == world.clock.now_ms() + 5_000
    again = world.run(rendered(A, config()))
    assert results(again) == {"c": "unchanged"}
    assert world.stored()["a", "c"] == world.get(config())["metadata"]["uid"]


def test_a_silent_api_server_ends_the_pass_early(world):
    """Thousands of time-outs in a row help nobody."""
    sets = [rendered(A, *(config(f"c{n}") for n in range(9)))]
    outcome = world.run(*sets, between=world.cut_off_after_the_union)

    assert sorted(results(outcome).values()) == ["skipped"] * 6 + ["unknown"] * 3
    assert outcomes(outcome)["c8"].code == "unreachable"


def test_single_time_outs_do_not_end_the_pass(world):
    """One hanging webhook must not stop all others for ever."""
    world.server.before = fail_on("PATCH", "/configmaps/bad")
    outcome = world.run(rendered(A, *(config(f"bad{n}") for n in range(5)), config("good")))

    assert results(outcome)["good"] == "created"
    assert results(outcome)["bad4"] == "unknown"


def test_too_many_time_outs_end_the_pass_all_the_same(world):
    world.server.before = fail_on("PATCH", "/configmaps/bad")
    outcome = world.run(rendered(A, *(config(f"bad{n:02}") for n in range(20)), config("good")))

    assert results(outcome)["good"] == "skipped"
    assert list(results(outcome).values()).count("unknown") == 12


def test_a_failing_server_is_tried_again_later(world):
    def before(request):
        if request.method == "PATCH":
            raise api_error(429, {"message": "slow down"}, what="apply", retry_after_seconds=30)

    world.server.before = before
    outcome = world.run(rendered(A, config()))

    assert outcomes(outcome)["c"].code == "too-many-requests"
    assert outcome.wake_at_ms == world.clock.now_ms() + 30_000
    assert outcome.units[0].wake_at_ms == outcome.wake_at_ms


# --------------------------------------------------------------------- checkpoints


class Stop(Exception):
    """What a notice or a stop raises at a checkpoint."""


@pytest.mark.parametrize("stop_at", range(8))
def test_a_pass_that_ends_at_any_checkpoint_loses_nothing(world, stop_at):
    """c.1 row 1: the union stands before anything is made; the next pass carries on."""
    sets = [rendered(A, config(), deployment()), rendered(B, config("other"))]
    left = [stop_at]

    def checkpoint():
        if not left[0]:
            raise Stop
        left[0] -= 1

    try:
        world.run(*sets, checkpoint=checkpoint)
        stopped = False
    except Stop:
        stopped = True
    made = [
        b["metadata"]["name"] for b in (config(), deployment(), config("other")) if world.has(b)
    ]

    assert stopped == (stop_at < 6)
    if made:
        assert {name for _, name in world.stored()} >= set(made)
    world.restart()
    again = world.run(*sets)
    assert all(unit.applied for unit in again.units)
    assert all(world.stored().values())


def test_requests_in_flight_are_folded_when_a_pass_ends(world):
    calls = []

    def checkpoint():
        calls.append(1)
        if len(calls) > 5:
            raise Stop

    sets = [rendered(A, *(config(f"c{n}") for n in range(9)))]
    with pytest.raises(Stop):
        world.run(*sets, checkpoint=checkpoint, in_flight=4)

    made = {f"c{n}" for n in range(9) if world.has(config(f"c{n}"))}
    assert {body["metadata"]["name"] for body in world.caches.folded} == made
    assert made

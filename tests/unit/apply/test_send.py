"""One change, and what follows when the API server refuses it."""

import json

import pytest

from stoker.apply.answers import is_uid_mismatch, sent_error
from stoker.apply.send import Sender
from stoker.errors import StokerError
from stoker.kube.errors import api_error
from stoker.model.change import Action, Change
from stoker.model.outcome import Result
from stoker.model.refs import ref_from_manifest
from unit.apply.apply_world import World, body_of, outcomes, results
from unit.diff.diff_builders import FLEET_ID, US, A, config, deployment, marked, rendered, secret


@pytest.fixture
def world():
    return World()


def sent(world):
    """Records the forced and unforced applies of objects from now on."""
    found = []

    def before(request):
        if request.method == "PATCH" and "apply" in request.content_type:
            force = ("force", "true") in request.query
            found.append((force, body_of(request)))

    world.server.before = before
    return found


def test_a_persons_edit_is_forced_back_with_uid_and_version(world):
    """Design section 6: a forced request follows only a 409, with uid and resourceVersion."""
    world.run(rendered(A, config(data={"a": "1", "b": "1"})))
    world.patch(config(), {"data": {"a": "9"}})
    version = world.get(config())["metadata"]["resourceVersion"]
    requests = sent(world)
    outcome = world.run(rendered(A, config(data={"a": "1", "b": "1"})))

    assert world.get(config())["data"] == {"a": "1", "b": "1"}
    assert results(outcome) == {"c": "changed"}
    assert [force for force, _ in requests] == [False, True]
    assert requests[1][1]["metadata"]["resourceVersion"] == version
    assert requests[1][1]["metadata"]["uid"]


def test_a_field_of_another_manager_is_dropped_unforced(world):
    """a.3 A5; it conflicted only after diff had looked."""
    world.run(rendered(A, config(data={"a": "1", "b": "1"})))
    requests = sent(world)
    outcome = world.run(
        rendered(A, config(data={"a": "2", "b": "2"})),
        between=lambda: world.patch(config(), {"data": {"a": "9"}}, manager="istio"),
    )

    assert world.get(config())["data"] == {"a": "9", "b": "2"}
    assert [force for force, _ in requests] == [False, False]
    assert outcomes(outcome)["c"].message == "left data.a to istio"
    assert outcomes(outcome)["c"].code == "left-to-others"
    assert outcome.units[0].applied


def test_what_is_taken_and_what_is_left_go_into_one_request(world):
    world.run(rendered(A, config(data={"a": "1", "b": "1", "c": "1"})))
    requests = sent(world)

    def meddle():
        world.patch(config(), {"data": {"a": "9"}}, manager="istio")
        world.patch(config(), {"data": {"b": "9"}}, manager="kubectl-edit")

    world.run(rendered(A, config(data={"a": "2", "b": "2", "c": "2"})), between=meddle)

    assert world.get(config())["data"] == {"a": "9", "b": "2", "c": "2"}
    assert [force for force, _ in requests] == [False, True]
    assert "a" not in requests[1][1]["data"]


def test_a_conflict_that_moves_on_is_settled_at_most_twice(world):
    """reliability-security.md c.2 row 23: never force to win."""
    world.run(rendered(A, config()))
    count = [0]

    def before(request):
        if request.method == "PATCH" and "apply" in request.content_type:
            count[0] += 1
            world.server.before = None
            world.patch(config(), {"data": {"a": str(count[0] + 8)}})
            world.server.before = before

    world.server.before = before
    outcome = world.run(rendered(A, config(data={"a": "2"})))

    assert outcomes(outcome)["c"].result is Result.FAILED
    assert outcomes(outcome)["c"].code == "conflict"
    assert count[0] == 3
    assert outcome.wake_at_ms is not None
    world.server.before = None
    assert world.run(rendered(A, config(data={"a": "2"}))).units[0].applied


def test_an_autoscaler_that_moves_between_look_and_write_keeps_its_count(world):
    """cases.md row 61: the count never falls on an image change."""
    world.run(rendered(A, deployment(replicas=4)))
    ref = ref_from_manifest(deployment())
    live = world.live(scalers={ref: "HorizontalPodAutoscaler/h"})

    def autoscale():
        patch = {"spec": {"replicas": 6}}
        world.patch(deployment(), patch, manager="kube-controller-manager", subresource="scale")

    outcome = world.run(
        rendered(A, deployment(replicas=1, image="x:2")), live=live, between=autoscale
    )
    stored = world.get(deployment())

    assert stored["spec"]["replicas"] == 6
    assert stored["spec"]["template"]["spec"]["containers"][0]["image"] == "x:2"
    assert results(outcome) == {"d": "changed"}


def test_a_stale_scale_entry_gives_the_count_back_to_git(world):
    """ssa-facts 48: the autoscaler is gone, its entry is not."""
    world.run(rendered(A, deployment(replicas=2)))
    patch = {"spec": {"replicas": 5}}
    world.patch(deployment(), patch, manager="kube-controller-manager", subresource="scale")
    outcome = world.run(rendered(A, deployment(replicas=2)))

    assert world.get(deployment())["spec"]["replicas"] == 2
    assert results(outcome) == {"d": "changed"}


def test_a_deleted_object_is_not_made_again_by_a_change(world):
    """ssa-facts 32: the uid turns a re-creation into a refusal; then it is read again."""
    world.run(rendered(A, config()))
    outcome = world.run(
        rendered(A, config(data={"a": "2"})), between=lambda: world.delete(config())
    )

    assert outcomes(outcome)["c"].result is Result.WAITING
    assert outcomes(outcome)["c"].code == "waiting-for-live-state"
    assert [ref.name for ref in world.caches.unknown] == ["c"]
    assert not world.has(config())
    assert outcome.wake_at_ms == world.clock.now_ms() + 1_000


def test_a_namesake_is_never_hit(world):
    """c.2 row 47: no action on the new UID with the old intent."""
    world.run(rendered(A, config()))

    def replace():
        world.delete(config())
        world.make(config(data={"theirs": "1"}), manager="terraform")

    outcome = world.run(rendered(A, config(data={"a": "2"})), between=replace)

    assert outcomes(outcome)["c"].code == "waiting-for-live-state"
    assert world.get(config())["data"] == {"theirs": "1"}


@pytest.mark.parametrize("then", ["deleted", "replaced"])
def test_an_object_that_changes_hands_while_a_conflict_is_settled_is_read_again(world, then):
    world.run(rendered(A, config()))
    world.patch(config(), {"data": {"a": "9"}})
    applies = [0]

    def before(request):
        if request.method == "GET" and request.path.endswith("/configmaps/c"):
            world.server.before = None
            world.delete(config())
            if then == "replaced":
                world.make(config(), manager="terraform")
            applies[0] += 1

    outcome = world.run(
        rendered(A, config()), between=lambda: setattr(world.server, "before", before)
    )

    assert applies == [1]
    assert outcomes(outcome)["c"].code == "waiting-for-live-state"


def test_an_object_that_vanishes_before_the_forced_request_is_read_again(world):
    world.run(rendered(A, config()))
    world.patch(config(), {"data": {"a": "9"}})

    def before(request):
        if ("force", "true") in request.query:
            world.server.before = None
            world.delete(config())

    world.server.before = before
    outcome = world.run(rendered(A, config()))

    assert outcomes(outcome)["c"].code == "waiting-for-live-state"


def test_a_create_that_conflicts_needs_adoption(world):
    """A foreign object appeared after the names were shown to be free."""

    def before(request):
        if request.method == "PATCH" and "/configmaps/c" in request.path:
            world.server.before = None
            world.make(config(data={"a": "theirs"}), manager="terraform")

    world.server.before = before
    outcome = world.run(rendered(A, config()))

    assert outcomes(outcome)["c"].code == "adoption-required"
    assert world.get(config())["data"] == {"a": "theirs"}


def test_a_create_that_meets_our_own_object_is_settled(world):
    """Another pass of ours made it, and a person has edited it since."""

    def before(request):
        if request.method == "PATCH" and "/configmaps/c" in request.path:
            world.server.before = None
            world.cluster.apply(marked(A, config()), manager=US)
            world.patch(config(), {"data": {"a": "9"}})

    world.server.before = before
    world.run(rendered(A, config()))

    assert world.get(config())["data"] == {"a": "1"}


def test_an_error_while_settling_is_the_outcome(world):
    world.run(rendered(A, config()))
    world.patch(config(), {"data": {"a": "9"}})

    def before(request):
        if request.method == "GET" and request.path.endswith("/configmaps/c"):
            raise api_error(403, {"message": "no"}, what="get")

    outcome = world.run(
        rendered(A, config()), between=lambda: setattr(world.server, "before", before)
    )

    assert outcomes(outcome)["c"].code == "forbidden"


QUOTA = (
    'Operation cannot be fulfilled on resourcequotas "q": the object has been modified; '
    "please apply your changes to the latest version and try again"
)


@pytest.mark.parametrize(("clashes", "result"), [(1, "created"), (3, "created"), (9, "failed")])
def test_a_clash_over_quota_usage_is_repeated_a_few_times(world, clashes, result):
    """cases.md row 67: retried, and only on that conflict."""
    left = [clashes]

    def before(request):
        if request.method == "PATCH" and left[0]:
            left[0] -= 1
            raise api_error(409, {"message": QUOTA, "reason": "Conflict"}, what="apply")

    world.server.before = before
    outcome = world.run(rendered(A, config()))

    assert results(outcome) == {"c": result}


def test_other_conflicts_are_left_to_the_next_pass(world):
    count = [0]

    def before(request):
        if request.method == "PATCH":
            count[0] += 1
            raise api_error(409, {"message": "the object has been modified"}, what="apply")

    world.server.before = before
    outcome = world.run(rendered(A, config()))

    assert (results(outcome)["c"], count[0]) == ("failed", 1)
    assert [ref.name for ref in world.caches.unknown] == ["c"]


def test_an_apply_that_changed_nothing_says_so(world):
    """ssa-facts 2: the resourceVersion stays."""
    world.run(rendered(A, config()))
    metadata = world.get(config())["metadata"]
    change = Change(
        ref_from_manifest(config()),
        Action.CHANGE,
        payload=marked(A, config()),
        live_uid=metadata["uid"],
        live_resource_version=metadata["resourceVersion"],
    )

    assert Sender(world.cluster, FLEET_ID).send(change).outcome.result is Result.UNCHANGED


def test_refusals_of_secrets_never_tell_their_values(world):
    """b.A row 20."""
    canary = "canary-5f1d"

    def before(request):
        if request.method == "PATCH" and "secrets" in request.path:
            message = f'Secret "s" is invalid: data[x]: Invalid value: "{canary}"'
            causes = [{"reason": "FieldValueInvalid", "message": canary, "field": "data[x]"}]
            body = {"message": message, "reason": "Invalid", "details": {"causes": causes}}
            raise api_error(422, body, what="apply")

    world.server.before = before
    outcome = world.run(rendered(A, secret(stringData={"x": canary})))

    assert outcomes(outcome)["s"].message == "Invalid: data[x]"
    assert canary not in json.dumps(outcomes(outcome)["s"].message)


@pytest.mark.parametrize(
    ("code", "body", "mismatch"),
    [
        (
            422,
            {"details": {"causes": [{"reason": "x", "message": "m", "field": "metadata.uid"}]}},
            True,
        ),
        (422, {"message": 'metadata.uid: Invalid value: "x": field is immutable'}, True),
        (422, {"message": "spec.x: wrong"}, False),
        (409, {"message": "uid mismatch: the provided object specified uid"}, True),
        (409, {"message": "Precondition failed: UID in precondition: x"}, True),
        (409, {"message": "the object has been modified"}, False),
        (403, {"message": "uid"}, False),
    ],
)
def test_refusals_over_a_uid_are_recognised(code, body, mismatch):
    """ssa-facts 32, 36, 47."""
    assert is_uid_mismatch(api_error(code, body, what="x")) is mismatch


def test_field_conflicts_are_not_about_a_uid():
    causes = [{"reason": "FieldManagerConflict", "message": "uid", "field": ".x"}]
    error = api_error(409, {"message": "uid", "details": {"causes": causes}}, what="x")

    assert not is_uid_mismatch(error)
    assert not is_uid_mismatch(StokerError("no status"))


@pytest.mark.parametrize(
    ("code", "result", "uncertain", "after"),
    [
        (500, Result.FAILED, True, 5_000),
        (429, Result.FAILED, False, 5_000),
        (422, Result.FAILED, False, None),
    ],
)
def test_errors_say_whether_and_when_to_try_again(code, result, uncertain, after):
    found = sent_error(ref_from_manifest(config()), api_error(code, {"message": "x"}, what="x"))

    assert (found.outcome.result, found.uncertain, found.after_ms) == (result, uncertain, after)

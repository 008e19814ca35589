"""One NodeState, one writer: only status, only news, and a second reporter stands back."""

from __future__ import annotations

import pytest

from stoker.errors import Retryable, Unreachable
from stoker.kube.errors import NotFound
from stoker.node.state_writer import HEARTBEAT_SECONDS, TAKEOVER_SECONDS, Written
from unit.node.reporter_builders import NODE, REF, World


@pytest.fixture
def world():
    return World()


def facts(holder="first", **more):
    return {"reporter": {"holder": holder}, **more}


STATUS_PATH = f"PATCH /apis/stoker.dev/v1alpha1/nodestates/{NODE}/status"


def test_the_object_is_made_once_and_only_its_status_is_written(world):
    world.writer().write(facts(gpuUtilization=0.5))

    assert world.writes() == ["POST /apis/stoker.dev/v1alpha1/nodestates", STATUS_PATH]
    assert world.status()["gpuUtilization"] == 0.5
    assert world.status()["lastReportTime"]


def test_the_object_goes_with_its_node_where_the_node_is_known(world):
    """Else a node made again under the same name would be given the old one's weights."""
    world.writer(node_uid="u-1").write(facts())

    (owner,) = world.state()["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", NODE, "u-1")
    assert "blockOwnerDeletion" not in owner, "that would need rights on nodes"


def test_nothing_is_asked_while_nothing_changes(world):
    writer = world.writer()
    writer.write(facts(gpuUtilization=0.5))
    world.wire.sent.clear()

    assert writer.write(facts(gpuUtilization=0.5)) is Written.UNCHANGED
    assert world.wire.sent == []


def test_only_what_changed_is_sent_and_instants_go_along(world):
    writer = world.writer()
    first = facts(tokensPerJoule=1.5, tokensPerJouleObservedAt="2026-11-29T00:00:00Z")
    writer.write(first)
    world.clock.advance(20_000)
    later = {**first, "tokensPerJouleObservedAt": "2026-11-29T00:00:20Z"}
    same = writer.write(later)
    writer.write({**later, "gpuUtilization": 0.1})

    assert same is Written.UNCHANGED
    assert world.status()["tokensPerJouleObservedAt"] == "2026-11-29T00:00:20Z"
    assert world.status()["lastReportTime"] == "2026-11-29T00:00:20Z"


def test_a_heartbeat_says_that_the_facts_still_hold(world):
    """So that silence means dead."""
    writer = world.writer()
    writer.write(facts())
    world.clock.advance(int(HEARTBEAT_SECONDS * 1000) - 1)
    early = writer.write(facts())
    world.clock.advance(1)

    assert (early, writer.write(facts())) == (Written.UNCHANGED, Written.WRITTEN)


def test_fields_of_other_hands_stay(world):
    writer = world.writer()
    writer.write(facts())
    world.patch(warmth="Warm")
    writer.write(facts(gpuUtilization=0.5))

    assert world.status()["warmth"] == "Warm"


def test_an_object_that_somebody_deleted_is_made_again(world):
    writer = world.writer()
    writer.write(facts())
    world.cluster.delete(REF)

    assert writer.write(facts(gpuUtilization=0.5)) is Written.WRITTEN
    assert world.status()["gpuUtilization"] == 0.5


def test_a_write_that_nobody_answered_is_read_again_before_the_next(world):
    writer = world.writer()
    writer.write(facts())
    world.wire.cut = True
    with pytest.raises(Unreachable):
        writer.write(facts(gpuUtilization=0.5))
    world.wire.cut = False

    assert writer.write(facts(gpuUtilization=0.5)) is Written.WRITTEN


def test_who_wrote_in_between_is_read_first(world):
    writer = world.writer()
    writer.write(facts())
    world.wire.before_patch = lambda: world.patch(warmth="Warm")

    assert writer.write(facts(gpuUtilization=0.5)) is Written.WRITTEN
    assert (world.status()["warmth"], world.status()["gpuUtilization"]) == ("Warm", 0.5)


def test_an_object_that_changes_all_the_time_is_given_up_for_now(world):
    writer = world.writer()
    writer.write(facts())

    def disturb():
        world.patch(activeServiceCount=len(world.wire.sent))
        world.wire.before_patch = disturb

    world.wire.before_patch = disturb

    with pytest.raises(Retryable, match="changes under our hands"):
        writer.write(facts(gpuUtilization=0.5))


# ------------------------------------------------------------------ two reporters


def test_a_second_reporter_on_a_node_writes_nothing_and_says_who_does(world):
    world.writer("first").write(facts("first", gpuUtilization=0.5))
    second = world.writer("second")
    world.writes()

    assert second.write(facts("second", gpuUtilization=0.9)) is Written.STANDING_BACK
    assert second.other == "first"
    assert world.writes() == []


def test_a_second_reporter_stands_back_for_as_long_as_the_first_is_heard(world):
    first, second = world.writer("first"), world.writer("second")
    for _ in range(8):
        first.write(facts("first"))
        assert second.write(facts("second")) is Written.STANDING_BACK
        world.clock.advance(int(HEARTBEAT_SECONDS * 1000))


def test_a_reporter_that_is_silent_is_followed_by_the_second(world):
    """Silence is measured by the second's own clock from when it began to watch."""
    world.writer("first").write(facts("first"))
    second = world.writer("second")
    world.clock.advance(3_600_000)
    watched = second.write(facts("second"))
    world.clock.advance(int(TAKEOVER_SECONDS * 1000))

    assert watched is Written.STANDING_BACK
    assert second.write(facts("second")) is Written.WRITTEN
    assert second.other == ""
    assert world.status()["reporter"] == {"holder": "second"}


def test_a_reporter_that_wakes_up_after_it_was_followed_stands_back(world):
    first, second = world.writer("first"), world.writer("second")
    first.write(facts("first"))
    second.write(facts("second"))
    world.clock.advance(int(TAKEOVER_SECONDS * 1000))
    second.write(facts("second"))

    assert first.write(facts("first", gpuUtilization=0.9)) is Written.STANDING_BACK
    assert "gpuUtilization" not in world.status()


def test_two_that_follow_at_once_end_with_one(world):
    world.writer("first").write(facts("first"))
    second, third = world.writer("second"), world.writer("third")
    second.write(facts("second"))
    third.write(facts("third"))
    world.clock.advance(int(TAKEOVER_SECONDS * 1000))

    outcomes = [second.write(facts("second")), third.write(facts("third"))]

    assert outcomes == [Written.WRITTEN, Written.STANDING_BACK]


def test_the_same_reporter_goes_on_at_once_after_a_restart(world):
    world.writer("pod-1").write(facts("pod-1"))

    assert world.writer("pod-1").write(facts("pod-1")) is Written.WRITTEN


def test_a_reporter_that_ends_lets_the_next_one_begin(world):
    first = world.writer("first")
    first.write(facts("first", gpuUtilization=0.5))
    first.release()

    assert world.writer("second").write(facts("second")) is Written.WRITTEN
    assert world.status()["gpuUtilization"] == 0.5


def test_who_stands_back_gives_nothing_up(world):
    world.writer("first").write(facts("first"))
    second = world.writer("second")
    second.write(facts("second"))
    world.writes()
    second.release()

    assert world.writes() == []


def test_an_object_written_by_no_reporter_is_taken_up(world):
    """`stoker dev nodes` writes NodeStates and names no holder."""
    body = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": "NodeState",
        "metadata": {"name": NODE},
    }
    with pytest.raises(NotFound):
        world.state()
    world.cluster.create(body, manager="hand")
    world.patch(cache=[{"uri": "hf://o/m"}])

    assert world.writer().write(facts()) is Written.WRITTEN
    assert world.status()["cache"] == [{"uri": "hf://o/m"}]

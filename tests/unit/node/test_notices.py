"""Notices of three clouds: what they say, what is unknown, and what is taken back."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import Stalled
from stoker.model.times import to_milliseconds
from stoker.node.metadata import Metadata
from stoker.node.notice import (
    Hint,
    NodeNotice,
    NoticeKind,
    Standing,
    Told,
    Unknown,
    most_urgent,
    standing,
)
from stoker.node.notices_auto import Cloud, FirstThatAnswers, notice_source
from stoker.node.notices_aws import AwsNotices
from stoker.node.notices_azure import AzureNotices
from stoker.node.notices_gcp import GcpNotices
from stoker.sim.clock import VirtualClock
from unit.node.metadata_services import (
    EVENTS_PATH,
    PREEMPTED_PATH,
    SPOT_PATH,
    TOKEN_PATH,
    AwsService,
    AzureService,
    Fault,
    GcpService,
)

END = "2026-11-30T08:22:00Z"
END_MS = to_milliseconds(END)
CLOUDS = {Cloud.AWS: AwsService, Cloud.GCP: GcpService, Cloud.AZURE: AzureService}


def source(service, clock=None, seconds=5.0):
    clock = clock or VirtualClock()
    metadata = Metadata(service.address, seconds)
    match service:
        case AwsService():
            return AwsNotices(metadata, clock)
        case GcpService():
            return GcpNotices(metadata, clock, wait_seconds=1)
        case _:
            return AzureNotices(metadata, clock, first_seconds=seconds)


# --------------------------------------------------------------------- all clouds


@pytest.mark.parametrize("kind", CLOUDS.values(), ids=CLOUDS)
def test_a_machine_without_notice_is_told_that_there_is_none(kind):
    with kind() as service:
        assert source(service).poll() == Told()


@pytest.mark.parametrize("kind", CLOUDS.values(), ids=CLOUDS)
@pytest.mark.parametrize("fault", Fault)
def test_a_service_that_misbehaves_makes_it_unknown_and_never_hangs(kind, fault):
    """An answer that cannot be read is not `no notice`."""
    with kind() as service:
        service.fault = fault
        poll = source(service, seconds=0.2).poll()

        assert isinstance(poll, Unknown)
        assert poll.why
        assert service.followed == 0


@pytest.mark.parametrize("kind", CLOUDS.values(), ids=CLOUDS)
def test_a_service_that_recovers_is_believed_again(kind):
    with kind() as service:
        asking = source(service)
        asking.poll()
        service.fault = Fault.ERROR
        broken = asking.poll()
        service.fault = None

        assert isinstance(broken, Unknown)
        assert asking.poll() == Told()


@pytest.mark.parametrize("kind", [GcpService, AwsService], ids=["gcp", "aws"])
def test_only_azure_waits_for_an_acknowledgement(kind):
    with kind() as service:
        asking = source(service)

        assert not asking.acknowledge(NodeNotice(NoticeKind.SPOT, "x", "x", 0))
        assert service.requests == []


@pytest.mark.parametrize(
    "address",
    ["", "8.8.8.8", "10.0.0.1:80", "metadata.google.internal", "169.254.169.254:0", "::1", "a:b"],
)
def test_nobody_but_the_link_or_the_machine_itself_is_asked(address):
    """Whoever answers decides when this node is emptied."""
    with pytest.raises(Stalled, match="no address of a metadata service"):
        Metadata(address)


@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.169.254:80", "127.0.0.1:8000"])
def test_link_local_and_loopback_addresses_are_taken(address):
    assert Metadata(address).seconds == 2.0


# ---------------------------------------------------------------------------- aws


def test_aws_a_spot_interruption_comes_with_its_deadline():
    clock = VirtualClock()
    with AwsService() as service:
        service.action = ("terminate", END)
        poll = source(service, clock).poll()

    notice = NodeNotice(NoticeKind.SPOT, "aws", f"terminate {END}", clock.now_ms(), END_MS)
    assert poll == Told(notice)


def test_aws_a_deadline_that_has_passed_stays_as_it_is():
    with AwsService() as service:
        service.action = ("stop", "2020-01-01T00:00:00Z")
        poll = source(service).poll()

    assert isinstance(poll, Told)
    assert poll.notice
    assert poll.notice.deadline_ms == to_milliseconds("2020-01-01T00:00:00Z")


def test_aws_an_interruption_whose_time_cannot_be_read_ends_in_two_minutes():
    clock = VirtualClock()
    with AwsService() as service:
        service.action = ("terminate", "soon")
        poll = source(service, clock).poll()

    assert isinstance(poll, Told)
    assert poll.notice
    assert poll.notice.deadline_ms == clock.now_ms() + 120_000


def test_aws_an_action_that_nobody_knows_is_unknown():
    with AwsService() as service:
        service.action = ("dance", END)

        assert isinstance(source(service).poll(), Unknown)


def test_aws_a_rebalance_recommendation_is_a_hint_and_no_notice():
    with AwsService() as service:
        service.rebalance = END

        assert source(service).poll() == Told(None, Hint("rebalance", "aws", END_MS))


def test_aws_a_recommendation_that_cannot_be_asked_for_stands_and_spoils_no_notice():
    with AwsService() as service:
        service.rebalance = END
        asking = source(service)
        asking.poll()
        service.knows_rebalance = False
        service.action = ("terminate", END)
        broken = asking.poll()
        service.knows_rebalance, service.rebalance = True, None
        gone = asking.poll()

    assert isinstance(broken, Told)
    assert isinstance(gone, Told)
    assert broken.notice
    assert (broken.hint, gone.hint) == (Hint("rebalance", "aws", END_MS), None)


def test_aws_a_recommendation_whose_time_cannot_be_read_counts_from_when_it_was_seen():
    clock = VirtualClock()
    with AwsService() as service:
        service.rebalance = "soon"
        asking = source(service, clock)
        first = asking.poll()
        clock.advance(5000)

        assert first == asking.poll() == Told(None, Hint("rebalance", "aws", clock.now_ms() - 5000))


def test_aws_one_token_serves_many_questions_and_a_new_one_follows_when_it_has_expired():
    with AwsService() as service:
        asking = source(service)
        asking.poll()
        asking.poll()
        before = len(service.asked(TOKEN_PATH))
        service.forget_tokens()
        poll = asking.poll()

        assert (before, len(service.asked(TOKEN_PATH)), poll) == (1, 2, Told())


def test_aws_tokens_that_are_never_taken_are_given_up():
    """Else a broken service would be asked without end."""
    with AwsService() as service:
        service.takes_tokens = False
        poll = source(service).poll()

        assert isinstance(poll, Unknown)
        assert len(service.asked(TOKEN_PATH)) == 2


def test_aws_a_service_that_is_switched_off_is_unknown():
    with AwsService() as service:
        service.enabled = False
        poll = source(service).poll()

        assert isinstance(poll, Unknown)
        assert "403" in poll.why
        assert service.asked(SPOT_PATH) == []


def test_aws_silence_on_the_token_names_the_usual_cause():
    with AwsService() as service:
        service.fault = Fault.HANG
        poll = source(service, seconds=0.1).poll()

    assert isinstance(poll, Unknown)
    assert "hop limit" in poll.why


# ---------------------------------------------------------------------------- gcp


def test_gcp_a_preemption_ends_in_thirty_seconds():
    clock = VirtualClock()
    with GcpService() as service:
        service.set_preempted(preempted=True)
        poll = source(service, clock).poll()

    now = clock.now_ms()
    assert poll == Told(NodeNotice(NoticeKind.SPOT, "gcp", "preempted", now, now + 30_000))


def test_gcp_a_preemption_ends_a_question_that_waits():
    with GcpService() as service:
        asking = source(service, seconds=20.0)
        first = asking.poll()
        change = threading.Timer(0.05, service.set_preempted, [True])
        change.start()
        second = asking.poll()
        change.join()

    assert first == Told()
    assert isinstance(second, Told)
    assert second.notice


def test_gcp_a_change_between_two_questions_is_not_missed():
    with GcpService() as service:
        asking = source(service)
        asking.poll()
        service.set_preempted(preempted=True)
        poll = asking.poll()

        assert isinstance(poll, Told)
        assert poll.notice
        assert service.asked(PREEMPTED_PATH)[1].query["last_etag"]


def test_gcp_after_no_answer_the_next_question_is_answered_at_once():
    """It may have changed meanwhile, and a wait would hide that."""
    with GcpService() as service:
        asking = source(service)
        asking.poll()
        service.fault = Fault.BUSY
        asking.poll()
        service.fault = None
        service.set_preempted(preempted=True)
        poll = asking.poll()

        assert isinstance(poll, Told)
        assert poll.notice
        assert "wait_for_change" not in service.asked(PREEMPTED_PATH)[-1].query


# -------------------------------------------------------------------------- azure


def test_azure_a_preemption_comes_with_its_deadline():
    clock = VirtualClock()
    with AzureService() as service:
        service.schedule("id-1")
        poll = source(service, clock).poll()

    assert poll == Told(NodeNotice(NoticeKind.SPOT, "azure", "id-1", clock.now_ms(), END_MS))


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("Terminate", NoticeKind.TERMINATION),
        ("Reboot", NoticeKind.MAINTENANCE),
        ("Redeploy", NoticeKind.MAINTENANCE),
        ("Freeze", None),
        ("Dance", None),
    ],
)
def test_azure_only_what_takes_the_machine_away_is_a_notice(event, kind):
    with AzureService() as service:
        service.schedule("id-1", kind=event)
        poll = source(service).poll()

    assert isinstance(poll, Told)
    assert (poll.notice and poll.notice.kind) == kind


def test_azure_events_of_other_machines_of_the_scale_set_are_left_alone():
    with AzureService("pool_0") as service:
        service.schedule("id-1", "pool_1", "pool_2")
        other = source(service).poll()
        service.schedule("id-2", "pool_1", "POOL_0")
        both = source(service).poll()

    assert other == Told()
    assert isinstance(both, Told)
    assert both.notice
    assert both.notice.id == "id-2"


def test_azure_the_earliest_of_several_events_is_told():
    with AzureService() as service:
        service.schedule("late", not_before="Mon, 30 Nov 2026 09:00:00 GMT", kind="Reboot")
        service.schedule("early")
        poll = source(service).poll()

    assert isinstance(poll, Told)
    assert poll.notice
    assert poll.notice.id == "early"


def test_azure_an_event_that_has_started_may_end_at_any_moment():
    clock = VirtualClock()
    with AzureService() as service:
        service.schedule("id-1", not_before="Wed, 30 Dec 2026 08:22:00 GMT")
        asking = source(service, clock)
        before = asking.poll()
        asking.acknowledge(before.notice)
        clock.advance(1000)
        after = asking.poll()

        assert before.notice.deadline_ms > clock.now_ms()
        assert after.notice.deadline_ms == clock.now_ms()


def test_azure_an_event_that_was_cancelled_and_comes_again_has_its_new_deadline():
    with AzureService() as service:
        service.schedule("id-1")
        asking = source(service)
        asking.poll()
        service.cancel()
        gone = asking.poll()
        service.schedule("id-1", not_before="")
        again = asking.poll()

    assert gone == Told()
    assert isinstance(again, Told)
    assert again.notice
    assert again.notice.deadline_ms is None


def test_azure_an_acknowledgement_names_the_event():
    with AzureService() as service:
        service.schedule("id-1")
        asking = source(service)
        taken = asking.acknowledge(asking.poll().notice)
        unknown = asking.acknowledge(NodeNotice(NoticeKind.SPOT, "azure", "made-up", 0))

        posts = [r.body for r in service.asked(EVENTS_PATH) if r.method == "POST"]
        assert (taken, unknown) == (True, False)
        assert posts[0] == '{"StartRequests": [{"EventId": "id-1"}]}'


@pytest.mark.parametrize("not_before", ["soon", "", "Mon, 30 Nov 2026 08:22:00 -0000"])
def test_azure_a_deadline_that_cannot_be_read_is_none(not_before):
    with AzureService() as service:
        service.schedule("id-1", not_before=not_before)
        poll = source(service).poll()

    assert isinstance(poll, Told)
    assert poll.notice
    assert poll.notice.deadline_ms is None


def test_azure_what_is_no_event_spoils_no_other():
    with AzureService() as service:
        service.schedule("id-1")
        strange: list[Any] = ["x", {}, {"EventType": "Preempt", "EventId": 5}]
        service.events[:0] = strange
        poll = source(service).poll()

    assert isinstance(poll, Told)
    assert poll.notice
    assert poll.notice.id == "id-1"


class Timed(Metadata):
    """Writes down the bound of each question."""

    def __init__(self, address: str) -> None:
        super().__init__(address, 5.0)
        self.bounds: list[float | None] = []

    def ask(self, path, headers, *, method="GET", body=None, seconds=None):
        self.bounds.append(seconds)
        return super().ask(path, headers, method=method, body=body, seconds=seconds)


def test_azure_the_first_question_may_take_long_and_later_ones_not():
    with AzureService() as service:
        metadata = Timed(service.address)
        asking = AzureNotices(metadata, VirtualClock(), first_seconds=7.0)
        asking.poll()
        asking.poll()

    assert metadata.bounds == [None, 7.0, None]


# --------------------------------------------------------------------- which cloud


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_cloud_that_answers_is_found_and_kept(cloud):
    with CLOUDS[cloud]() as service:
        asking = notice_source(Cloud.AUTO, VirtualClock(), address=service.address)
        assert asking is not None
        first = asking.poll()
        before = len(service.requests)
        if isinstance(service, GcpService):
            service.set_preempted(preempted=False)  # else the second question waits for news
        second = asking.poll()

        assert (first, second) == (Told(), Told())
        assert len(service.requests) - before <= 2


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_cloud_that_is_named_is_asked_and_no_other(cloud):
    with CLOUDS[cloud]() as service:
        asking = notice_source(cloud, VirtualClock(), address=service.address)
        assert asking is not None

        assert asking.poll() == Told()


def test_where_no_cloud_answers_it_is_unknown_and_asked_seldom():
    asking = notice_source(Cloud.AUTO, VirtualClock(), address="127.0.0.1:1", seconds=0.2)
    assert asking is not None
    poll = asking.poll()

    assert isinstance(poll, Unknown)
    assert all(name in poll.why for name in ("aws", "gcp", "azure"))
    assert asking.pause_seconds == 60.0
    assert not asking.acknowledge(NodeNotice(NoticeKind.SPOT, "azure", "x", 0))


def test_without_a_cloud_nobody_is_asked():
    assert notice_source(Cloud.NONE, VirtualClock()) is None


def test_the_one_that_was_found_gets_the_acknowledgement():
    with AzureService() as service:
        service.schedule("id-1")
        asking = FirstThatAnswers([source(service)])
        poll = asking.poll()

        assert isinstance(poll, Told)
        assert poll.notice
        assert asking.acknowledge(poll.notice)


# ------------------------------------------------------------------ what stands

NOTICE = NodeNotice(NoticeKind.SPOT, "aws", "terminate", 1000, 121_000)
NOTICES = st.builds(
    NodeNotice,
    st.sampled_from(NoticeKind),
    st.sampled_from(["aws", "azure"]),
    st.sampled_from(["a", "b"]),
    st.integers(0, 9),
    st.none() | st.integers(0, 9),
)
POLLS = st.one_of(st.builds(Unknown, st.just("why")), st.builds(Told, st.none() | NOTICES))


def test_an_unanswered_question_takes_no_notice_back():
    held = standing(Standing(), Told(NOTICE))

    assert standing(held, Unknown("no answer")) == replace(held, why_unknown="no answer")


def test_a_notice_that_the_cloud_no_longer_has_is_told_as_withdrawn_once():
    held = standing(Standing(), Told(NOTICE))
    back = standing(held, Told())

    assert (back.notice, back.withdrawn) == (None, NOTICE)
    assert standing(back, Told()).withdrawn is None


def test_the_same_notice_keeps_its_instant_and_takes_a_new_deadline():
    held = standing(Standing(), Told(NOTICE))
    again = standing(held, Told(replace(NOTICE, at_ms=5000, deadline_ms=99)))

    assert again.notice == replace(NOTICE, deadline_ms=99)


def test_nothing_is_known_before_the_first_answer():
    assert not standing(Standing(), Unknown("no answer")).known
    assert standing(Standing(), Told()).known


@given(st.lists(POLLS, max_size=8))
def test_only_an_answer_ends_a_notice(polls):
    held = Standing()
    for poll in polls:
        before, held = held, standing(held, poll)
        if isinstance(poll, Unknown):
            assert (before.notice, before.hint, before.known) == (
                held.notice,
                held.hint,
                held.known,
            )
        else:
            assert (held.notice is None) == (poll.notice is None)
        assert (held.withdrawn is not None) == (before.notice is not None and held.notice is None)


@given(st.lists(NOTICES, max_size=5), st.randoms())
def test_the_most_urgent_notice_does_not_hang_on_order(notices, random):
    shuffled = list(notices)
    random.shuffle(shuffled)
    chosen = most_urgent(shuffled)

    deadlines = [n.deadline_ms for n in notices if n.deadline_ms is not None]
    assert (chosen is None) == (not notices)
    if chosen is not None:
        assert chosen.deadline_ms == min(deadlines, default=None)
        other = most_urgent(notices)
        assert other
        assert (other.kind, other.id) == (chosen.kind, chosen.id)

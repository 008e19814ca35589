"""One controller of a fleet works at a time, by changes seen on its own monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stoker.errors import Retryable, Unreachable
from stoker.kube.client import Client
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Request
from stoker.loop.lease import Lease, LeaseTiming
from stoker.model.refs import ObjectRef
from stoker.sim.clock import VirtualClock

REF = ObjectRef("coordination.k8s.io", "Lease", "default", "stoker-f1", "v1")
TEN_YEARS_MS = 10 * 365 * 86_400_000


@dataclass
class Skewed:
    """Another machine's clock: the same seconds, another date."""

    clock: VirtualClock
    by_ms: int

    def now_ms(self) -> int:
        return self.clock.now_ms() + self.by_ms

    def monotonic(self) -> float:
        return self.clock.monotonic() + 12_345.0

    def wait(self, seconds: float) -> None:
        self.clock.wait(seconds)


@dataclass
class Cluster:
    """A server, time, and whoever wants the lease."""

    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self) -> None:
        self.server = MemoryServer(self.clock)
        self.client = Client(self.server)

    def candidate(self, holder: str, *, skew_ms: int = 0) -> Lease:
        clock = Skewed(self.clock, skew_ms) if skew_ms else self.clock
        return Lease(self.client, clock, namespace="default", name="stoker-f1", holder=holder)

    def spec(self) -> dict:
        return self.client.get(REF)["spec"]

    def asked(self) -> list[str]:
        return [entry.method for entry in self.server.audit if "/leases" in entry.path]


@pytest.fixture
def cluster():
    return Cluster()


def test_the_first_takes_it_with_two_requests(cluster):
    one = cluster.candidate("one")

    assert not one.held
    assert one.renew()
    assert one.held
    assert ["GET", "POST"] == cluster.asked()
    assert ("one", 15) == (
        cluster.spec()["holderIdentity"],
        cluster.spec()["leaseDurationSeconds"],
    )


def test_keeping_it_costs_one_request(cluster):
    one = cluster.candidate("one")
    one.renew()
    cluster.server.audit.clear()

    assert one.renew()
    assert ["PUT"] == cluster.asked()


def test_the_durations_leave_room_for_a_renewal_that_fails():
    """Research a.6 L1: duration > renew deadline > 1.2 x retry."""
    timing = LeaseTiming()

    assert timing.duration > timing.renew_deadline > 1.2 * timing.retry
    assert timing.renew_deadline + timing.write_seconds < timing.duration


@pytest.mark.parametrize(
    ("timing", "safe"),
    [
        (LeaseTiming(), True),
        (LeaseTiming(4.0, 2.5, 0.5), True),
        (LeaseTiming(10.0, 10.0, 2.0), False),
        (LeaseTiming(15.0, 14.5, 2.0), False),
        (LeaseTiming(15.0, 10.0, 9.0), False),
        (LeaseTiming(15.0, 10.0, 0.0), False),
    ],
    ids=["defaults", "short", "no rest", "no time for a write", "one try", "never"],
)
def test_durations_that_would_let_two_write_are_refused(timing, safe):
    """Research a.6 L1: refuse to start."""
    assert safe is not bool(timing.problem)


def test_the_second_waits_as_long_as_the_first_renews(cluster):
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    for _ in range(30):
        cluster.clock.wait(2)
        one.renew()

        assert not two.renew()
        assert not two.held


def test_the_second_takes_over_after_the_duration_of_silence(cluster):
    """Research a.6 L4: at most 17 s after a SIGKILL."""
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    taken_after = 0
    while not two.renew():
        cluster.clock.wait(2)
        taken_after += 2

    assert 15 <= taken_after <= 17
    assert not one.held
    assert not one.renew()
    assert "two" == cluster.spec()["holderIdentity"]


def test_a_takeover_says_when_and_how_often(cluster):
    """`kubectl get lease -o yaml` reads as any leader election does."""
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    first = cluster.spec()
    two.renew()
    cluster.clock.wait(16)
    two.renew()
    taken = cluster.spec()
    cluster.clock.wait(2)
    two.renew()

    assert taken["acquireTime"] > first["acquireTime"]
    assert 1 == taken["leaseTransitions"]
    assert (taken["acquireTime"], 1) == (
        cluster.spec()["acquireTime"],
        cluster.spec()["leaseTransitions"],
    )
    assert cluster.spec()["renewTime"] > taken["renewTime"]


@pytest.mark.parametrize("skew_ms", [TEN_YEARS_MS, -TEN_YEARS_MS], ids=["ahead", "behind"])
def test_a_wall_clock_ten_years_off_takes_nothing_and_loses_nothing(cluster, skew_ms):
    """Research a.6 L2: only changes seen on the own monotonic clock count.

    reliability-security c.1 row 13.
    """
    one, two = cluster.candidate("one"), cluster.candidate("two", skew_ms=skew_ms)
    one.renew()
    for _ in range(10):
        cluster.clock.wait(2)

        assert one.renew()
        assert not two.renew()
    cluster.clock.wait(16)

    assert two.renew()
    cluster.clock.wait(2)
    assert not one.renew()


def test_a_lease_without_answers_may_be_written_on_for_ten_seconds_only(cluster):
    """The others wait fifteen: nobody writes in the five between."""
    one = cluster.candidate("one")
    one.renew()

    def away(request: Request) -> None:
        raise Unreachable("gone")

    cluster.server.before = away
    cluster.clock.wait(9)
    with pytest.raises(Unreachable):
        one.renew()
    assert one.held
    cluster.clock.wait(1)

    assert not one.held


def test_a_slow_renewal_counts_from_before_it_was_sent(cluster):
    """What the server wrote down may be as old as the request."""
    one = cluster.candidate("one")
    one.renew()
    cluster.server.after = lambda request, response: cluster.clock.wait(4)
    one.renew()
    assert 4 == cluster.clock.monotonic()
    cluster.clock.wait(5.9)
    assert one.held
    cluster.clock.wait(0.2)

    assert not one.held


def test_who_loses_the_race_for_a_free_lease_does_not_hold_it(cluster):
    one, two = cluster.candidate("one"), cluster.candidate("two")
    raced: list[str] = []

    def race(request: Request) -> None:
        if request.method == "POST" and not raced:
            raced.append("once")
            assert two.renew()

    cluster.server.before = race

    assert not one.renew()
    assert not one.held
    assert two.held


def test_who_loses_the_race_for_an_abandoned_lease_does_not_hold_it(cluster):
    one, two, old = (cluster.candidate(name) for name in ("one", "two", "old"))
    old.renew()
    assert not one.renew()
    assert not two.renew()
    cluster.clock.wait(16)
    raced: list[str] = []

    def race(request: Request) -> None:
        if request.method == "PUT" and not raced:
            raced.append("once")
            assert two.renew()

    cluster.server.before = race

    assert not one.renew()
    assert not one.held
    assert "two" == cluster.spec()["holderIdentity"]


def test_a_released_lease_is_taken_at_once(cluster):
    """Research a.6 L4: a graceful handover within 3 s."""
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    two.renew()
    one.release()

    assert not one.held
    assert "" == cluster.spec()["holderIdentity"]
    assert two.renew()


def test_a_release_leaves_the_lease_of_another_alone(cluster):
    """It was lost and taken while this process hung; its last act must not free it."""
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    two.renew()
    cluster.clock.wait(16)
    two.renew()
    one.release()

    assert "two" == cluster.spec()["holderIdentity"]


def test_a_release_that_nobody_answers_is_no_trouble(cluster):
    one = cluster.candidate("one")
    one.renew()
    cluster.server.close()
    one.release()

    assert not one.held


def test_a_restarted_holder_of_the_same_name_goes_on_at_once(cluster):
    """A container that was killed in its pod: nobody else has that name."""
    cluster.candidate("pod-1").renew()
    again = cluster.candidate("pod-1")

    assert again.renew()
    assert 0 == cluster.spec().get("leaseTransitions", 0)


# ------------------------------------------------------------------------- terms
def test_a_write_is_admitted_only_in_the_term_that_was_begun(cluster):
    """Who took it again after another had it has to catch up before it writes."""
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    with pytest.raises(Retryable, match="another controller"):
        one.admit()
    one.begin(one.term)
    one.admit()
    two.renew()
    cluster.clock.wait(16)
    two.renew()
    two.release()
    one.renew()

    assert one.held
    assert not one.admits
    one.begin(one.term)
    assert one.admits


def test_a_silence_in_which_nobody_took_it_is_the_same_term(cluster):
    """An API server that was away for a minute is no reason to read everything again."""
    one = cluster.candidate("one")
    one.renew()
    term = one.term
    cluster.clock.wait(60)
    assert 0 == one.term
    one.renew()

    assert term == one.term


# ----------------------------------------------------------------------- watching
def test_a_labeller_is_no_sign_of_life(cluster):
    """Somebody who labels everything every second must not keep a dead leader in office."""
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    waited = 0
    while not two.renew():
        cluster.clock.wait(1)
        waited += 1
        cluster.client.patch(
            REF, "merge", {"metadata": {"labels": {"n": f"{waited}"}}}, manager="x"
        )
        assert waited < 20

    assert 15 <= waited <= 16


def test_a_labeller_does_not_take_the_lease_from_its_holder(cluster):
    one = cluster.candidate("one")
    one.renew()
    for number in range(30):
        cluster.client.patch(
            REF, "merge", {"metadata": {"labels": {"n": f"{number}"}}}, manager="x"
        )
        cluster.clock.wait(2)

        assert one.renew()


def test_a_stopped_wall_clock_still_shows_renewals(cluster):
    """A renewal that changed nothing would be no sign of life."""

    class Stopped(Skewed):
        def now_ms(self) -> int:
            return 1_795_910_400_000

    one = Lease(
        cluster.client,
        Stopped(cluster.clock, 0),
        namespace="default",
        name="stoker-f1",
        holder="one",
    )
    two = cluster.candidate("two")
    for _ in range(20):
        one.renew()
        assert not two.renew()
        cluster.clock.wait(2)


def test_a_lease_that_somebody_deleted_is_waited_for_like_a_silent_one(cluster):
    """The holder does not know yet; it may write until its deadline."""
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    two.renew()
    cluster.client.delete(REF)

    assert not two.renew()
    assert one.renew()
    assert not two.renew()


def test_a_holder_whose_lease_was_deleted_and_taken_stops_at_its_next_renewal(cluster):
    one, fresh = cluster.candidate("one"), cluster.candidate("fresh")
    one.renew()
    cluster.client.delete(REF)
    fresh.renew()
    cluster.clock.wait(2)

    assert not one.renew()
    assert not one.held


@pytest.mark.parametrize("stated", [-5, 0, 1, None], ids=str)
def test_a_stated_duration_shorter_than_ours_hurries_nobody(cluster, stated):
    """The lease is an object that people can edit."""
    one = cluster.candidate("one")
    one.renew()
    live = cluster.client.get(REF)
    live["spec"]["leaseDurationSeconds"] = stated
    two = Lease(
        _Showing(live),  # type: ignore[arg-type]
        cluster.clock,
        namespace="default",
        name="stoker-f1",
        holder="two",
    )
    assert not two.renew()
    cluster.clock.wait(14)

    assert not two.renew()


@dataclass
class _Showing:
    """A cluster that shows one object and takes no write."""

    body: dict

    def get(self, ref: ObjectRef) -> dict:
        return self.body

    def update(self, manifest: dict, *, manager: str) -> dict:
        raise AssertionError("it was taken")


def test_a_longer_stated_duration_is_waited_for(cluster):
    """The holder reckons with its own settings."""
    long = Lease(
        cluster.client,
        cluster.clock,
        namespace="default",
        name="stoker-f1",
        holder="long",
        timing=LeaseTiming(60.0, 40.0, 5.0),
    )
    two = cluster.candidate("two")
    long.renew()
    two.renew()
    cluster.clock.wait(59)
    assert not two.renew()
    cluster.clock.wait(2)

    assert two.renew()


def test_who_waits_looks_again_when_the_wait_is_over(cluster):
    """Research a.6 L4: the earlier a renewal is seen, the earlier its end is known."""
    one, two = cluster.candidate("one"), cluster.candidate("two")
    one.renew()
    two.renew()
    assert 1.0 == two.look_in
    cluster.clock.wait(14.6)
    assert 0.4 == pytest.approx(two.look_in)

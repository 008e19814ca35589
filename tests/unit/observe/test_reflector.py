"""One list-and-watch loop, driven step by step without threads."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.observe.keys import NODE_STATES, WatchKey
from stoker.observe.reflector import (
    IN_DOUBT_SECONDS,
    NO_SUCH_KIND,
    RESTORED_SECONDS,
    WENT_BACK,
    Reflector,
)
from stoker.observe.store import KindStore
from unit.observe.observe_builders import (
    FLEET,
    StillClock,
    bookmark,
    broken,
    event,
    forbidden,
    gone,
    manifest,
    scripted,
    silence,
)

MAPS = WatchKey("", "ConfigMap", "v1", "llm")


class Rig:
    """A reflector on a scripted cluster. `told` lists the changes that it reported."""

    def __init__(self, *objects, key=MAPS, jitter=1.0):
        self.cluster = scripted(*objects)
        self.clock: Any = StillClock()
        self.told: list[Any] = []
        self.store = KindStore(key, threading.RLock())
        self.reflector = Reflector(
            key,
            self.cluster,
            self.store,
            self.clock,
            fleet_id=FLEET,
            on_change=lambda _, changes: self.told.append(changes),
            jitter=lambda: jitter,
        )

    def script(self, *steps):
        self.cluster.watches["ConfigMap"].append(list(steps))

    def step(self):
        return self.reflector.step()

    def names(self):
        return sorted(name for _, name in self.store.view())

    def version(self, name):
        entry = self.store.get(("llm", name))
        assert entry is not None
        return entry.resource_version

    def calls(self, verb):
        return [call for call in self.cluster.calls if call[0] == verb]

    @property
    def why(self):
        return self.reflector.why_unknown()


def config(name, **data):
    return manifest("v1", "ConfigMap", name, "llm", data=data)


def test_a_list_comes_first_and_a_watch_follows_from_its_version():
    rig = Rig(config("a"))

    waits = [rig.step(), rig.step()]

    assert rig.cluster.calls == [("list", "ConfigMap", "llm"), ("watch", "ConfigMap", "101")]
    assert rig.names() == ["a"]
    assert rig.why == ""
    assert waits == [0.0, 0.0]


def test_events_are_taken_and_told_one_by_one():
    rig = Rig(config("a"))
    rig.step()
    rig.told.clear()
    rig.script(
        event("ADDED", config("b"), 102),
        event("MODIFIED", config("a"), 103),
        event("DELETED", config("b"), 104),
    )

    rig.step()

    assert rig.names() == ["a"]
    assert [len(changes) for changes in rig.told] == [1, 1, 1]


def test_bookmarks_move_the_position_without_any_news():
    """a.5 W1: after a close the watch resumes from the bookmark, not from the list."""
    rig = Rig(config("a"))
    rig.step()
    rig.told.clear()
    rig.script(bookmark(250))

    rig.step()
    rig.step()

    assert rig.calls("watch")[1] == ("watch", "ConfigMap", "250")
    assert rig.told == []


def test_a_compacted_version_lists_again_at_once_and_only_once():
    """W2: one relist a 410, and the deletes missed meanwhile are found."""
    rig = Rig(config("a"), config("b"))
    rig.step()
    rig.told.clear()
    rig.cluster.remove(config("b"))
    rig.script(gone())

    waits = [rig.step(), rig.step()]

    assert waits == [0.0, 0.0]
    assert len(rig.calls("list")) == 2
    assert rig.names() == ["a"]
    assert [(c.before.name, c.after) for c in rig.told[0]] == [("b", None)]


def test_a_hundred_compactions_lose_no_delete_and_never_spin():
    """a.5 W2: compaction forced again and again: one list each, with growing pauses between."""
    rig = Rig()
    rig.step()
    waited = 0.0
    for number in range(100):
        doomed = config(f"m{number}")
        rig.cluster.add(doomed)
        rig.script(gone())
        waited += rig.step()
        waited += rig.step()
        rig.cluster.remove(doomed)
        rig.script(gone())
        waited += rig.step()
        waited += rig.step()
        assert rig.names() == []

    assert len(rig.calls("list")) == 201
    assert waited > 60


@pytest.mark.parametrize(
    "error", [forbidden(), broken(), broken(503), silence(), gone()], ids=lambda e: e.code
)
def test_a_failed_first_list_is_unknown_and_never_empty(error):
    """a.5 W6."""
    rig = Rig(config("a"))
    rig.cluster.failing["ConfigMap"] = error

    wait = rig.step()

    assert rig.why != ""
    assert error.message in rig.why
    assert 0.4 <= wait <= 0.8


def test_losing_the_right_to_list_makes_the_kind_unknown_at_once():
    """reliability-security c.2 row 53: RBAC revoked mid-run."""
    rig = Rig(config("a"))
    rig.step()
    rig.clock.pass_seconds(700)
    rig.cluster.failing["ConfigMap"] = forbidden()

    rig.step()
    lost, told = rig.why, rig.told[-1]
    rig.cluster.failing.clear()
    rig.step()

    assert lost.startswith("forbidden")
    assert told == ()
    assert (rig.why, rig.names()) == ("", ["a"])


def test_a_lost_event_is_healed_by_the_list_that_is_due_within_ten_minutes():
    """cases.md row 87: the last watch event is lost, and nothing would ever say so."""
    rig = Rig(config("a", ready="no"))
    rig.step()
    rig.cluster.add(config("a", ready="yes"))
    rig.told.clear()

    rig.step()
    stale = rig.told[:]
    rig.clock.pass_seconds(660)
    rig.step()

    assert stale == []
    assert [change.after.name for change in rig.told[0]] == ["a"]
    assert rig.store.view()["llm", "a"].resource_version == "102"


def test_relists_are_spread_by_a_tenth_either_way():
    """a.5 W4."""
    early, late = Rig(jitter=0.0), Rig(jitter=1.0)
    for rig in (early, late):
        rig.step()
        rig.clock.pass_seconds(541)
        rig.step()

    assert len(early.calls("list")) == 2
    assert len(late.calls("list")) == 1


def test_a_busy_watch_is_left_for_a_list_that_is_due():
    """a.5 W4."""
    rig = Rig()
    rig.step()
    rig.script(bookmark(200), lambda: rig.clock.pass_seconds(700), bookmark(201), bookmark(202))

    rig.step()
    rig.step()

    assert len(rig.calls("list")) == 2


def test_a_refused_server_is_asked_ever_less_often():
    """W1: 0.8 s doubled up to 30 s, jittered."""
    rig = Rig()
    rig.cluster.failing["ConfigMap"] = silence()

    waits = [rig.step() for _ in range(9)]

    assert waits == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]


def test_many_controllers_do_not_come_back_in_step():
    """a.5 W1: 20 replicas spread over at least 10 s."""
    soon, late = Rig(jitter=0.0), Rig(jitter=1.0)
    for rig in (soon, late):
        rig.cluster.failing["ConfigMap"] = silence()
    pairs = [(soon.step(), late.step()) for _ in range(8)]

    assert pairs[-1][1] - pairs[-1][0] >= 10


def test_a_watch_closed_every_second_is_slowed_down_and_never_relists():
    """reliability-security c.2 row 26."""
    rig = Rig()
    rig.step()
    waits = []
    for _ in range(8):
        rig.script(bookmark(200), lambda: rig.clock.pass_seconds(1))
        waits.append(rig.step())

    assert waits[:3] == [0.0, 0.8, 1.6]
    assert max(waits) == 30.0
    assert len(rig.calls("list")) == 1


def test_a_watch_that_lived_long_resumes_at_once():
    """a.5 W1."""
    rig = Rig()
    rig.step()
    waits = []
    for _ in range(5):
        rig.script(bookmark(200), lambda: rig.clock.pass_seconds(30))
        waits.append(rig.step())

    assert waits == [0.0] * 5


def test_a_hung_watch_is_resumed_from_its_position():
    """reliability-security c.2 row 25: the transport ends it after 90 s of silence."""
    rig = Rig()
    rig.step()
    rig.script(bookmark(200), lambda: rig.clock.pass_seconds(90), silence())

    wait = rig.step()
    rig.step()

    assert wait <= 1.0
    assert rig.calls("watch")[1] == ("watch", "ConfigMap", "200")
    assert len(rig.calls("list")) == 1


def test_a_short_outage_keeps_the_cache_and_a_long_one_makes_it_unknown():
    """reliability-security c.2 row 18: no decision on what was true ten minutes ago."""
    rig = Rig(config("a"))
    rig.step()
    rig.script(silence())
    rig.step()

    rig.clock.pass_seconds(59)
    short = rig.why
    rig.clock.pass_seconds(2)
    long = rig.why
    rig.script(bookmark(300))
    rig.step()

    assert short == ""
    assert "61 s" in long
    assert rig.why == ""


def test_an_outage_during_a_list_counts_the_same():
    rig = Rig(config("a"))
    rig.step()
    rig.clock.pass_seconds(700)
    rig.cluster.failing["ConfigMap"] = broken()
    rig.step()
    at_once = rig.why
    rig.clock.pass_seconds(61)

    assert at_once == ""
    assert rig.why != ""
    assert rig.names() == ["a"]


def test_where_watching_is_forbidden_lists_take_over():
    rig = Rig(config("a"))
    rig.step()
    rig.script(forbidden())

    rig.step()
    rig.cluster.add(config("b"))
    rig.step()

    assert rig.names() == ["a", "b"]
    assert rig.why == ""


def test_a_kind_that_is_not_served_is_hardly_asked_for():
    """KEDA and the like are absent for good in most clusters; an idle fleet asks nothing."""
    rig = Rig(key=NODE_STATES)

    waits = [rig.step() for _ in range(7)]
    rig.reflector.poke()

    assert [0.8, 1.6, 3.2, 6.4, 12.8, 300.0, 300.0] == waits
    assert 0.8 == rig.step()  # a definition changed: it may be served soon


def test_a_kind_that_is_not_served_is_unknown_until_somebody_pokes():
    """reliability-security c.2 row 37."""
    rig = Rig(key=NODE_STATES)

    rig.step()
    absent = rig.why
    rig.cluster.missing_kinds.clear()
    rig.reflector.poke()
    rig.step()

    assert absent == NO_SUCH_KIND
    assert rig.why == ""


def test_a_kind_whose_definition_goes_is_forgotten_and_not_kept():
    rig = Rig(config("a"))
    rig.step()
    rig.cluster.missing_kinds.add(("", "ConfigMap"))
    rig.clock.pass_seconds(700)

    rig.step()

    assert rig.why == NO_SUCH_KIND
    assert rig.names() == []
    assert rig.told[-1] == ()


def test_a_list_that_finds_nothing_new_is_no_news():
    """A list of each kind every ten minutes would begin a pass of its own."""
    rig = Rig(config("a"))
    rig.step()
    before = list(rig.told)
    rig.clock.pass_seconds(700)
    rig.step()
    rig.cluster.add(config("b"))
    rig.clock.pass_seconds(700)
    rig.step()

    assert [len(changes) for changes in rig.told[len(before) :]] == [1]
    assert 3 == len(rig.calls("list"))


def steps(rig, seconds):
    """Step as the loop does until the clock is past that; the longest wait between two steps."""
    ends, longest = rig.clock.monotonic() + seconds, 0.0
    while rig.clock.monotonic() < ends:
        wait = rig.step()
        longest = max(longest, wait)
        rig.clock.pass_seconds(max(wait, 0.1))
    return longest


def test_lists_that_are_older_than_what_was_seen_are_not_believed():
    """reliability-security c.2 row 28: a list of a lagging API server, and one more of them."""
    rig = Rig(config("a"), config("b"))
    rig.cluster.revision = 500
    rig.step()
    rig.cluster.revision = 300
    rig.clock.pass_seconds(700)

    longest = steps(rig, 20)

    assert (rig.why, rig.names(), rig.reflector.rewinds) == (WENT_BACK, ["a", "b"], 0)
    assert rig.told == [rig.told[0], ()]
    assert 0 < longest <= IN_DOUBT_SECONDS
    rig.cluster.revision = 501
    steps(rig, 10)
    assert (rig.why, rig.names(), rig.reflector.rewinds) == ("", ["a", "b"], 0)


def test_a_lag_after_which_there_was_news_forgets_the_doubt():
    rig = Rig(config("a"))
    rig.cluster.revision = 500
    rig.step()
    for revision in (300, 501, 301):
        rig.cluster.revision = revision
        rig.reflector.poke()
        rig.step()
        rig.clock.pass_seconds(RESTORED_SECONDS - 1)

    assert (rig.why, rig.reflector.rewinds) == (WENT_BACK, 0)


def test_a_kind_that_was_not_served_for_a_moment_does_not_make_an_older_list_true():
    rig = Rig(config("a"))
    rig.cluster.revision = 500
    rig.step()
    rig.cluster.missing_kinds.add(("", "ConfigMap"))
    rig.reflector.poke()
    rig.step()
    rig.cluster.missing_kinds.clear()
    rig.cluster.revision = 300
    rig.reflector.poke()

    rig.step()

    assert rig.why == WENT_BACK


def test_a_history_that_went_back_is_believed_after_half_a_minute():
    """reliability-security c.2 row 30: etcd was restored from an old snapshot."""
    rig = Rig(config("a"), config("b"))
    rig.cluster.revision = 500
    rig.step()
    rig.cluster.remove(config("b"))
    rig.cluster.revision = 300
    rig.clock.pass_seconds(700)

    steps(rig, RESTORED_SECONDS - 1)
    between = rig.why
    steps(rig, IN_DOUBT_SECONDS + 2)

    assert between == WENT_BACK
    assert (rig.why, rig.names()) == ("", ["a"])
    assert rig.reflector.rewinds == 1


def test_a_history_that_goes_back_less_far_than_the_last_list_is_found_too():
    """Objects made after the restored moment would else be kept for ever as newer."""
    rig = Rig()
    rig.step()
    rig.script(event("ADDED", config("phantom"), 5000))
    rig.step()
    rig.cluster.revision = 3000
    rig.clock.pass_seconds(700)

    steps(rig, RESTORED_SECONDS + IN_DOUBT_SECONDS)

    assert rig.names() == []
    assert rig.reflector.rewinds == 1


def test_a_restored_history_that_ran_past_the_old_one_is_known_by_its_objects():
    """Nothing is older than the list, but an object is back in a version it had left."""
    rig = Rig(config("a"))
    rig.step()
    listed = rig.version("a")
    rig.script(event("MODIFIED", config("a", key="undone"), "400"))
    rig.step()
    rig.cluster.revision = 900
    rig.clock.pass_seconds(700)

    rig.step()

    assert rig.version("a") == listed
    assert rig.reflector.rewinds == 1


def test_a_bookmark_that_goes_back_asks_for_a_list():
    rig = Rig(config("a"))
    rig.cluster.revision = 500
    rig.step()
    rig.cluster.revision = 300
    rig.script(bookmark(300), event("ADDED", config("late"), 301))

    rig.step()
    rig.step()

    assert rig.why == WENT_BACK


def test_stopping_ends_the_loop_within_half_a_second():
    rig = Rig()
    rig.cluster.failing["ConfigMap"] = silence()
    plain_wait = rig.clock.wait

    def wait(seconds):
        plain_wait(seconds)
        if len(rig.clock.waits) == 3:
            rig.reflector.stop()

    rig.clock.wait = wait
    rig.reflector.run()

    assert max(rig.clock.waits) <= 0.5
    assert len(rig.clock.waits) == 3


TROUBLE = st.sampled_from(
    [gone(), silence(), broken(), broken(429), forbidden(), bookmark(90), bookmark(10_000)]
)


@given(st.lists(st.lists(TROUBLE, max_size=3), max_size=12), st.data())
def test_no_trouble_ever_makes_an_object_known_to_be_absent(scripts, data):
    """The one rule: whatever fails, an object that stands is never known not to."""
    rig = Rig(config("a"))
    rig.step()
    for script in scripts:
        rig.script(*script)
        failing = data.draw(st.sampled_from([None, None, forbidden(), broken(), silence(), gone()]))
        rig.cluster.failing = {} if failing is None else {"ConfigMap": failing}
        rig.clock.pass_seconds(data.draw(st.sampled_from([0, 1, 50, 700])))
        rig.step()

        assert rig.why != "" or rig.names() == ["a"]


@given(st.lists(st.sampled_from(["add", "change", "remove", "lose", "gone"]), max_size=15))
def test_after_trouble_one_quiet_list_shows_the_cluster_as_it_is(actions):
    rig = Rig()
    rig.step()
    for number, action in enumerate(actions):
        if action == "lose":
            rig.script(silence())
        elif action == "gone":
            rig.script(gone())
        elif action == "remove" and rig.cluster.objects:
            item = next(iter(rig.cluster.objects.values()))
            removed = rig.cluster.remove(item)
            rig.script(event("DELETED", removed, rig.cluster.revision))
        else:
            stored = rig.cluster.add(config(f"m{number % 3}"))
            rig.script(event("MODIFIED", stored))
        rig.step()
    rig.clock.pass_seconds(700)
    rig.step()

    assert rig.names() == sorted(ref.name for ref in rig.cluster.objects)
    assert rig.why == ""

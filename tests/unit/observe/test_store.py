"""The cache ends in the same content whatever order news come in."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.observe.keys import WatchKey
from stoker.observe.projection import entry_from
from stoker.observe.store import KindStore, is_newer
from unit.observe.observe_builders import FLEET, manifest

MAPS = WatchKey("", "ConfigMap", "v1")


def store():
    return KindStore(MAPS, threading.RLock())


def entry(name="a", version=1, uid="u"):
    metadata = {"resourceVersion": str(version), "uid": uid}
    return entry_from(manifest("v1", "ConfigMap", name, "llm", metadata=metadata), MAPS, FLEET)


def held(cache):
    return {name: found.resource_version for (_, name), found in cache.view().items()}


def tell(cache, news):
    kind, name, version = news
    if kind == "gone":
        cache.remove(("llm", name), str(version))
    else:
        cache.put(entry(name, version))


@st.composite
def histories(draw):
    """What really happened to a few names, one version a step, with the end of each."""
    steps: list[tuple[str, str, int]] = []
    alive: dict[str, str] = {}
    for version in range(11, 11 + draw(st.integers(1, 12))):
        name = draw(st.sampled_from("abc"))
        if name in alive and draw(st.booleans()):
            steps.append(("gone", name, version))
            del alive[name]
        else:
            steps.append(("put", name, version))
            alive[name] = str(version)
    return steps, alive


@given(histories(), st.data())
def test_late_doubled_and_shuffled_events_end_in_the_same_store(history, data):
    """reliability-security c.2 row 27: events are ignored by resourceVersion order."""
    steps, alive = history
    cache = store()
    cache.replace("10", [])
    doubled = steps + data.draw(st.lists(st.sampled_from(steps), max_size=6))

    for news in data.draw(st.permutations(doubled)):
        tell(cache, news)

    assert alive == held(cache)


@given(histories(), st.data())
def test_a_list_heals_lost_events_and_late_ones_still_fit_around_it(history, data):
    """cases.md row 87: what a watch lost before a list is right after it, and stays right."""
    steps, alive = history
    cache = store()
    cache.replace("10", [])
    cut = data.draw(st.integers(0, len(steps)))
    before: dict[str, int] = {}
    for kind, name, version in steps[:cut]:
        before.pop(name, None)
        if kind == "put":
            before[name] = version
    dropped = data.draw(st.lists(st.sampled_from(steps[:cut] or [None]), max_size=cut, unique=True))

    for news in steps[:cut]:
        if news not in dropped:
            tell(cache, news)
    cache.replace(str(10 + cut), [entry(name, version) for name, version in before.items()])
    for news in data.draw(st.permutations([news for news in steps if news not in dropped])):
        tell(cache, news)

    assert alive == held(cache)


def test_a_list_shows_missed_deletes_as_changes():
    cache = store()
    cache.replace("10", [entry("a", 5), entry("b", 6), entry("c", 7)])

    changes = cache.replace("20", [entry("a", 5), entry("c", 15), entry("d", 16)])

    told = [(c.before and c.before.name, c.after and c.after.name) for c in changes]
    assert told == [("b", None), ("c", "c"), (None, "d")]


def test_a_list_never_replaces_what_was_seen_newer():
    """Our own answered write may be ahead of a list that was started before it.

    reliability-security c.2 row 28.
    """
    cache = store()
    cache.replace("10", [entry("a", 5)])
    cache.put(entry("a", 30))
    cache.put(entry("b", 31))

    cache.replace("20", [entry("a", 15)])

    assert held(cache) == {"a": "30", "b": "31"}


def test_an_old_list_does_not_bring_back_what_was_deleted_since():
    cache = store()
    cache.replace("10", [entry("a", 5)])
    cache.remove(("llm", "a"), "30")

    cache.replace("20", [entry("a", 5)])

    assert held(cache) == {}


def test_an_object_deleted_and_made_again_is_kept():
    cache = store()
    cache.replace("10", [entry("a", 5)])
    cache.put(entry("a", 12, uid="second"))

    cache.remove(("llm", "a"), "11")

    assert held(cache) == {"a": "12"}


def test_a_view_never_changes_and_is_shared_until_something_does():
    cache = store()
    cache.replace("10", [entry("a", 5)])
    first = cache.view()

    same = cache.view()
    cache.put(entry("b", 11))

    assert first is same
    assert list(first) == [("llm", "a")]
    assert len(cache.view()) == 2


def test_losing_sight_keeps_the_content_and_a_list_makes_it_known_again():
    cache = store()
    cache.replace("10", [entry("a", 5)])

    news = cache.lose("forbidden")
    no_news = cache.lose("forbidden")
    unknown = cache.why_unknown
    cache.replace("12", [])

    assert (news, no_news, unknown) == (True, False, "forbidden")
    assert (cache.why_unknown, held(cache)) == ("", {})


def test_a_version_that_is_no_number_is_taken_as_news():
    cache = store()
    cache.replace("x1", [entry("a", "abc")])

    changed = cache.put(entry("a", "abx"))
    same = cache.put(entry("a", "abx"))

    assert changed is not None
    assert same is None


def test_an_answer_without_version_was_never_stored():
    """A dry run of a create has no resourceVersion: folding it would invent an object."""
    cache = store()
    cache.replace("10", [])

    assert cache.put(entry("a", "")) is None
    assert held(cache) == {}


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [("10", "9", True), ("9", "10", False), ("7", "7", False), ("", "1", False), ("a", "1", False)],
)
def test_versions_are_compared_as_whole_numbers(one, other, newer):
    assert newer == is_newer(one, other)


@given(st.integers(1, 2**70), st.integers(1, 2**70))
def test_version_order_is_number_order_at_any_length(one, other):
    assert (one > other) == is_newer(str(one), str(other))

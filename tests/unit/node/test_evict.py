"""A folder of weights keeps its bound: the longest unused goes, what is in use never does."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.node import evict
from stoker.node.evict import MARKS, MOST_AT_ONCE, YOUNG_SECONDS, Evicted, keep_within
from unit.node.test_cache import Hub

A, B, C = "a" * 40, "b" * 40, "c" * 40
NOW = 1_800_000_000.0
DAY = 86_400.0
TEXT = "x" * 20_000
SIZE = 20_480
"""On disk: five blocks of 4 KiB."""


@pytest.fixture
def hub(tmp_path):
    return Hub(tmp_path)


def marks(hub):
    place = hub.place.parent / MARKS
    place.mkdir(exist_ok=True)
    return place


def use(hub, name, revision=A, *, days=1.0, most: object = 3 * SIZE, **extra):
    """A mark of a start so many days ago; gives the file."""
    key = hashlib.sha256(f"{name}@{revision}".encode()).hexdigest()[:16]
    file = marks(hub) / f"{key}.json"
    file.write_text(
        json.dumps({"name": name, "revision": revision, "mostBytes": str(most), **extra})
    )
    os.utime(file, (NOW - days * DAY, NOW - days * DAY))
    return file


def model(name):
    return f"models--{name.replace('/', '--')}"


def weights(hub, name, revision=A, *, days=1.0, **mark):
    hub.add("model.safetensors", TEXT, revision, model(name))
    return use(hub, name, revision, days=days, **mark)


def left(hub):
    return {
        (place.name.removeprefix("models--").replace("--", "/"), each.name)
        for place in hub.place.iterdir()
        for each in (place / "snapshots").iterdir()
    }


def names(found):
    return [uri.removeprefix("hf://").partition("@")[0] for uri in found.gone]


def test_nothing_goes_while_the_bound_is_kept(hub):
    weights(hub, "o/a", most=2 * SIZE)
    weights(hub, "o/b", most=2 * SIZE)

    assert Evicted() == keep_within(hub.root, NOW)


def test_the_longest_unused_goes_first_and_no_more_than_needed(hub):
    for name, days in (("o/new", 1), ("o/old", 9), ("o/older", 10), ("o/mid", 5)):
        weights(hub, name, days=days, most=2 * SIZE)

    found = keep_within(hub.root, NOW)

    assert ["o/older", "o/old"] == names(found)
    assert {("o/new", A), ("o/mid", A)} == left(hub)
    assert 2 * SIZE == found.freed_bytes
    assert 2 == len(list(marks(hub).glob("*.json")))


@pytest.mark.parametrize("end", ["json", "lock"])
@pytest.mark.parametrize("how", [fcntl.LOCK_SH, fcntl.LOCK_EX])
def test_what_a_running_engine_or_a_download_holds_never_goes(hub, end, how):
    file = weights(hub, "o/held", days=99, most=SIZE)
    weights(hub, "o/free", days=2, most=SIZE)
    with file.with_suffix(f".{end}").open("a") as held:
        fcntl.flock(held, how)
        found = keep_within(hub.root, NOW)

    assert ["o/free"] == names(found)
    assert ("o/held", A) in left(hub)


def test_what_a_start_asked_for_lately_never_goes(hub):
    """Its engine may not hold it yet."""
    weights(hub, "o/a", days=(YOUNG_SECONDS - 1) / DAY, most=1)

    found = keep_within(hub.root, NOW)

    assert () == found.gone
    assert "all is in use" in found.why


def test_what_no_start_of_ours_left_a_mark_of_is_not_touched(hub):
    hub.add("model.safetensors", TEXT, A, model("o/foreign"))
    weights(hub, "o/ours", most=1)

    found = keep_within(hub.root, NOW)

    assert ["o/ours"] == names(found)
    assert {("o/foreign", A)} == left(hub)


@pytest.mark.parametrize("most", ["", 0, -1, "lots", "9" * 30])
def test_without_a_bound_nothing_goes(hub, most):
    weights(hub, "o/a", most=most)

    assert Evicted() == keep_within(hub.root, NOW)


def test_the_largest_bound_of_those_that_share_a_folder_counts(hub):
    weights(hub, "o/a", most=1)
    weights(hub, "o/b", most=2 * SIZE)

    assert Evicted() == keep_within(hub.root, NOW)


def test_blobs_that_another_revision_links_to_stay(hub):
    link = hub.add("model.safetensors", TEXT, A, model("o/a"))
    blob = link.readlink().name
    hub.link("model.safetensors", f"blobs/{blob}", B, model("o/a"))
    hub.add("extra.safetensors", TEXT, A, model("o/a"))
    use(hub, "o/a", A, days=9, most=SIZE)
    use(hub, "o/a", B, days=1, most=SIZE)

    found = keep_within(hub.root, NOW)

    assert SIZE == found.freed_bytes
    assert {("o/a", B)} == left(hub)
    assert (hub.place / model("o/a") / "blobs" / blob).exists()


def test_downloads_that_were_given_up_go_with_the_last_revision(hub):
    weights(hub, "o/a", most=1)
    partial = hub.place / model("o/a") / "blobs" / "etag.incomplete"
    partial.write_text(TEXT)

    found = keep_within(hub.root, NOW)

    assert 2 * SIZE == found.freed_bytes
    assert not partial.exists()


def test_one_look_deletes_a_few_revisions_at_most(hub):
    for number in range(MOST_AT_ONCE + 2):
        weights(hub, f"o/m{number}", days=number + 1, most=1)

    found = keep_within(hub.root, NOW)

    assert MOST_AT_ONCE == len(found.gone)
    assert not found.why


@pytest.mark.parametrize(
    ("name", "revision"),
    [("../../etc", A), ("o/a/b", A), ("o/..", A), ("/etc", A), ("o/a", "../../x"), ("o/a", "main")],
)
def test_a_mark_that_leads_elsewhere_marks_nothing(hub, name, revision, tmp_path):
    """Pods write the marks: they are input of strangers."""
    weights(hub, "o/big", days=YOUNG_SECONDS / DAY / 2, most=1)
    use(hub, name, revision, days=99, most=1)

    assert () == keep_within(hub.root, NOW).gone


def test_links_in_place_of_folders_are_not_followed(hub, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "snapshots" / A).mkdir(parents=True)
    (elsewhere / "blobs").mkdir()
    (elsewhere / "blobs" / "precious").write_text(TEXT)
    weights(hub, "o/big", days=YOUNG_SECONDS / DAY / 2, most=1)
    (hub.place / model("o/a")).symlink_to(elsewhere)
    use(hub, "o/a", A, days=9, most=1)

    assert 0 == keep_within(hub.root, NOW).freed_bytes
    assert (elsewhere / "blobs" / "precious").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 1}', "x" * 9_000])
def test_a_mark_that_cannot_be_read_marks_nothing(hub, text):
    weights(hub, "o/a", most=1)
    (marks(hub) / ("0" * 16 + ".json")).write_text(text)

    assert ["o/a"] == names(keep_within(hub.root, NOW))


def test_a_folder_with_more_than_is_looked_at_is_left_alone(hub, monkeypatch):
    weights(hub, "o/a", most=1)
    monkeypatch.setattr(evict, "MAX_ENTRIES", 1)

    found = keep_within(hub.root, NOW)

    assert () == found.gone
    assert "more than 1 files" in found.why


def test_a_folder_that_is_not_there_is_no_trouble(tmp_path):
    assert Evicted() == keep_within(tmp_path / "nothing", NOW)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25
)
@given(
    ages=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    held=st.sets(st.integers(0, 5)),
    blocks=st.integers(1, 7),
)  # fmt: skip
def test_whatever_lies_there_only_old_and_free_weights_go_oldest_first(
    tmp_path_factory, ages, held, blocks
):
    hub = Hub(tmp_path_factory.mktemp("hub"))
    files = [weights(hub, f"o/m{n}", days=age, most=blocks * SIZE) for n, age in enumerate(ages)]
    opened = [files[n].open() for n in sorted(held) if n < len(files)]
    for file in opened:
        fcntl.flock(file, fcntl.LOCK_SH)

    found = keep_within(hub.root, NOW)
    for file in opened:
        file.close()

    may_go = sorted((-ages[n], n) for n in range(len(ages)) if ages[n] > 0 and n not in held)
    over = max(0, len(ages) - blocks)
    expected = [f"o/m{n}" for _, n in may_go][: min(over, MOST_AT_ONCE)]
    assert sorted(ages[int(n[3:])] for n in names(found)) == sorted(
        ages[int(n[3:])] for n in expected
    )

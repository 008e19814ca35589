"""What starts took is on the data ref once an hour, bounded, and readable without the cluster."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS, a_desired, a_shape, a_snapshot, a_unit
from stoker.cli.print_starts import starts_json, starts_text
from stoker.cli.recorded import read_recorded_starts
from stoker.decide import decide
from stoker.errors import BadInput
from stoker.model.fleet import SnapshotDetail
from stoker.model.history import History
from stoker.model.ports import PushResult
from stoker.model.start_samples import (
    MAX_KEYS,
    MAX_SAMPLES,
    NO_STARTS,
    OpenStart,
    Starts,
    StartSample,
)
from stoker.report.publish_records import RecordPublisher
from stoker.report.records import DecisionInputs
from stoker.report.starts_copy import EVERY_MS, STARTS_FILE, StartsCopy
from stoker.sim.clock import VirtualClock
from unit.decide.test_slow_starts import COLD_NODE, WARM_NODE, starts

FULL = SnapshotDetail.FULL
LEARNED = starts(cold=[7, 8, 9, 9, 9], warm=[1, 2])


def a_call(learned=LEARNED, now_ms=NOW_MS):
    unit = a_unit()
    desired, shapes = a_desired(unit), (a_shape(unit),)
    snapshot, history = a_snapshot(COLD_NODE, WARM_NODE), History(starts=learned)
    plan = decide(desired, shapes, snapshot, history, now_ms)
    return DecisionInputs(desired, shapes, snapshot, history, plan)


def written(call=None, detail=FULL, copy=None, now_ms=NOW_MS):
    return (copy or StartsCopy()).files(call or a_call(), detail, now_ms)


def recorded(tmp_path, learned=LEARNED):
    content = written(a_call(learned))[STARTS_FILE]
    assert content is not None
    (tmp_path / STARTS_FILE).write_bytes(content)
    return read_recorded_starts(str(tmp_path), tmp_path)


def test_what_was_learned_comes_back_with_the_words_for_its_kinds(tmp_path):
    found = recorded(tmp_path)

    assert LEARNED == found.starts
    assert "2025-11-24T16:00:00Z" == found.taken_at
    assert {("llm/qwen", "g6.xlarge", "image no, weights no"),
            ("llm/qwen", "g6.xlarge", "image yes, weights yes")} == {
        (kind.service, kind.where, kind.held) for _, kind in found.kinds
    }  # fmt: skip


def test_people_read_kinds_slowest_first(tmp_path):
    assert starts_text(recorded(tmp_path)).splitlines() == [
        "as of 2025-11-24T16:00:00Z",
        "SERVICE   NODES      THE NODE HELD           STARTS          P50    P90    LAST",
        "llm/qwen  g6.xlarge  image no, weights no    5               9m00s  9m00s  2025-11-24T16:00:00Z",
        "llm/qwen  g6.xlarge  image yes, weights yes  2 (prior used)  1m00s  2m00s  2025-11-24T16:00:00Z",
    ]


def test_programs_read_the_same(tmp_path):
    data = starts_json(recorded(tmp_path))

    assert ["LearnedStarts", 2] == [data["kind"], len(data["kinds"])]
    assert [540_000, 120_000] == [kind["p90Ms"] for kind in data["kinds"]]


def test_a_kind_that_no_service_has_any_more_is_shown_as_that(tmp_path):
    learned = Starts((("0" * 16, (StartSample(NOW_MS, 1, 2, 3),)),))

    assert "(no service of now)" in starts_text(recorded(tmp_path, learned))


def test_it_is_written_once_an_hour_where_it_changed():
    copy = StartsCopy()
    more = starts(cold=[7, 8, 9, 9, 9, 9])

    assert [STARTS_FILE] == list(written(copy=copy))
    assert {} == written(a_call(more), copy=copy, now_ms=NOW_MS + EVERY_MS - 1)
    assert {} == written(copy=copy, now_ms=NOW_MS + EVERY_MS), "nothing new"
    assert [STARTS_FILE] == list(written(a_call(more), copy=copy, now_ms=NOW_MS + EVERY_MS))


def test_what_did_not_get_out_is_due_at_once():
    copy = StartsCopy()
    written(copy=copy)
    copy.forget()

    assert [STARTS_FILE] == list(written(copy=copy))


def test_a_fleet_that_records_nothing_copies_nothing():
    assert {} == written(detail=SnapshotDetail.NONE)
    assert {} == written(a_call(NO_STARTS))


@pytest.mark.parametrize("detail", [FULL, SnapshotDetail.HASHED])
def test_no_name_of_a_node_or_pod_is_in_it(detail):
    """Hashed snapshots name no node, so this does not either."""
    learned = replace(LEARNED, open=(OpenStart("pod-uid", "n1", "f" * 16),))
    content = written(a_call(learned), detail)[STARTS_FILE]
    assert content is not None

    assert not [word for word in (b"pod-uid", b'"n1"', b'"n2"') if word in content]


def test_it_is_bounded():
    ring = [StartSample(NOW_MS + n, 10**7, 10**7, 10**7) for n in range(2 * MAX_SAMPLES)]
    learned = Starts.bounded({f"{n:016x}": ring for n in range(2 * MAX_KEYS)}, ())
    content = written(a_call(learned))[STARTS_FILE]
    assert content is not None

    assert len(content) < 128 * 1024


def test_nothing_is_read_where_there_is_no_file(tmp_path):
    assert NO_STARTS == read_recorded_starts(str(tmp_path), tmp_path).starts


@pytest.mark.parametrize("text", ["[]", "{", '{"kinds": 3}', '{"kinds": {}, "starts": {}}'])
def test_a_file_that_is_no_record_is_said_to_be_none(tmp_path, text):
    (tmp_path / STARTS_FILE).write_text(text)

    with pytest.raises(BadInput):
        read_recorded_starts(str(tmp_path), tmp_path)


@given(st.dictionaries(st.text("0123456789abcdef", min_size=16, max_size=16),
                       st.lists(st.integers(0, 10**7), min_size=1, max_size=4), max_size=4))  # fmt: skip
def test_whatever_was_learned_comes_back(found):
    rings = {
        key: [StartSample(NOW_MS + n, ms, 0, 0) for n, ms in enumerate(ring)]
        for key, ring in found.items()
    }
    learned = Starts.bounded(rings, ())
    files = written(a_call(learned))

    if not rings:
        assert {} == files
        return
    content = files[STARTS_FILE]
    assert content is not None
    assert learned == Starts.from_text(json.dumps(json.loads(content)["starts"]))


class _Ref:
    """A data ref that takes what it is given, or refuses."""

    def __init__(self, rejected: str = "") -> None:
        self.files: dict[str, bytes | None] = {}
        self.titles: list[str] = []
        self.rejected = rejected

    def read_branch(self, _ref, _below=""):
        return {}

    def commit_files(self, _ref, files, message):
        self.titles.append(message)
        if not self.rejected:
            self.files |= files
        return PushResult("c" * 40, pushed=not self.rejected, rejected=self.rejected)


def a_publisher(ref):
    return RecordPublisher(ref, VirtualClock(), version="1", fleet_id="c0ffee01")


def test_the_ref_gets_it_although_nothing_was_decided_anew():
    """Starts end without a new decision; a heartbeat of status brings them along."""
    ref = _Ref()

    failed = a_publisher(ref).publish("prod-eu", FULL, (), a_call())

    assert failed is None
    assert [STARTS_FILE] == list(ref.files)
    assert ["starts  [skip ci]\n"] == ref.titles


def test_a_ref_that_refused_gets_it_with_the_next_commit():
    ref = _Ref("denied")
    publisher = a_publisher(ref)
    publisher.publish("prod-eu", FULL, (), a_call())
    ref.rejected = ""

    publisher.publish("prod-eu", FULL, (), a_call())

    assert [STARTS_FILE] == list(ref.files)

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.codec import canonical_json, from_data
from stoker.model.fleet import Desired, ModelService, Pool, SnapshotDetail
from stoker.model.history import History, UnitHistory
from stoker.model.limits import PlacementLimits
from stoker.model.shape import PodShape, Resources, UnitShape
from stoker.model.snapshot import Snapshot, Worker
from stoker.model.start_samples import Starts, StartSample
from stoker.report.record_diff import difference, patched
from stoker.report.records import DecisionInputs, RecordBook, decide_input, record_path
from stoker.report.snapshot_files import MAX_BYTES, own_images_only, snapshot_files
from unit.report.report_builders import (
    NOW,
    QWEN,
    decision,
    desired,
    fleet,
    node,
    plan,
    ready_on,
    service,
    snapshot,
)

IMAGE = "registry.invalid/vllm@sha256:00"
FOREIGN = "registry.invalid/payroll@sha256:11"
DAY_MS = 86_400_000

json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=12,
)


def call(*, ready: int = 4, names: tuple[str, ...] = ("l4-od-1", "l4-od-2"), now_ms: int = NOW):
    nodes = tuple(node(name, images=(IMAGE, FOREIGN)) for name in names)
    shape = UnitShape(QWEN, "rev1", PodShape(Resources(pods=1), image=IMAGE))
    return DecisionInputs(
        desired=desired(service()),
        shapes=(shape,),
        snapshot=snapshot(ready_on(QWEN, ready), nodes=nodes),
        history=History(((QWEN, UnitHistory(4)),)),
        plan=replace(plan(decision(ready=ready)), now_ms=now_ms),
    )


def book() -> RecordBook:
    return RecordBook("0.1.0", "c0ffee01")


def records(files: dict[str, bytes | None]) -> list[dict[str, Any]]:
    return [json.loads(c) for p, c in files.items() if p.startswith("records/") and c]


def whole_input(files: dict[str, bytes | None]) -> dict[str, Any]:
    """Put the input together from the files of a snapshot, as replay will."""
    data: dict[str, Any] = json.loads(files["input.json"] or b"")
    nodes = [
        entry
        for path, content in files.items()
        if path.startswith("snapshot/") and content
        for entry in json.loads(content)
    ]
    data["snapshot"]["nodes"] = sorted(nodes, key=lambda entry: entry["name"])
    return data


@given(json_data, json_data)
def test_a_difference_leads_from_one_to_the_other(before, after):
    change = json.loads(canonical_json(difference(before, after)))

    assert canonical_json(patched(before, change)) == canonical_json(after)


@given(st.lists(st.integers(0, 5)), st.integers(0, 9), st.integers(0, 9))
def test_a_list_that_grew_in_one_place_costs_one_entry(entries, place, value):
    place = min(place, len(entries))
    after = [*entries[:place], value, *entries[place:]]

    assert len(canonical_json(difference(entries, after))) < 24


@pytest.mark.parametrize("change", [["{", {}, []], ["[", 0, 0, []], ["@", {}], ["?"], []], ids=str)
def test_a_difference_that_does_not_fit_is_refused(change):
    with pytest.raises(ValueError, match="does not fit"):
        patched("text", change)


def test_a_record_holds_everything_that_decide_was_given():
    """`replay` makes the plan again from the record alone."""
    made = call()
    files = book().files(made, SnapshotDetail.FULL, NOW)

    data = whole_input(files)
    assert data == decide_input(made)
    assert made.desired == from_data(Desired, data["desired"])
    assert own_images_only(made.snapshot, made.shapes, made.desired) == from_data(
        Snapshot, data["snapshot"]
    )
    assert made.shapes == tuple(from_data(UnitShape, shape) for shape in data["shapes"])
    assert made.history == from_data(History, data["history"])
    assert made.plan.now_ms == data["now"]


def test_the_record_after_is_a_difference_to_the_one_before():
    shelf = book()
    first, second = call(), call(ready=3, now_ms=NOW + 60_000)
    whole = whole_input(shelf.files(first, SnapshotDetail.FULL, NOW))

    files = shelf.files(second, SnapshotDetail.FULL, NOW + 60_000)

    (record,) = records(files)
    assert 1 == len(files)
    assert record["before"] == record_path(NOW, record_digest(first))
    assert decide_input(second) == patched(whole, record["input"]["difference"])


def record_digest(made: DecisionInputs) -> str:
    (record,) = records(book().files(made, SnapshotDetail.FULL, NOW))
    return str(record["digest"]).removeprefix("sha256:")


def test_a_whole_record_is_written_every_five_minutes_at_most():
    shelf = book()
    shelf.files(call(), SnapshotDetail.FULL, NOW)

    early = shelf.files(call(ready=3), SnapshotDetail.FULL, NOW + 299_999)
    late = shelf.files(call(ready=2), SnapshotDetail.FULL, NOW + 300_000)

    assert "input.json" not in early
    assert "input.json" in late


def test_the_same_decision_is_recorded_once():
    shelf = book()
    shelf.files(call(), SnapshotDetail.FULL, NOW)

    assert {} == shelf.files(call(now_ms=NOW + DAY_MS), SnapshotDetail.FULL, NOW + DAY_MS)


def test_what_did_not_get_out_is_not_built_on():
    shelf = book()
    shelf.files(call(), SnapshotDetail.FULL, NOW)
    shelf.forget()

    assert "input.json" in shelf.files(call(ready=3), SnapshotDetail.FULL, NOW + 1)


def test_records_are_kept_for_14_days():
    shelf = book()
    old, kept = record_path(NOW - 15 * DAY_MS, "aaaaaaa"), record_path(NOW - 13 * DAY_MS, "bbbbbbb")
    shelf.remember([old, kept, "records/yesterday/x.json", "snapshot.json"])

    files = shelf.files(call(), SnapshotDetail.FULL, NOW)

    assert [old] == [path for path, content in files.items() if content is None]


def test_images_of_others_and_names_of_their_pods_are_not_in_it():
    files = book().files(call(), SnapshotDetail.FULL, NOW)

    everything = b"".join(content or b"" for content in files.values())
    assert IMAGE.encode() in everything
    assert b"payroll" not in everything


def test_a_hashed_snapshot_names_no_node():
    labels = (("kubernetes.io/hostname", "l4-od-1.corp"), ("pool", "l4"), ("owner", "alice"))
    made = call()
    named = replace(made.snapshot, nodes=(node("l4-od-1", labels=labels),))

    files = book().files(replace(made, snapshot=named), SnapshotDetail.HASHED, NOW)

    everything = b"".join(content or b"" for content in files.values())
    for secret in (b"l4-od-1.corp", b"alice", b'"l4-od-1"', b"uid-l4-od-1"):
        assert secret not in everything
    assert b'["pool","l4"]' in everything
    assert "input" not in records(files)[0]


def test_pools_cannot_make_a_hashed_snapshot_name_nodes():
    labels = (("kubernetes.io/hostname", "l4-od-1.corp"),)
    pool = Pool("a", (("kubernetes.io/hostname", "l4-od-1.corp"),))
    wanted = desired(service(), fleet=fleet(pools=(pool,)))

    files = snapshot_files(
        snapshot(nodes=(node("l4-od-1", labels=labels),)), wanted, SnapshotDetail.HASHED, "salt"
    )

    assert b"corp" not in b"".join(files.values())


def test_a_hashed_snapshot_tells_domains_and_pools_apart_without_naming_nodes():
    """A spread by host needs to know which nodes differ; `pool/l4` is no node."""
    host = "kubernetes.io/hostname"
    unit = service()
    assert isinstance(unit.spec, ModelService)
    spread = replace(unit, spec=replace(unit.spec, limits=PlacementLimits(spread_key=host)))
    nodes = tuple(node(n, labels=((host, f"{n}.corp"),)) for n in ("l4-od-1", "l4-od-2"))
    state = ready_on(QWEN, 1)
    free = replace(state.placements[0], node="pool/l4", node_uid="")

    files = snapshot_files(
        snapshot(replace(state, placements=(free,)), nodes=nodes),
        desired(spread),
        SnapshotDetail.HASHED,
        "salt",
    )

    everything = b"".join(files.values())
    assert b"corp" not in everything
    assert 2 == len(
        {line.split(host.encode())[1] for line in everything.splitlines() if host.encode() in line}
    )
    assert b'"pool/l4"' in everything


def test_a_hashed_snapshot_names_no_node_of_a_group():
    """Workers and decided nodes are names too; by the same hash they stay the same nodes."""
    state = ready_on(QWEN, 1)
    (place,) = state.placements
    workers = (Worker("w", "u", "n2.corp"),)
    pods = tuple(
        replace(pod, node="n1.corp", workers=workers, failed_node="n2.corp") for pod in place.pods
    )
    group = replace(
        place, node="n1.corp", pods=pods, size=2, nodes=("n1.corp", "n2.corp"), domain="rack.corp"
    )
    unit = service()
    assert isinstance(unit.spec, ModelService)
    racks = replace(unit, spec=replace(unit.spec, nodes=2, group_key="example.com/rack"))

    files = snapshot_files(
        snapshot(replace(state, placements=(group,))), desired(racks), SnapshotDetail.HASHED, "salt"
    )

    assert b"corp" not in b"".join(files.values())


def test_without_snapshots_only_the_fact_of_a_decision_is_recorded():
    files = book().files(call(), SnapshotDetail.NONE, NOW)

    (record,) = records(files)
    assert 1 == len(files)
    assert {"stokerVersion", "sourceRevision", "now", "digest"} == set(record)


def test_one_changed_node_changes_one_shard():
    names = tuple(f"node-{n:04}" for n in range(1000))
    before = snapshot_files(call(names=names).snapshot, desired(), SnapshotDetail.FULL, "")
    nodes = tuple(node(name, ready=name != "node-0500") for name in names)
    same = tuple(node(name) for name in names)
    before = snapshot_files(snapshot(nodes=same), desired(), SnapshotDetail.FULL, "")

    after = snapshot_files(snapshot(nodes=nodes), desired(), SnapshotDetail.FULL, "")

    assert 6 == len(after)
    assert 1 == sum(1 for path in after if after[path] != before[path])


def test_a_snapshot_never_grows_over_its_limit():
    labels = tuple((f"key-{n}", "v" * 200) for n in range(50))
    nodes = tuple(node(f"node-{n:04}", labels=labels) for n in range(1000))
    huge = replace(call(), snapshot=snapshot(nodes=nodes))

    files = book().files(huge, SnapshotDetail.FULL, NOW)

    snapshot_bytes = sum(len(c or b"") for p, c in files.items() if p.startswith("snapshot"))
    assert snapshot_bytes <= MAX_BYTES
    assert json.loads(files["snapshot.json"] or b"")["truncated"] > 0
    assert "cannot be replayed" in records(files)[0]["truncated"]


def test_what_starts_took_stands_in_the_input_and_not_in_every_record():
    """It is the longest part of the history, and a record is written at each decision."""
    starts = Starts.bounded({"a1": [StartSample(5_000, 1, 2, 3)]}, ())
    learned = replace(call(), history=History(((QWEN, UnitHistory(4)),), starts))
    files = book().files(learned, SnapshotDetail.FULL, NOW)
    (record,) = records(files)

    assert [*record["history"]] == ["entries"]
    assert from_data(Starts, whole_input(files)["history"]["starts"]) == starts

import pytest

from stoker.model.shape import Resources
from stoker.model.snapshot import Notice, Taint, WeightCopy
from stoker.model.times import rfc3339
from stoker.observe.nodes import node_facts, nodes_from, state_facts
from stoker.observe.pods import pod_facts
from unit.observe.observe_builders import NOW, manifest, node, pod


def read(raw_nodes=None, pods=(), states=(), seen=None, now_ms=NOW):
    nodes, remembered = nodes_from(
        [(raw["metadata"]["name"], node_facts(raw)) for raw in raw_nodes or [node()]],
        [pod_facts(raw) for raw in pods],
        {raw["metadata"]["name"]: state_facts(raw) for raw in states},
        seen or {},
        now_ms,
    )
    return nodes if seen is None else (nodes, remembered)


def state(name="n1", **status):
    return manifest("stoker.dev/v1alpha1", "NodeState", name, status=status)


def taint(key, **more):
    return {"key": key, "effect": "NoSchedule", **more}


def noticed(*taints, **more):
    return read([node(taints=taints)], **more)[0].notice


def test_a_node_is_read_with_room_taints_labels_and_images():
    raw = node(
        labels={"b": "2", "a": "1"},
        taints=[taint("dedicated", value="llm")],
        images=[{"names": ["reg/b@sha256:1", "reg/b:2"]}, {"names": ["reg/a:1"]}, {"sizeBytes": 1}],
    )

    (found,) = read([raw])

    assert found.labels == (("a", "1"), ("b", "2"))
    assert found.taints == (Taint("dedicated", "llm", "NoSchedule"),)
    assert found.images == ("reg/a:1", "reg/b:2", "reg/b@sha256:1")
    assert found.allocatable == Resources(64_000, 512 * 2**30, 110, (("nvidia.com/gpu", 8),))
    assert (found.ready, found.cordoned, found.gpu_unknown) == (True, False, "")


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_node_is_ready_only_when_it_says_so(status):
    raw = node(conditions=[{"type": "Ready", "status": status}])

    assert not read([raw])[0].ready


def test_a_cordoned_node_says_so():
    assert read([node(spec={"unschedulable": True})])[0].cordoned


def test_nodes_come_sorted_by_name():
    assert [found.name for found in read([node("b"), node("a")])] == ["a", "b"]


def test_every_bound_pod_takes_room_until_it_is_gone_or_has_ended():
    """Terminating pods hold their GPUs; finished and unbound ones hold nothing (design 4)."""
    pods = [
        pod("running", gpus=1),
        pod("starting", gpus=1, phase="Pending"),
        pod("leaving", gpus=2, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod("done", gpus=8, phase="Succeeded"),
        pod("evicted", gpus=8, phase="Failed"),
        pod("unbound", "", gpus=8, phase="Pending"),
        pod("elsewhere", "n2", gpus=8),
    ]

    used = read(pods=pods)[0].used

    assert used.device("nvidia.com/gpu") == 4
    assert used.pods == 3


def test_a_pod_that_cannot_be_read_makes_the_nodes_gpus_unknown():
    broken = pod(spec={"overhead": {"cpu": "much"}})

    assert "cannot be read" in read(pods=[broken])[0].gpu_unknown


def test_a_node_whose_room_cannot_be_read_is_unknown_and_not_full():
    assert "cannot be read" in read([node(allocatable={"cpu": "lots"})])[0].gpu_unknown


def test_gpus_split_by_mig_are_not_counted():
    raw = node(allocatable={"cpu": "8", "nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu": "0"})

    assert "MIG" in read([raw])[0].gpu_unknown


def test_mig_names_that_stay_at_zero_after_a_change_of_mode_do_not_matter():
    raw = node(allocatable={"cpu": "8", "nvidia.com/mig-1g.10gb": "0", "nvidia.com/gpu": "8"})

    assert read([raw])[0].gpu_unknown == ""


def test_gpus_handed_out_by_resource_claims_are_not_counted():
    claimed = pod(spec={"resourceClaims": [{"name": "gpu"}]})

    assert "DRA" in read(pods=[claimed])[0].gpu_unknown


def test_a_gpu_node_without_device_plugin_yet_says_so():
    """cases.md row 161: Ready, but the GPU resource has not appeared."""
    raw = node(labels={"nvidia.com/gpu.product": "NVIDIA-L4"}, allocatable={"cpu": "8"})

    assert "device plugin" in read([raw])[0].gpu_unknown


def test_a_node_without_gpus_is_simply_one():
    assert read([node(allocatable={"cpu": "8"})])[0].gpu_unknown == ""


def test_weights_come_from_the_node_state_and_are_warm_only_when_complete():
    copies = [
        {"uri": "hf://b", "revision": "2", "complete": True},
        {"uri": "hf://a", "revision": "1"},
        {"revision": "no uri"},
    ]

    (found,) = read(states=[state(cache=copies)])

    assert found.weights == (WeightCopy("hf://a", "1", complete=False), WeightCopy("hf://b", "2"))


def test_a_state_of_another_node_is_left_alone():
    assert read(states=[state("n2", cache=[{"uri": "x"}])])[0].weights == ()


@pytest.mark.parametrize(
    ("key", "kind", "deadline"),
    [
        ("aws-node-termination-handler/spot-itn", "spot-interruption", 120_000),
        ("aws-node-termination-handler/scheduled-maintenance", "maintenance", None),
        ("aws-node-termination-handler/asg-lifecycle-termination", "termination", None),
        ("cloud.google.com/impending-node-termination", "termination", 30_000),
        ("karpenter.sh/disrupted", "disruption", None),
        ("node.kubernetes.io/out-of-service", "out-of-service", 0),
    ],
)
def test_taints_of_the_clouds_are_notices(key, kind, deadline):
    """semantics.md 1.12."""
    added = NOW - 5000

    found = noticed(taint(key, timeAdded=rfc3339(added)))

    end = None if deadline is None else added + deadline
    assert found == Notice(kind, added, end, vacates=kind == "disruption")


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("PreemptScheduled", Notice("spot-interruption", NOW - 5_000, NOW + 25_000)),
        ("TerminateScheduled", Notice("termination", NOW - 5_000)),
        ("RebootScheduled", Notice("maintenance", NOW - 5_000)),
        ("FreezeScheduled", None),
        ("VMEventScheduled", None),
    ],
)
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_conditions_of_the_node_problem_detector_are_notices_while_they_are_true(
    kind, found, status
):
    raw = node()
    told = {"type": kind, "status": status, "lastTransitionTime": rfc3339(NOW - 5_000)}
    raw["status"]["conditions"] = [*raw["status"].get("conditions", ()), told]

    assert read([raw])[0].notice == (found if status == "True" else None)


def test_the_autoscaler_writes_its_instant_as_the_value():
    found = noticed(taint("ToBeDeletedByClusterAutoscaler", value="1799999000"))

    assert found == Notice("scale-down", 1_799_999_000_000, vacates=True)


@pytest.mark.parametrize(
    "key", ["aws-node-termination-handler/rebalance-recommendation", "node.kubernetes.io/not-ready"]
)
def test_hints_and_other_taints_are_no_notices(key):
    assert noticed(taint(key)) is None


def test_a_recommendation_to_rebalance_is_a_hint_by_taint_or_by_the_reporter():
    key = "aws-node-termination-handler/rebalance-recommendation"
    report = state(hint={"kind": "rebalance", "at": rfc3339(NOW), "source": "aws"})

    assert "rebalance" == read([node(taints=[taint(key)])])[0].hint
    assert "rebalance" == read(states=[report])[0].hint
    assert "" == read()[0].hint


def test_a_node_that_is_being_deleted_is_noticed():
    raw = node()
    raw["metadata"]["deletionTimestamp"] = rfc3339(NOW)

    assert read([raw])[0].notice == Notice("deletion", NOW, vacates=True)


def test_a_reported_notice_comes_with_its_own_deadline():
    report = {"kind": "spot", "at": rfc3339(NOW), "deadline": rfc3339(NOW + 90_000)}

    assert read(states=[state(notice=report)])[0].notice == Notice("spot", NOW, NOW + 90_000)


# ------------------------------------------------------------ reports that do not fit


def test_a_report_of_this_very_node_is_taken():
    ours = node()
    ours["metadata"]["uid"] = "u-1"
    copies = [{"uri": "hf://o/m", "complete": True}]

    (found,) = read([ours], states=[state(nodeUID="u-1", cache=copies)])

    assert found.weights == (WeightCopy("hf://o/m", ""),)


def test_a_report_of_a_node_that_had_the_same_name_is_not():
    """A node made anew, or objects restored from another cluster: the weights are not here."""
    notice = {"kind": "spot", "at": rfc3339(NOW), "deadline": rfc3339(NOW + 90_000)}
    copies = [{"uri": "hf://o/m", "complete": True}]

    (found,) = read(states=[state(nodeUID="another", cache=copies, notice=notice)])

    assert (found.weights, found.notice) == ((), None)


def test_a_report_of_a_node_that_does_not_exist_makes_none():
    assert [found.name for found in read(states=[state("ghost", cache=[{"uri": "x"}])])] == ["n1"]


def test_nodes_without_an_id_are_not_taken_for_each_other():
    """cases.md row 127: two objects whose id was empty were matched with each other."""
    first, second = (
        node(taints=[taint("aws-node-termination-handler/spot-itn")]),
        node("n2", taints=[taint("aws-node-termination-handler/spot-itn")]),
    )
    for each in (first, second):
        each["metadata"].pop("uid", None)

    _, remembered = read([first], seen={}, now_ms=NOW)
    (old, new), _ = read([first, second], seen=remembered, now_ms=NOW + 60_000)

    assert old.notice is not None
    assert new.notice is not None
    assert (old.notice.at_ms, new.notice.at_ms) == (NOW, NOW + 60_000)


def test_what_a_silent_reporter_said_of_weights_and_notices_still_holds():
    """Late is not wrong: nobody said that the weights are gone, or that the node stays."""
    notice = {"kind": "spot", "at": rfc3339(NOW - 86_400_000)}
    copies = [{"uri": "hf://o/m", "complete": True}]
    late = state(lastReportTime=rfc3339(NOW - 86_400_000), cache=copies, notice=notice)

    (found,) = read(states=[late])

    assert found.weights == (WeightCopy("hf://o/m", ""),)
    assert found.notice == Notice("spot", NOW - 86_400_000)


def test_a_notice_past_its_deadline_stays_with_the_deadline_it_had():
    """The node may go at any moment; that it is still here says nothing."""
    past = {"kind": "spot", "at": rfc3339(NOW - 200_000), "deadline": rfc3339(NOW - 80_000)}

    assert read(states=[state(notice=past)])[0].notice == Notice(
        "spot", NOW - 200_000, NOW - 80_000
    )


def test_a_notice_from_the_future_counts_from_when_it_was_first_seen():
    """A clock that is ahead by an hour must not give a dying node an hour."""
    ahead = taint("aws-node-termination-handler/spot-itn", timeAdded=rfc3339(NOW + 3_600_000))

    found, remembered = read([node(taints=[ahead])], seen={})
    again, _ = read([node(taints=[ahead])], seen=remembered, now_ms=NOW + 10_000)

    assert found[0].notice == again[0].notice
    assert found[0].notice == Notice("spot-interruption", NOW, NOW + 120_000)


def test_a_deadline_before_its_own_notice_is_taken_at_its_word():
    report = {"kind": "spot", "at": rfc3339(NOW), "deadline": rfc3339(NOW - 5000)}

    assert read(states=[state(notice=report)])[0].notice == Notice("spot", NOW, NOW - 5000)


def test_of_contradicting_notices_the_earlier_end_is_believed():
    report = {"kind": "spot", "at": rfc3339(NOW), "deadline": rfc3339(NOW + 600_000)}
    cloud = taint("cloud.google.com/impending-node-termination", timeAdded=rfc3339(NOW))

    (found,) = read([node(taints=[cloud])], states=[state(notice=report)])

    assert found.notice == Notice("termination", NOW, NOW + 30_000)


def test_of_two_claims_on_one_revision_both_stay_and_none_is_made_whole():
    """Complete and partial at once: the partial one does not make the other less."""
    copies = [
        {"uri": "hf://o/m", "revision": "1", "complete": True},
        {"uri": "hf://o/m", "revision": "1", "complete": "yes"},
    ]

    (found,) = read(states=[state(cache=copies)])

    assert {copy.complete for copy in found.weights} == {True, False}


@pytest.mark.parametrize("cache", [None, {}, "hf://o/m", [5, None, {"uri": 5}, {"uri": ""}]])
def test_a_cache_that_is_no_list_of_copies_is_none(cache):
    assert read(states=[state(cache=cache)])[0].weights == ()


@pytest.mark.parametrize("value", ["soon", 5, None])
def test_a_deadline_that_is_no_time_is_none_at_all(value):
    found = read(states=[state(notice={"kind": "spot", "deadline": value})])[0].notice

    assert found is not None
    assert found.deadline_ms is None


def test_the_earliest_deadline_is_named_of_several():
    found = noticed(
        taint("karpenter.sh/disrupted", timeAdded=rfc3339(NOW - 60_000)),
        taint("aws-node-termination-handler/spot-itn", timeAdded=rfc3339(NOW)),
        taint("cloud.google.com/impending-node-termination", timeAdded=rfc3339(NOW)),
    )

    assert found is not None
    assert found.deadline_ms == NOW + 30_000


def test_a_notice_that_forces_outranks_one_that_asks_to_vacate():
    """Karpenter taints a node that a cloud takes back too."""
    found = noticed(
        taint("karpenter.sh/disrupted", timeAdded=rfc3339(NOW - 60_000)),
        taint("aws-node-termination-handler/asg-lifecycle-termination", timeAdded=rfc3339(NOW)),
    )

    assert found == Notice("termination", NOW)


def test_a_notice_without_instant_counts_from_when_it_was_first_seen():
    """Else its deadline would run away with every pass."""
    raw = [node(taints=[taint("aws-node-termination-handler/spot-itn")])]

    _, remembered = read(raw, seen={}, now_ms=NOW)
    (later,), again = read(raw, seen=remembered, now_ms=NOW + 60_000)
    _, forgotten = read([node()], seen=again)

    assert later.notice == Notice("spot-interruption", NOW, NOW + 120_000)
    assert remembered == again
    assert forgotten == {}

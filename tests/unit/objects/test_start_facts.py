"""What a pod, its events and its log tell of one start."""

from __future__ import annotations

import pytest

from stoker.model.log_profile import LogMark, LogProfile
from stoker.objects.start_facts import Pull, concerns, start_from
from stoker.objects.start_log import read_log, version_of
from stoker.objects.start_phases import Milestone, Phase
from stoker.source import shipped_log_profiles
from unit.objects.starts import DAY, LAB_IMAGE, LAB_LOG, LAB_NAME, event, lab_events, pod


def seconds(start):
    """What each known span took."""
    return [span.took_ms / 1000 for span in start.spans if span.took_ms is not None]


def test_the_labs_timestamps_give_the_labs_phases():
    """Seed 003: 167 + 2 + 224 + 1 + about 60 + about 60 = 514 s."""
    start = start_from({}, lab_events(), (LAB_LOG[1], LAB_LOG[2]), shipped_log_profiles())

    assert [167, 2, 224, 1, 60, 60] == seconds(start)
    assert 514_000 == start.took_ms
    assert [(Phase.NODE,), (Phase.SETUP,), (Phase.IMAGE_PULL,), (Phase.CONTAINER_START,)] == [
        span.phases for span in start.spans if span.took_ms is not None
    ][:4]
    assert ("vllm", LAB_NAME, LAB_IMAGE) == (start.namespace, start.name, start.image)
    assert ("vllm", "0.28.0", "") == (start.engine, start.version, start.why)


def test_time_before_the_first_and_after_the_last_instant_is_unknown():
    """The lab does not say when its pod was made, nor when it was Ready."""
    start = start_from({}, lab_events(), LAB_LOG, shipped_log_profiles())

    assert (Phase.QUEUE,) == start.spans[0].phases
    assert start.spans[0].took_ms is None
    assert (Phase.PROBE,) == start.spans[-1].phases
    assert start.spans[-1].took_ms is None
    assert not start.ready


def test_the_engine_is_one_unknown_span_without_its_log():
    whole = pod(created="14:52:31", scheduled="14:52:33", started="14:52:35", ready="14:54:35")
    start = start_from(whole)

    assert start.ready
    assert start.spans[-1].phases == (
        Phase.PROCESS,
        Phase.WEIGHTS,
        Phase.ENGINE_INIT,
        Phase.PROBE,
    )
    assert 120_000 == start.spans[-1].took_ms
    assert "no log was read" == start.why


def test_events_that_expired_leave_the_pull_unknown():
    """Events live an hour; absent ones do not say that the image was there."""
    start = start_from(pod(scheduled="14:00:00", started="14:05:00"))

    assert (Phase.SETUP, Phase.IMAGE_PULL, Phase.CONTAINER_START) == start.spans[1].phases
    assert Pull() == start.pull
    assert start.pull.size_bytes is None
    assert start.pull.waited_ms is None


def test_an_image_that_was_there_took_no_time():
    there = event("14:00:02", "Pulled", f'Container image "{LAB_IMAGE}" already present on machine')
    start = start_from(pod(scheduled="14:00:00", started="14:00:03"), [there])

    known = {span.phases: span.took_ms for span in start.spans}
    assert 0 == known[(Phase.IMAGE_PULL,)]
    assert start.pull.present


def test_a_pull_says_how_long_it_waited_behind_others_and_how_large_it_is():
    """kubelet: pulls of a node queue unless serializeImagePulls is off."""
    message = f'Successfully pulled image "{LAB_IMAGE}" in 1m4.5s (3m44s including waiting). '
    pulled = event("14:03:46", "Pulled", message + "Image size: 9000000000 bytes.")
    start = start_from(pod(scheduled="14:00:00"), [pulled])

    assert Pull(size_bytes=9_000_000_000, waited_ms=159_500) == start.pull
    known = {span.phases: span.took_ms for span in start.spans}
    assert 224_000 == known[(Phase.IMAGE_PULL,)]
    assert 2_000 == known[(Phase.SETUP,)]


@pytest.mark.parametrize(
    ("message", "took_ms"),
    [
        ('Successfully pulled image "x" in 890ms (890ms including waiting)', 890),
        ('Successfully pulled image "x" in 1h2m3s', 3_723_000),
        ('Successfully pulled image "x" in a while', None),
        ('Successfully pulled image "x"', None),
    ],
)
def test_durations_of_go_are_read(message, took_ms):
    start = start_from({}, [event("14:03:46", "Pulled", message)])

    known = {span.phases: span.took_ms for span in start.spans}
    assert took_ms == known.get((Phase.IMAGE_PULL,))


def test_pulls_of_other_containers_are_not_the_engines():
    events = [
        event("14:00:01", "Pulling", 'Pulling image "proxy:1"', path="spec.containers{proxy}"),
        event("14:00:09", "Pulling", 'Pulling image "e"', path="spec.containers{engine}"),
        event("14:01:09", "Pulled", 'Successfully pulled image "e" in 1m0s',
              path="spec.containers{engine}"),
    ]  # fmt: skip
    start = start_from(pod(scheduled="14:00:00"), events)

    assert 60_000 == {span.phases: span.took_ms for span in start.spans}[(Phase.IMAGE_PULL,)]


def test_without_the_pod_init_containers_are_told_by_their_path():
    init = event("14:00:01", "Pulled", 'Successfully pulled image "i" in 1s',
                 path="spec.initContainers{fetch}")  # fmt: skip
    start = start_from({}, [init, event("14:01:00", "Started", path="spec.containers{vllm}")])

    assert all(span.phases != (Phase.IMAGE_PULL,) for span in start.spans)


def test_init_containers_are_a_phase_of_their_own():
    """Many stacks download weights in one."""
    made = pod(scheduled="14:00:00", started="14:05:01")
    made["spec"]["initContainers"] = [{"name": "fetch"}]
    done = {"terminated": {"startedAt": f"{DAY}14:00:04Z", "finishedAt": f"{DAY}14:05:00Z"}}
    made["status"]["initContainerStatuses"] = [{"name": "fetch", "state": done}]
    events = [event("14:05:00", "Pulled", "Container image already present on machine",
                    path="spec.containers{engine}")]  # fmt: skip
    start = start_from(made, events)

    known = {span.phases: span.took_ms for span in start.spans}
    assert 4_000 == known[(Phase.SETUP,)]
    assert 296_000 == known[(Phase.INIT_CONTAINERS,)]


def test_a_restart_is_told_apart_from_the_run_that_lasted():
    crashed = pod(started="14:10:00", ready="14:11:00")
    crashed["status"]["containerStatuses"][0]["restartCount"] = 2
    start = start_from(crashed, [event("14:01:00", "Started", path="spec.containers{engine}")])

    known = {span.phases: span.took_ms for span in start.spans}
    assert 540_000 == known[(Phase.CRASHES,)]
    assert 2 == start.restarts


def test_a_restart_of_which_nobody_saw_the_first_run_has_no_instant_for_it():
    """The container waits now, or its events expired: unknown, not zero."""
    waiting = pod(scheduled="14:00:00")
    waiting["status"]["containerStatuses"][0]["restartCount"] = 3
    expired = pod(scheduled="14:00:00", started="14:10:00")
    expired["status"]["containerStatuses"][0]["restartCount"] = 3

    assert all(Phase.CRASHES not in span.phases for span in start_from(waiting).spans)
    (crashes,) = [s for s in start_from(expired).spans if Phase.CRASHES in s.phases]
    assert len(crashes.phases) > 1


def test_events_of_the_newer_api_are_read_too():
    newer = {
        "reason": "Scheduled",
        "note": "Successfully assigned",
        "regarding": {"kind": "Pod", "namespace": "vllm", "name": LAB_NAME},
        "eventTime": f"{DAY}14:00:02.000000Z",
        "series": {"count": 2, "lastObservedTime": f"{DAY}14:00:03.000000Z"},
    }
    start = start_from({}, [newer, event("14:00:05", "Pulling")])

    assert 3_000 == {span.phases: span.took_ms for span in start.spans}[(Phase.SETUP,)]
    assert concerns(newer, "vllm", LAB_NAME)


def test_an_event_of_another_pod_or_an_earlier_one_of_that_name_is_not_this_ones():
    mine = event("14:00:00", "Scheduled")
    mine["involvedObject"]["uid"] = "u1"

    assert concerns(mine, "vllm", LAB_NAME, "u1")
    assert not concerns(mine, "vllm", LAB_NAME, "u2")
    assert not concerns(mine, "vllm", "other")
    assert not concerns(mine, "llm", LAB_NAME)


def test_fields_of_the_wrong_type_are_absent():
    start = start_from(
        {"metadata": [], "spec": {"containers": "x"}, "status": {"conditions": [3]}},
        [{"reason": 3, "involvedObject": "x", "firstTimestamp": 7}],
    )

    assert () == start.spans
    assert start.took_ms is None
    assert start.begin_ms is None
    assert start.end_ms is None


PROFILE = LogProfile(
    "toy", (1, 2), (2,), ("toyserve",), ("toy version ",),
    (LogMark("Loading", ("load",)), LogMark("Loaded", ("done",), last=True),
     LogMark("Serving", ("up",))),
)  # fmt: skip


def toy(*lines, image="toyserve:v1.5"):
    return read_log([f"{DAY}{line}" for line in lines], image, (PROFILE,))


def test_the_first_line_counts_or_with_last_the_last_before_it_serves():
    """Workers load side by side; a sleeping engine loads again hours later."""
    log = toy(
        "10:00:01Z load a", "10:00:02Z load b", "10:00:05Z done a", "10:00:09Z done b",
        "10:00:10Z up", "18:00:00Z done again",
    )  # fmt: skip

    day = {milestone: ms % 86_400_000 / 1000 for milestone, ms in log.instants}
    assert day == {
        Milestone.LOADING: 36_001,
        Milestone.LOADED: 36_009,
        Milestone.SERVING: 36_010,
    }


def test_lines_without_an_instant_tell_nothing():
    log = read_log(["load", "INFO load"], "toyserve:v1.5", (PROFILE,))

    assert () == log.instants
    assert "no line of the log with an instant tells a phase" == log.why


@pytest.mark.parametrize(
    ("image", "lines", "why"),
    [
        ("toyserve:v1.5", [], "no log was read"),
        ("toyserve:v2.0", ["x"], "no log profile for version 2.0 of toy"),
        ("toyserve@sha256:abc", ["x"], "no log profile for an unnamed version of toy"),
        ("other:v1.5", ["x"], "no log profile knows this engine"),
        ("toyserve:v1.5", ["t toy version 3.1"], "no log profile for version 3.1 of toy"),
    ],
)
def test_it_says_why_the_engines_phases_are_unknown(image, lines, why):
    assert why == read_log(lines, image, (PROFILE,)).why


def test_the_log_is_believed_before_the_tag():
    log = toy("10:00:00Z toy version 1.7.1+cu12", "10:00:01Z load", image="mirror.example/x:latest")

    assert ("toy", "1.7.1+cu12") == (log.engine, log.version)
    assert log.instants


def test_versions_are_compared_as_numbers():
    assert (0, 28) > version_of("v0.9.1")
    assert (0, 28, 0) == version_of("v0.28.0-cu13")
    assert () == version_of("latest")
    assert not PROFILE.covers(())
    assert not PROFILE.covers((2, 0))
    assert PROFILE.covers((1, 2))


def test_a_whole_log_of_vllm_tells_every_phase():
    at = DAY + "15:00:"
    lines = (
        f"{at}05.5Z (APIServer pid=1) INFO [api_server.py:1] vLLM API server version 0.28.0",
        f"{at}10Z (EngineCore pid=9) INFO [core.py:1] Initializing a V1 LLM engine (v0.28.0) with",
        f"{at}14Z (EngineCore pid=9) INFO [gpu_model_runner.py:1] Starting to load model x...",
        f"{at}20Z (EngineCore pid=9) INFO Time spent downloading weights for x: 6 seconds",
        f"{at}24Z (EngineCore pid=9) INFO Loading weights took 3.9 seconds",
        f"{at}25Z (EngineCore pid=9) INFO Model loading took 14.2 GiB memory and 11 seconds",
        f"{at}35Z (EngineCore pid=9) INFO torch.compile took 9.1 s in total",
        f"{at}45Z (EngineCore pid=9) INFO Graph capturing finished in 8 secs, took 0.6 GiB",
        f"{at}50Z (APIServer pid=1) INFO:     Application startup complete.",
    )
    start = start_from(pod(started="15:00:00", ready="15:00:52"), (), lines, shipped_log_profiles())

    assert {
        Phase.PROCESS: 5_500,
        Phase.CONFIG: 4_500,
        Phase.DEVICE: 4_000,
        Phase.DOWNLOAD: 6_000,
        Phase.WEIGHTS: 5_000,
        Phase.COMPILE: 10_000,
        Phase.GRAPHS: 10_000,
        Phase.ENGINE_INIT: 5_000,
        Phase.PROBE: 2_000,
    } == {span.phases[0]: span.took_ms for span in start.spans[1:]}

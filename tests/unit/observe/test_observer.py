"""Caches, own writes and their unknown outcomes, without threads."""

import gc
import threading
import tracemalloc
from typing import Any

import pytest

from stoker.model.refs import ObjectRef
from stoker.observe import Observer, WatchKey
from stoker.observe.keys import CRDS, HPAS, NAMESPACES, NODE_STATES, NODES, PODS
from stoker.observe.reflector import RESTORED_SECONDS
from unit.observe.observe_builders import (
    FLEET,
    LLAMA,
    ScriptedCluster,
    StillClock,
    broken,
    deployment,
    event,
    forbidden,
    manifest,
    marked,
    observer_of,
    pod,
    silence,
)

DEPLOYMENTS = WatchKey("apps", "Deployment", "v1", "llm")
D1 = ObjectRef("apps", "Deployment", "llm", "d1")


def watched(*objects, keys=(DEPLOYMENTS,), **more):
    cluster = ScriptedCluster(*objects)
    observer = observer_of(cluster, **more)
    observer.ensure(keys)
    return observer, cluster


def replicas(observer):
    found = observer.live().get(D1)
    return None if found is None else found.body["spec"]["replicas"]


def test_what_is_new_is_listed_once_and_at_once():
    observer, cluster = watched(deployment("d1"))

    observer.ensure([DEPLOYMENTS, NODES])

    assert [call[1] for call in cluster.calls] == ["Deployment", "Node"]
    assert replicas(observer) == 1


def test_without_threads_a_failed_list_is_tried_again_at_the_next_chance():
    cluster = ScriptedCluster(deployment("d1"))
    cluster.failing["Deployment"] = broken()
    observer = observer_of(cluster)
    observer.ensure([DEPLOYMENTS])
    before = observer.live().known(D1)
    cluster.failing.clear()
    observer.ensure([DEPLOYMENTS])

    assert before is False
    assert observer.live().known(D1)


def test_refresh_lists_everything_again():
    observer, cluster = watched(deployment("d1"))
    cluster.add(deployment("d1", replicas=5))

    observer.refresh()

    assert replicas(observer) == 5


def test_refresh_leaves_out_what_its_caller_knows_to_be_current():
    observer, cluster = watched(deployment("d1"))
    cluster.add(deployment("d1", replicas=5))

    observer.refresh(lambda key: key == DEPLOYMENTS)

    assert replicas(observer) != 5


def test_refresh_lists_what_could_not_be_listed_whoever_calls_it_current():
    """Unknown is not unchanged."""
    observer, cluster = watched(deployment("d1"))
    cluster.failing["Deployment"] = broken()
    observer.refresh()
    cluster.failing.clear()
    cluster.add(deployment("d1", replicas=5))

    observer.refresh(lambda _: True)

    assert replicas(observer) == 5


def test_an_answered_write_is_seen_before_the_next_decision():
    """a.5 W7: no second scale, wake or drain because the watch lags behind our own write."""
    observer, cluster = watched(deployment("d1"))

    observer.fold(cluster.add(deployment("d1", replicas=3)))

    assert replicas(observer) == 3


def test_an_older_answer_never_replaces_a_newer_one():
    observer, cluster = watched(deployment("d1"))
    old = cluster.add(deployment("d1", replicas=2))
    new = cluster.add(deployment("d1", replicas=3))

    observer.fold(new)
    observer.fold(old)

    assert replicas(observer) == 3


def test_a_kind_that_is_not_watched_is_not_invented_by_a_write():
    observer, cluster = watched(keys=[NODES])

    observer.fold(cluster.add(deployment("d1")))

    assert observer.live().get(D1) is None
    assert not observer.live().known(D1)


def test_a_write_without_answer_makes_its_object_unknown_until_it_is_read():
    """reliability-security c.2 rows 19 and 20."""
    observer, cluster = watched(deployment("d1"))
    observer.mark_unknown(D1)
    before = observer.live()
    cluster.add(deployment("d1", replicas=4))

    observer.settle()

    assert (before.known(D1), "no answer" in before.why_unknown(D1)) == (False, True)
    assert observer.live().known(D1)
    assert replicas(observer) == 4


@pytest.mark.parametrize("error", [silence(), broken(), forbidden()], ids=lambda e: e.code)
def test_what_cannot_be_read_stays_unknown(error):
    observer, cluster = watched(deployment("d1"))
    observer.mark_unknown(D1)
    cluster.failing["get Deployment"] = error

    observer.settle()

    assert not observer.live().known(D1)


def test_a_server_that_is_gone_is_asked_once_and_not_for_every_object():
    observer, cluster = watched(deployment("d1"), deployment("d2"))
    for name in ("d1", "d2"):
        observer.mark_unknown(ObjectRef("apps", "Deployment", "llm", name))
    cluster.failing["get Deployment"] = silence()

    observer.settle()

    assert len([call for call in cluster.calls if call[0] == "get"]) == 1


def test_a_create_without_answer_that_did_not_happen_is_absent():
    observer, _ = watched()
    observer.mark_unknown(D1)

    observer.settle()

    assert observer.live().known(D1)
    assert observer.live().get(D1) is None


def test_a_deleted_object_is_unknown_until_it_is_seen_to_be_gone():
    """Finalizers and grace periods: an answered delete is not yet a free name."""
    raw = deployment("d1")
    observer, cluster = watched(raw)

    observer.fold_deleted(D1, "uid-d1")
    between = observer.live().known(D1)
    cluster.remove(raw)
    observer.settle()

    assert between is False
    assert observer.live().known(D1)
    assert observer.live().get(D1) is None


def test_a_deleted_object_that_lingers_is_shown_as_it_is():
    observer, cluster = watched(deployment("d1"))
    observer.fold_deleted(D1, "uid-d1")
    cluster.add(deployment("d1", deletionTimestamp="2026-01-01T00:00:00Z"))

    observer.settle()

    found = observer.live().get(D1)
    assert found is not None
    assert "deletionTimestamp" in found.body["metadata"]


def test_the_watch_settles_a_delete_without_another_read():
    raw = deployment("d1")
    observer, cluster = watched(raw)
    observer.fold_deleted(D1, "uid-d1")
    removed = cluster.remove(raw)
    cluster.watches["Deployment"].append([event("DELETED", removed, cluster.revision)])

    observer._reflectors[DEPLOYMENTS].step()
    observer.settle()

    assert observer.live().known(D1)
    assert [call for call in cluster.calls if call[0] == "get"] == []


def test_a_delete_of_a_namesake_that_is_long_gone_changes_nothing():
    observer, _ = watched(deployment("d1"))

    observer.fold_deleted(D1, "another uid")

    assert observer.live().known(D1)


def test_an_object_folded_in_another_version_is_read_in_ours():
    observer, cluster = watched(keys=[WatchKey("autoscaling", "HorizontalPodAutoscaler", "v2")])
    ref = ObjectRef("autoscaling", "HorizontalPodAutoscaler", "llm", "h", "v2")
    answer = cluster.add(manifest("autoscaling/v1", "HorizontalPodAutoscaler", "h", "llm"))

    observer.fold(answer)

    assert not observer.live().known(ref)


def test_a_changed_definition_makes_discovery_read_again():
    observer, cluster = watched(keys=[CRDS, NODE_STATES])
    before = observer.live().why_unknown(NODE_STATES.ref("", "n1"))
    crd = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodestates.stoker.dev")
    cluster.add(crd)
    cluster.missing_kinds.clear()

    observer.refresh()
    observer._reflectors[NODE_STATES].step()

    assert before == "no such kind"
    assert cluster.forgotten > 0
    assert observer.live().known(NODE_STATES.ref("", "n1"))


def test_a_restored_cluster_is_told_once_even_without_threads():
    """reliability-security c.2 row 30."""
    observer, cluster = watched(deployment("d1"), deployment("d2"))
    cluster.remove(deployment("d2"))
    cluster.revision = 50

    observer.refresh()
    between = observer.history_went_back()
    observer._clock.pass_seconds(RESTORED_SECONDS)
    observer.refresh()

    assert not between
    assert replicas(observer) == 1
    assert [observer.history_went_back(), observer.history_went_back()] == [True, False]


def test_status_names_every_cache_with_what_is_wrong():
    cluster = ScriptedCluster(deployment("d1"))
    cluster.failing["Node"] = forbidden()
    observer = observer_of(cluster)
    observer.ensure([DEPLOYMENTS, NODES])

    deployments, nodes = observer.status()

    assert (deployments.label, deployments.why_unknown, deployments.objects) == (
        "deployments/llm",
        "",
        1,
    )
    assert nodes.why_unknown.startswith("forbidden")
    assert not nodes.watching


class Parked(ScriptedCluster):
    """Its watches wait until they are let go."""

    def __init__(self, *objects):
        super().__init__(*objects)
        self.go = threading.Event()

    def watch(self, *args, **more):
        yield from super().watch(*args, **more)
        self.go.wait(10)


def test_threads_follow_the_cluster_and_tell_what_matters():
    cluster = Parked(deployment("d1"))
    told, arrived = [], threading.Event()
    changed = {**deployment("d1", replicas=7)}
    cluster.watches["Deployment"].append([event("MODIFIED", changed, 500)])

    def on_event(found):
        told.append(found)
        arrived.set()

    observer = observer_of(cluster, on_event=on_event)
    observer.ensure([DEPLOYMENTS])
    observer.start()

    assert arrived.wait(5)
    assert (told[0].ref, told[0].unit) == (D1, LLAMA)
    assert replicas(observer) == 7
    assert observer.status()[0].watching
    cluster.go.set()
    observer.stop(5)
    assert not observer.status()[0].watching


def test_a_bug_in_a_watch_makes_its_kind_unknown_and_the_thread_goes_on():
    """A dead watch never keeps its last state as if it were current."""
    cluster: Any = Parked(deployment("d1"))
    cluster.watches["Deployment"].append([RuntimeError("bug")])
    unknown, known = threading.Event(), threading.Event()
    why = []

    def on_event(_):
        why.append(observer.live().why_unknown(D1))
        (unknown if why[-1] else known).set()

    observer = Observer(
        cluster, StillClock(), fleet_id=FLEET, on_event=on_event, jitter=lambda: 0.0
    )
    observer.ensure([DEPLOYMENTS])
    observer.start()

    assert unknown.wait(5)
    assert known.wait(5)
    assert "crashed" in why[0]
    cluster.go.set()
    observer.stop(5)


def test_what_is_ensured_later_gets_its_thread_too():
    cluster = Parked(deployment("d1"))
    observer = observer_of(cluster)
    observer.start()

    observer.ensure([DEPLOYMENTS])

    assert observer.status()[0].watching
    cluster.go.set()
    observer.stop(5)


def test_four_thousand_objects_of_ours_cost_less_than_forty_megabytes():
    """A dict of each would cost about ten times its JSON."""
    cluster = ScriptedCluster()
    body = {f"key-{number}": "x" * 60 for number in range(40)}

    def items():
        for number in range(4000):
            name = f"object-{number:05}"
            raw = manifest("v1", "ConfigMap", name, "llm", metadata={"uid": name}, data=dict(body))
            yield marked(
                {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(1000 + number)}}
            )

    observer = observer_of(cluster)
    maps = WatchKey("", "ConfigMap", "v1")
    observer.ensure([maps])
    gc.collect()
    tracemalloc.start()
    try:
        for raw in items():
            observer.fold(raw)
        observer.live()
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    count = len(observer.live().owned(FLEET))
    one = len(observer.kinds()[0].entries["llm", "object-00007"].body)
    assert count == 4000
    assert one > 2900
    assert size < 40_000_000


def test_pods_are_seen_from_all_namespaces_and_definitions_too():
    observer, _ = watched(pod(), keys=[PODS, NAMESPACES, CRDS, HPAS])

    assert observer.live().known(PODS.ref("llm", "p1"))

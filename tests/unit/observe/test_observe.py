"""The stage as reconcile calls it."""

import pytest

from stoker.model.refs import UnitRef
from stoker.objects import names
from stoker.observe import observe
from stoker.observe.reflector import RESTORED_SECONDS, WENT_BACK
from unit.observe.observe_builders import (
    LLAMA,
    NOW,
    ScriptedCluster,
    broken,
    deployment,
    desired,
    forbidden,
    manifest,
    node,
    observer_of,
    pod,
    service_unit,
    silence,
)

OURS = {"labels": {names.SERVICE_LABEL: "llama", names.PLACEMENT_LABEL: "x-1"}}


def cluster_of(*more):
    return ScriptedCluster(node(), pod("ours", metadata=OURS), pod("foreign"), deployment(), *more)


def look(cluster, *units, **more):
    return observe(observer_of(cluster, **more), desired(*units), NOW)


def test_one_snapshot_shows_nodes_services_and_pods():
    snapshot = look(cluster_of()).snapshot

    (found,) = snapshot.nodes
    (service,) = snapshot.services
    assert (snapshot.taken_at_ms, snapshot.cluster_uid) == (NOW, "uid-of-kube-system")
    assert found.used.device("nvidia.com/gpu") == 2
    assert [p.name for p in service.placements[0].pods] == ["ours"]
    assert snapshot.unknown == ()


def test_kinds_that_are_not_installed_are_no_gap():
    """No KEDA and no NodeState definition: nothing scales by it, no warmth is reported."""
    assert look(cluster_of()).snapshot.unknown == ()


@pytest.mark.parametrize("error", [forbidden(), broken(), silence()], ids=lambda e: e.code)
@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("Node", "nodes"),
        ("Pod", "pods"),
        ("Deployment", "deployments/llm"),
        ("HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        ("Namespace", "namespaces"),
    ],
)
def test_every_gap_is_named_and_nothing_is_raised(kind, label, error):
    cluster = cluster_of()
    cluster.failing[kind] = error

    snapshot = look(cluster).snapshot

    assert [name for name, _ in snapshot.unknown] == [label]


def test_forbidden_nodes_are_absent_and_named():
    """cases.md row 123: neither unlimited nor zero."""
    cluster = cluster_of()
    cluster.failing["Node"] = forbidden()

    snapshot = look(cluster).snapshot

    assert snapshot.nodes == ()
    assert dict(snapshot.unknown)["nodes"].startswith("forbidden")


def test_reports_that_may_not_be_read_are_named_and_the_nodes_stay():
    """Only what reporters say is unknown; taints tell notices as before."""
    cluster = cluster_of()
    cluster.missing_kinds.discard(("stoker.dev", "NodeState"))
    cluster.failing["NodeState"] = forbidden("nodestates")

    snapshot = look(cluster).snapshot

    assert [found.name for found in snapshot.nodes] == ["n1"]
    assert dict(snapshot.unknown)["nodestates"].startswith("forbidden")


def test_without_pods_no_gpu_is_taken_for_free():
    """a.5 W6."""
    cluster = cluster_of()
    cluster.failing["Pod"] = forbidden()

    snapshot = look(cluster).snapshot

    assert "pods could not be read" in snapshot.nodes[0].gpu_unknown
    assert [place.name for place in snapshot.services[0].placements] == ["d1"]


def test_a_server_that_does_not_say_who_it_is_is_a_gap():
    cluster = cluster_of()
    cluster.failing["server"] = silence()

    snapshot = look(cluster).snapshot

    assert (snapshot.cluster_uid, "cluster" in dict(snapshot.unknown)) == ("", True)


def test_namespaces_of_all_units_are_looked_at():
    other = UnitRef("ModelService", "other", "mistral")
    cluster = cluster_of(deployment("m", namespace="other", unit=other))

    snapshot = look(cluster, service_unit(), service_unit(other)).snapshot

    assert [service.ref for service in snapshot.services] == [LLAMA, other]


def test_an_object_whose_fate_is_unknown_is_read_again_first():
    cluster = cluster_of()
    observer = observer_of(cluster)
    observe(observer, desired(), NOW)
    ref = next(ref for ref in cluster.objects if ref.kind == "Deployment")
    observer.mark_unknown(ref)
    cluster.add(deployment(replicas=6))

    seen = observe(observer, desired(), NOW)

    assert seen.snapshot.services[0].placements[0].replicas == 6
    assert seen.live.known(ref)


def test_an_autoscaler_owns_the_count_and_unreadable_ones_may():
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d1"}
    hpa = manifest(
        "autoscaling/v2", "HorizontalPodAutoscaler", "h", "llm", spec={"scaleTargetRef": target}
    )
    blind = cluster_of(hpa)
    blind.failing["HorizontalPodAutoscaler"] = forbidden()

    def owner(cluster):
        return look(cluster).snapshot.services[0].placements[0].externally_scaled

    assert owner(cluster_of(hpa)) == "HorizontalPodAutoscaler/h"
    assert owner(cluster_of()) == ""
    assert owner(blind).startswith("unknown")


def test_a_restored_cluster_is_a_gap_for_one_pass():
    """reliability-security c.2 row 30: nothing is pruned on the first look at old data."""
    cluster = cluster_of()
    observer = observer_of(cluster)
    observe(observer, desired(), NOW)
    cluster.revision = 3
    observer.refresh()
    doubt = observe(observer, desired(), NOW).snapshot
    observer._clock.pass_seconds(RESTORED_SECONDS)

    first = observe(observer, desired(), NOW).snapshot
    second = observe(observer, desired(), NOW).snapshot

    assert {why for _, why in doubt.unknown} == {WENT_BACK}
    assert [name for name, _ in first.unknown] == ["history"]
    assert second.unknown == ()


def test_a_notice_keeps_its_first_instant_over_passes():
    taint = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
    observer = observer_of(ScriptedCluster(node(taints=[taint])))

    observe(observer, desired(), NOW)
    later = observe(observer, desired(), NOW + 60_000).snapshot

    assert later.nodes[0].notice is not None
    assert later.nodes[0].notice.deadline_ms == NOW + 120_000


def test_pods_watched_twice_are_counted_once():
    """A Bundle with a Pod makes its namespace a second cache of pods."""
    cluster = cluster_of()
    observer = observer_of(cluster)
    observe(observer, desired(), NOW)
    observer.ensure([type(key)("", "Pod", "v1", "llm") for key in list(observer._reflectors)[:1]])

    snapshot = observe(observer, desired(), NOW).snapshot

    assert snapshot.nodes[0].used.pods == 2


def test_the_same_cluster_gives_the_same_snapshot():
    assert look(cluster_of()).snapshot == look(cluster_of()).snapshot

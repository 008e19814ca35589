import pytest

from stoker.errors import Unreachable
from stoker.model.refs import ObjectRef
from stoker.observe import WatchKey
from stoker.observe.keys import HPAS, NAMESPACES, SCALED_OBJECTS
from unit.observe.observe_builders import (
    FLEET,
    ScriptedCluster,
    broken,
    deployment,
    forbidden,
    manifest,
    marked,
    observer_of,
    silence,
)

MAPS = WatchKey("", "ConfigMap", "v1")
SECRETS = WatchKey("", "Secret", "v1", "llm")
DEPLOYMENTS = WatchKey("apps", "Deployment", "v1")


def config(name="a", **more):
    return manifest("v1", "ConfigMap", name, "llm", data={"k": "v"}, **more)


def view(*objects, keys=(MAPS,), failing=None):
    cluster = ScriptedCluster(*objects)
    cluster.failing = dict(failing or {})
    observer = observer_of(cluster)
    observer.ensure(keys)
    return observer.live(), cluster


def ref(name="a", kind="ConfigMap", group="", version="v1"):
    return ObjectRef(group, kind, "llm", name, version)


def test_our_object_is_given_whole_and_parsed():
    live, _ = view(marked(config()))

    found = live.get(ref())

    assert found is not None
    assert found.body["data"] == {"k": "v"}
    assert (found.uid, found.resource_version) == ("uid-a", "101")
    assert found.owner.startswith(FLEET)


def test_a_body_can_be_changed_by_a_reader_without_harm():
    live, _ = view(marked(config()))
    first = live.get(ref())
    assert first is not None

    first.body["data"]["k"] = "changed"

    second = live.get(ref())
    assert second is not None
    assert second.body["data"]["k"] == "v"


def test_absent_is_known_only_where_the_kind_was_read():
    live, _ = view(config("b"))

    assert live.known(ref())
    assert live.get(ref()) is None
    assert not live.known(ref(kind="Service"))
    assert live.why_unknown(ref(kind="Service")) == "not watched"


@pytest.mark.parametrize("error", [forbidden(), broken(), silence()], ids=lambda e: e.code)
def test_a_kind_that_could_not_be_read_hides_nothing_and_shows_nothing(error):
    live, _ = view(marked(config()), failing={"ConfigMap": error})

    assert not live.known(ref())
    assert live.owned(FLEET) == ()


def test_owned_lists_what_marks_prove_sorted_and_once():
    """cases.md row 71: another fleet's marks and copied ones are not ours."""
    copied = marked(config("b"))
    copied["metadata"]["name"] = "copy"
    live, _ = view(
        marked(config("z")), marked(config("a")), copied, marked(config("x"), fleet="ffffffff"),
        deployment("d1"),
        keys=[MAPS, WatchKey("", "ConfigMap", "v1", "llm"), DEPLOYMENTS],
    )  # fmt: skip

    assert [found.ref.name for found in live.owned(FLEET)] == ["a", "z", "d1"]


def test_a_secret_of_ours_is_read_when_it_is_asked_for():
    raw = marked(manifest("v1", "Secret", "s", "llm", data={"k": "Y2FuYXJ5"}))
    live, cluster = view(raw, keys=[SECRETS])

    found = live.get(ref("s", "Secret"))

    assert found is not None
    assert found.body["data"] == {"k": "Y2FuYXJ5"}
    assert ("get", "Secret", "s") in cluster.calls
    assert "data" not in live.owned(FLEET)[0].body


def test_a_secret_that_cannot_be_read_is_an_error_and_not_absent():
    raw = marked(manifest("v1", "Secret", "s", "llm"))
    live, cluster = view(raw, keys=[SECRETS])
    cluster.failing["get Secret"] = silence()

    with pytest.raises(Unreachable):
        live.get(ref("s", "Secret"))


def test_a_secret_deleted_meanwhile_is_absent():
    raw = marked(manifest("v1", "Secret", "s", "llm"))
    live, cluster = view(raw, keys=[SECRETS])
    cluster.remove(raw)

    assert live.get(ref("s", "Secret")) is None


def test_secrets_of_strangers_are_never_read():
    live, cluster = view(manifest("v1", "Secret", "s", "llm", data={"k": "x"}), keys=[SECRETS])

    found = live.get(ref("s", "Secret"))

    assert found is not None
    assert "data" not in found.body
    assert ("get", "Secret", "s") not in cluster.calls


def test_a_cache_in_the_version_asked_for_is_preferred_to_another():
    v1 = WatchKey("autoscaling", "HorizontalPodAutoscaler", "v1")
    live, _ = view(
        manifest("autoscaling/v2", "HorizontalPodAutoscaler", "a", "llm"), keys=[v1, HPAS]
    )
    kind = "HorizontalPodAutoscaler"

    for version in ("v1", "v2"):
        found = live.get(ref("a", kind, "autoscaling", version))
        assert found is not None
        assert found.ref.version == version


def test_a_cache_that_is_known_is_preferred_to_one_that_is_not():
    cluster = ScriptedCluster(marked(config()))
    observer = observer_of(cluster)
    observer.ensure([WatchKey("", "ConfigMap", "v1", "llm")])
    cluster.failing["ConfigMap"] = forbidden()
    observer.ensure([MAPS])

    assert observer.live().known(ref())


@pytest.mark.parametrize(
    ("objects", "failing", "phase"),
    [
        ([manifest("v1", "Namespace", "llm", status={"phase": "Active"})], {}, "Active"),
        ([manifest("v1", "Namespace", "llm", status={"phase": "Terminating"})], {}, "Terminating"),
        ([], {}, ""),
        ([manifest("v1", "Namespace", "llm")], {"Namespace": forbidden()}, "Unknown"),
    ],
    ids=["active", "terminating", "absent", "unknown"],
)
def test_a_namespace_has_a_phase_is_absent_or_unknown(objects, failing, phase):
    live, _ = view(*objects, keys=[NAMESPACES], failing=failing)

    assert live.namespace_phase("llm") == phase


def test_namespaces_that_nobody_watches_are_unknown():
    assert view()[0].namespace_phase("llm") == "Unknown"


def test_whether_a_kind_is_served_is_asked_once_and_may_be_unknown():
    live, cluster = view()
    served = live.has_kind(ref())
    missing = live.has_kind(ref(kind="ScaledObject", group="keda.sh", version="v1alpha1"))
    cluster.failing["discovery"] = broken()
    again = live.has_kind(ref())

    assert (served, missing, again) == (True, False, True)
    assert live.has_kind(ref(kind="Unasked", group="x")) is None


def test_scope_is_known_for_builtin_kinds_and_asked_for_others():
    live, cluster = view()

    assert not live.is_namespaced(ref(kind="Node"))
    assert live.is_namespaced(ref())
    assert not live.is_namespaced(ref(kind="Gadget", group="example.com"))
    cluster.failing["discovery"] = broken()
    assert live.is_namespaced(ref(kind="Gadget", group="example.com"))


AUTOSCALERS = (HPAS, SCALED_OBJECTS)


def hpa():
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return manifest(
        "autoscaling/v2", "HorizontalPodAutoscaler", "h", "llm", spec={"scaleTargetRef": target}
    )


def test_the_live_view_names_who_scales_a_workload():
    """cases.md row 59. KEDA is not installed here: a kind that is not served scales nothing."""
    live, _ = view(hpa(), keys=AUTOSCALERS)

    assert live.scaler(ref("web", "Deployment", "apps")) == "HorizontalPodAutoscaler/h"
    assert live.scaler(ref("api", "Deployment", "apps")) == ""


@pytest.mark.parametrize("keys", [AUTOSCALERS, (SCALED_OBJECTS,)], ids=["forbidden", "not watched"])
def test_autoscalers_that_could_not_be_read_are_not_no_autoscalers(keys):
    live, _ = view(keys=keys, failing={"HorizontalPodAutoscaler": forbidden()})

    assert live.scaler(ref("web", "Deployment", "apps")) is None


def test_a_status_that_changes_leaves_the_content_version_as_it_is():
    """What was compared once need not be compared again after every status write."""
    before = deployment("a")
    measured = {**before, "status": {"replicas": 1}}
    scaled = {**measured, "spec": {**before["spec"], "replicas": 7}}

    found = {}
    for older, raw in enumerate((before, measured, scaled)):
        live, _ = view(*(config(f"older-{n}") for n in range(older)), raw, keys=(DEPLOYMENTS,))
        found[older] = live.get(ref(kind="Deployment", group="apps"))

    assert 3 == len({item.resource_version for item in found.values()})
    assert found[0].content_version == found[1].content_version
    assert found[1].content_version != found[2].content_version


def test_an_object_on_its_way_out_says_so():
    live, _ = view(
        marked(config("stays")),
        marked(config("goes", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})),
    )

    leaving = {
        name: found.is_leaving for name in ("stays", "goes") if (found := live.get(ref(name)))
    }
    assert {"stays": False, "goes": True} == leaving

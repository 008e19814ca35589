"""Stage check: every fault is found, and stops its own unit only."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from stoker.check import CheckMemo, check
from stoker.errors import Finding, Severity, SourceLocation
from stoker.model.cache import Cache, CacheType
from stoker.model.codec import digest
from stoker.model.fleet import Bundle, Desired, Drain, Fleet, FleetMode, ModelService, Unit
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.plan import Retirement, RetireStage
from stoker.model.refs import ObjectRef, SourceRevision, UnitRef, ref_from_manifest


def manifest(body, *, line=1, frozen=False):
    return Manifest(
        ref_from_manifest(body), body, digest(body), SourceLocation("b.yaml", line, 1), frozen
    )


def config(name="a", namespace="llm", **fields):
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def bundle(name, *bodies):
    unit = Unit(
        UnitRef("Bundle", "llm", name), Bundle(), SourceLocation(f"{name}.yaml", 1, 1), name
    )
    manifests = tuple(manifest(body, line=number) for number, body in enumerate(bodies, 1))
    return unit, ManifestSet(unit.ref, manifests)


DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "llm"},
    "spec": {
        "template": {
            "spec": {
                "terminationGracePeriodSeconds": 680,
                "containers": [
                    {
                        "name": "engine",
                        "resources": {
                            "requests": {"cpu": "1", "nvidia.com/gpu": "1"},
                            "limits": {"nvidia.com/gpu": "1"},
                        },
                    }
                ],
            }
        }
    },
}


def service(change=None, *, twice=False, **spec):
    fields: dict[str, Any] = {
        "model_uri": "hf://a/b",
        "model_revision": "1",
        "served_names": ("a",),
        "engine_image": "i",
        "gpu_count": 1,
    }
    unit = Unit(
        UnitRef("ModelService", "llm", "web"),
        ModelService(**(fields | spec)),
        SourceLocation("web.yaml", 1, 1),
        "web",
        lines=(("spec.podTemplate", SourceLocation("web.yaml", 20, 3)),),
    )
    body = copy.deepcopy(DEPLOYMENT)
    if change is not None:
        change(body["spec"]["template"]["spec"])
    manifests = [manifest(body, frozen=True)]
    if twice:
        other = copy.deepcopy(body)
        other["metadata"]["name"] = "web-2"
        manifests.append(manifest(other, frozen=True))
    return unit, ManifestSet(unit.ref, tuple(manifests))


def checked(*pairs, memo=None):
    fleet = Fleet("f", "uid", FleetMode.CORRECT, SourceLocation())
    desired = Desired(SourceRevision("main", "0" * 40), fleet, tuple(unit for unit, _ in pairs))
    return check(desired, tuple(item for _, item in pairs), memo)


def codes(item):
    return [finding.code for finding in item.findings]


def test_a_good_set_is_given_back_as_it_is():
    pairs = [bundle("a", config()), service()]

    assert [pairs[0][1], pairs[1][1]] == list(checked(*pairs))
    assert all(a is b for (_, a), b in zip(pairs, checked(*pairs), strict=True))


def test_an_error_empties_its_own_set_only():
    bad, good = checked(bundle("bad", config(name="A_b")), bundle("good", config()))

    assert (False, ()) == (bad.complete, bad.manifests)
    assert ["invalid-name"] == codes(bad)
    assert "Bundle/llm/bad" == bad.findings[0].unit
    assert good.complete


def test_a_stopped_unit_keeps_what_stands_and_retires_nothing():
    """reliability-security c.2 row 32."""
    unit, item = bundle("a", config(name="A_b"))
    kept = ObjectRef("apps", "Deployment", "llm", "old")
    leaving = Retirement("old", "uid", RetireStage.DELETE, "moved")
    (found,) = checked((unit, ManifestSet(item.unit, item.manifests, (kept,), (leaving,))))

    assert ((kept,), ()) == (found.kept, found.retirements)


def test_findings_of_render_stay():
    finding = Finding(SourceLocation("a.yaml"), "template-error", "x", unit="Bundle/llm/a")
    unit, item = bundle("a")
    (found,) = checked((unit, ManifestSet(item.unit, complete=False, findings=(finding,))))

    assert ((finding,), False) == (found.findings, found.complete)


def test_one_object_in_two_units_stops_both_and_names_both_places():
    one, two, other = checked(
        bundle("one", config(), config("b")), bundle("two", config()), bundle("other", config("c"))
    )

    assert [["object-defined-twice"], ["object-defined-twice"], []] == [
        codes(i) for i in (one, two, other)
    ]
    assert "Bundle/llm/two" in one.findings[0].message
    assert "Bundle/llm/one" in two.findings[0].message
    assert (False, False, True) == (one.complete, two.complete, other.complete)


def test_one_object_twice_in_one_unit_stops_it():
    (found,) = checked(bundle("one", config(), config()))

    assert ["b.yaml:1:1", "b.yaml:2:1"] == [str(finding.location) for finding in found.findings]


def test_two_versions_of_a_kind_are_one_object():
    gate = {"apiVersion": "x.io/v1", "kind": "Gate", "metadata": {"name": "a", "namespace": "llm"}}
    one, two = checked(bundle("one", gate), bundle("two", {**gate, "apiVersion": "x.io/v1beta1"}))

    assert (False, False) == (one.complete, two.complete)


def test_the_same_name_in_another_namespace_is_another_object():
    assert all(
        item.complete for item in checked(bundle("a", config()), bundle("b", config(namespace="x")))
    )


def kind(api_version, kind_name, name, namespace="llm"):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind_name, "metadata": metadata}


@pytest.mark.parametrize(
    "body",
    [
        config("a.b-c"),
        config("a" * 253),
        kind("v1", "Service", "a" * 63),
        kind("v1", "Namespace", "a-1", ""),
        kind("rbac.authorization.k8s.io/v1", "ClusterRole", "system:A_b", ""),
        kind("example.com/v1", "Thing", "Upper_Case"),
    ],
    ids=["dots", "253", "service", "namespace", "role", "custom"],
)
def test_names_within_the_limits_pass(body):
    assert checked(bundle("a", body))[0].complete


@pytest.mark.parametrize(
    "body",
    [
        config("a" * 254),
        config("Upper"),
        config("a_b"),
        config("-a"),
        config("a", namespace="b" * 64),
        config("a", namespace="a.b"),
        kind("v1", "Service", "a" * 64),
        kind("v1", "Service", "1a"),
        kind("v1", "Service", "a.b"),
        kind("v1", "Namespace", "a.b", ""),
        kind("example.com/v1", "Thing", "a/b"),
        kind("rbac.authorization.k8s.io/v1", "ClusterRole", "..", ""),
    ],
)
def test_names_beyond_the_limits_are_refused(body):
    """reliability-security c.2 row 33."""
    assert ["invalid-name"] == codes(checked(bundle("a", body))[0])


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({"a": True}, "boolean"),
        ({"a": 1}, "number"),
        ({"a": None}, "null"),
        ({"a": "x" * 64}, "64 characters"),
        ({"a": "-x"}, "something other"),
        ({"a": "x y"}, "something other"),
        ({"a b": "x"}, "the key"),
        ({"x" * 64: "x"}, "the key"),
        ({"Up.er/a": "x"}, "DNS"),
        ({"/a": "x"}, "DNS"),
        ({"a/b/c": "x"}, "DNS"),
    ],
)
def test_labels_beyond_the_limits_are_refused(labels, problem):
    """reliability-security c.2 row 33."""
    (found,) = checked(bundle("a", config(metadata={"labels": labels})))

    assert ["invalid-label"] == codes(found)
    assert problem in found.findings[0].message


def test_labels_and_annotations_within_the_limits_pass():
    metadata = {
        "labels": {"a": "", "x.io/B_1.c": "A-b_c.9", "y": "x" * 63},
        "annotations": {"x.io/y": "any text\n{}", "Up.per/z": "1"},
    }

    assert checked(bundle("a", config(metadata=metadata)))[0].complete


def test_labels_of_pod_templates_count_too():
    body = copy.deepcopy(DEPLOYMENT)
    body["spec"]["template"]["metadata"] = {"labels": {"v": 1.5}}
    (found,) = checked(bundle("a", body))

    assert "spec.template.metadata.labels[v]" == found.findings[0].field


@pytest.mark.parametrize(
    "annotations",
    [{"a": 1}, {"a b": "x"}, {"a": "x" * (256 * 1024)}],
    ids=["number", "key", "size"],
)
def test_annotations_beyond_the_limits_are_refused(annotations):
    """reliability-security c.2 row 33."""
    (found,) = checked(bundle("a", config(metadata={"annotations": annotations})))

    assert ["invalid-annotation"] == codes(found)


def test_an_object_over_a_mebibyte_is_refused():
    """reliability-security c.2 row 32."""
    (found,) = checked(bundle("a", config(data={"k": "x" * 2**20})))

    assert ["object-too-large"] == codes(found)


def test_a_unit_over_its_limit_is_refused():
    bodies = [config(f"c{number}", data={"k": "x" * 1_000_000}) for number in range(34)]

    assert ["unit-too-large"] == codes(checked(bundle("a", *bodies))[0])


@pytest.mark.parametrize(
    ("field", "warned"), [("data", True), ("stringData", True), ("type", False)]
)
def test_a_secret_with_values_is_a_warning(field, warned):
    secret = kind("v1", "Secret", "s") | {field: {"k": "aGVsbG8="} if warned else "Opaque"}
    (found,) = checked(bundle("a", secret))

    assert found.complete
    assert [Severity.WARNING] * warned == [finding.severity for finding in found.findings]
    assert "aGVsbG8" not in str(found.findings)


def test_a_drain_that_fits_the_grace_period_exactly_passes():
    """15 + 600 + 60 s of drain in 675 s of grace."""
    pair = service(lambda pod: pod.update(terminationGracePeriodSeconds=675))

    assert checked(pair)[0].complete


@pytest.mark.parametrize(
    ("change", "drain"),
    [
        (lambda pod: pod.update(terminationGracePeriodSeconds=674), Drain()),
        (lambda pod: pod.pop("terminationGracePeriodSeconds"), Drain(10_000, 10_000, 10_001)),
        (lambda pod: pod.update(terminationGracePeriodSeconds=None), Drain()),
        (lambda pod: pod.update(terminationGracePeriodSeconds="700"), Drain()),
        (lambda pod: pod.update(terminationGracePeriodSeconds=0), Drain(0, 0, 0)),
        (lambda pod: pod.update(terminationGracePeriodSeconds=-1), Drain(0, 0, 0)),
    ],
    ids=["a second short", "default of 30 s", "null", "text", "none at all", "negative"],
)
def test_a_drain_that_the_pod_does_not_live_to_see_is_refused(change, drain):
    """semantics.md 1.2: refuse when endpointSync + drain + shutdown exceed the grace period."""
    (found,) = checked(service(change, drain=drain))

    assert ["drain-exceeds-grace"] == codes(found)
    assert "web.yaml:20:3" == str(found.findings[0].location)


def engine(pod):
    return pod["containers"][0]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda pod: engine(pod).update(name="server"), "engine-container-missing"),
        (lambda pod: pod.update(containers=[]), "engine-container-missing"),
        (
            lambda pod: engine(pod)["resources"]["requests"].update({"nvidia.com/gpu": "2"}),
            "device-limit-differs",
        ),
        (
            lambda pod: pod["containers"].append(
                {"name": "side", "resources": {"requests": {"x.io/rdma": 1}}}
            ),
            "device-limit-differs",
        ),
        (
            lambda pod: engine(pod)["resources"].update(
                requests={"nvidia.com/gpu": 2}, limits={"nvidia.com/gpu": 2}
            ),
            "gpu-count-differs",
        ),
        (lambda pod: engine(pod).pop("resources"), "gpu-count-differs"),
        (
            lambda pod: engine(pod).update(env=[{"name": "VLLM_SERVER_DEV_MODE", "value": "1"}]),
            "dev-mode-exposed",
        ),
    ],
    ids=["renamed", "none", "request over limit", "no limit", "count", "no GPUs", "dev mode"],
)
def test_a_pod_that_cannot_serve_as_its_service_says_is_refused(change, code):
    assert [code] == codes(checked(service(change))[0])


def test_a_limit_without_a_request_is_its_request():
    pair = service(lambda pod: engine(pod)["resources"].pop("requests"))

    assert checked(pair)[0].complete


def test_development_mode_set_to_off_passes():
    pair = service(
        lambda pod: engine(pod).update(env=[{"name": "VLLM_SERVER_DEV_MODE", "value": "0"}])
    )

    assert checked(pair)[0].complete


def test_a_fault_of_all_placements_is_one_finding():
    (found,) = checked(service(lambda pod: pod.update(terminationGracePeriodSeconds=1), twice=True))

    assert ["drain-exceeds-grace"] == codes(found)


def test_every_fault_is_reported_at_once():
    bad = config(name="A_b", metadata={"labels": {"x": 1}, "annotations": {"y": 2}})
    (found,) = checked(bundle("a", bad))

    assert {"invalid-annotation", "invalid-label", "invalid-name"} == set(codes(found))


def test_a_set_seen_before_is_not_looked_at_again():
    memo = CheckMemo()
    pair = bundle("a", config(name="A_b"))
    first = checked(pair, memo=memo)
    pair[1].manifests[0].body["metadata"]["name"] = "good-now"

    assert first == checked(pair, memo=memo)


def test_a_duplicate_is_found_although_both_sets_were_seen_before():
    """The rule is about the whole fleet, so no memo of one unit can answer it."""
    memo = CheckMemo()
    one, two = bundle("one", config()), bundle("two", config())
    checked(one, memo=memo)
    checked(two, memo=memo)

    assert [False, False] == [item.complete for item in checked(one, two, memo=memo)]


# ------------------------------------------------------------------ folders of nodes
ON_DISK = Cache(CacheType.HOST_PATH, path="/mnt/nvme")
FOLDER = {"name": "cache", "hostPath": {"path": "/mnt/nvme"}}
MOUNT = {"name": "cache", "mountPath": "/cache"}


def with_folder(pod, *init_containers, volume=FOLDER):
    pod["volumes"] = [volume]
    pod["containers"][0]["volumeMounts"] = [MOUNT]
    pod["initContainers"] = list(init_containers)


def test_a_folder_that_nobody_looks_at_is_told_and_stops_nothing():
    """vllm/v1 stays as it is for ever, so a file that says nothing of the disk can only be told."""
    (found,) = checked(service(with_folder, cache=ON_DISK, twice=True))
    (warning,) = found.findings

    assert found.complete
    assert ("root-disk-unchecked", Severity.WARNING) == (warning.code, warning.severity)
    assert "/mnt/nvme" in warning.message
    assert "vllm/v2" in warning.hint


@pytest.mark.parametrize(
    ("change", "cache"),
    [
        (lambda pod: with_folder(pod, {"name": "weights", "volumeMounts": [MOUNT]}), ON_DISK),
        (with_folder, Cache(CacheType.PVC, claim="x")),
        (lambda pod: with_folder(pod, volume={"name": "cache", "emptyDir": {}}), ON_DISK),
        (lambda pod: with_folder(pod, volume={"name": "x", "hostPath": {"path": "/x"}}), ON_DISK),
    ],
    ids=["an init container looks", "another cache", "not mounted", "another folder"],
)
def test_what_is_looked_at_or_is_no_folder_of_the_cache_is_not_told(change, cache):
    (found,) = checked(service(change, cache=cache))

    assert () == found.findings


def test_an_init_container_that_does_not_see_the_folder_looks_at_nothing():
    (found,) = checked(service(lambda pod: with_folder(pod, {"name": "other"}), cache=ON_DISK))

    assert ["root-disk-unchecked"] == codes(found)

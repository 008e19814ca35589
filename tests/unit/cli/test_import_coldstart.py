"""Every field of a VllmService, FleetService and NodeState is in a file or named as left out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from definitions import a_definition
from stoker.cli.import_coldstart import convert
from stoker.errors import Stalled
from stoker.source.check_file import check_file
from unit.cli.test_import import SPACE, place

__all__ = ["place"]

GROUP = "coldstart.example.org"
IMAGE = "registry.example/vllm@sha256:" + "ab" * 32
POD: dict[str, Any] = {
    "warmupStrategy": "Graph",
    "image": IMAGE,
    "gpu": 2,
    "healthPath": "/health",
    "runtimeClassName": "nvidia",
    "extraArgs": ["--max-model-len", "4096"],
    "modelCacheHostPath": "/opt/hf-cache",
}
VLLM = {
    "apiVersion": f"{GROUP}/v1alpha1",
    "kind": "VllmService",
    "metadata": {"name": "qwen-7b", "namespace": SPACE},
    "spec": {"model": "Qwen/Qwen2.5-7B-Instruct", "replicas": 3, "nodeName": "gpu-1", **POD},
}
FLEET = {
    "apiVersion": f"{GROUP}/v1alpha1",
    "kind": "FleetService",
    "metadata": {"name": "gpufleet", "namespace": SPACE},
    "spec": {
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "replicas": 2,
        "template": POD,
        "nodePool": {
            "selector": {
                "matchLabels": {"pool": "a10"},
                "matchExpressions": [{"key": "zone", "operator": "Exists"}],
            },
            "spotPolicy": {"enabled": True, "maxSpotFraction": 0.5},
        },
        "placement": {"strategy": "EfficiencyAware", "signalMaxAgeSeconds": 90},
        "hysteresis": {"stableReconcilesRequired": 3, "maxConcurrentReschedules": 2},
    },
}
STATE = {
    "apiVersion": f"{GROUP}/v1alpha1",
    "kind": "NodeState",
    "metadata": {"name": "gpu-1"},
    "spec": {"reportIntervalSeconds": 30},
    "status": {
        "observedGeneration": 1,
        "lastReportTime": "2026-11-29T03:05:02Z",
        "warmth": "Warm",
        "gpuUtilization": 0.5,
        "gpuMemoryUsedBytes": 1,
        "activeServiceCount": 1,
        "kvCacheHitRate": 0.5,
        "kvCacheHitRateObservedAt": "2026-11-29T03:05:02Z",
        "tokensPerJoule": 2.0,
        "tokensPerJouleObservedAt": "2026-11-29T03:05:02Z",
        "requestsWaiting": 1,
        "requestsRunning": 1,
        "spot": {"isSpotInstance": True, "preemptionNoticeDetected": False},
    },
}


def changed(body, path, value):
    body = copy.deepcopy(body)
    *above, last = path.split(".")
    inner = body
    for key in above:
        inner = inner.setdefault(key, {})
    if value is None:
        inner.pop(last, None)
    else:
        inner[last] = value
    return body


def service(live, image=""):
    (text,) = convert(live, image).files.values()
    return yaml.safe_load(text)


def lines(live, image=""):
    return convert(live, image).left


def test_a_single_service_is_carried_whole():
    assert service(VLLM) == {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": "ModelService",
        "metadata": {"name": "qwen-7b", "namespace": SPACE},
        "spec": {
            "model": {
                "uri": "hf://Qwen/Qwen2.5-7B-Instruct",
                "revision": "main",
                "servedNames": ["Qwen/Qwen2.5-7B-Instruct"],
            },
            "engine": {
                "type": "vllm",
                "image": IMAGE,
                "args": ["--max-model-len", "4096"],
                "cudaGraphs": "Capture",
            },
            "gpu": {"count": 2},
            "replicas": 3,
            "cache": {"type": "HostPath", "path": "/opt/hf-cache", "rootDisk": "Refuse"},
            "podTemplate": {
                "spec": {
                    "runtimeClassName": "nvidia",
                    "nodeSelector": {"kubernetes.io/hostname": "gpu-1"},
                }
            },
        },
    }
    assert lines(VLLM) == (
        "VllmService/qwen-7b spec.model (it has no revision: write the commit in place of main)",
        (
            "VllmService/qwen-7b spec.modelCacheHostPath (carried; weights are kept below "
            "/opt/hf-cache/huggingface, and a node without a disk mounted there is refused: "
            "cache.rootDisk: Allow takes its root disk)"
        ),
    )


def test_a_fleet_service_is_carried_whole():
    spec = service(FLEET)["spec"]

    assert spec["placement"] == {"order": "EfficiencyAware", "signalMaxAge": "90s"}
    assert spec["disruption"] == {"maxConcurrentMoves": 2}
    assert spec["replicas"] == 2
    assert spec["podTemplate"]["spec"] == {
        "runtimeClassName": "nvidia",
        "nodeSelector": {"pool": "a10"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                    ]
                }
            }
        },
    }
    assert [line.split()[1] for line in lines(FLEET)] == [
        "spec.model",
        "spec.template.modelCacheHostPath",
        "spec.nodePool.spotPolicy.enabled",
        "spec.nodePool.spotPolicy.maxSpotFraction",
        "spec.hysteresis.stableReconcilesRequired",
    ]


@pytest.mark.parametrize("live", [VLLM, FLEET], ids=["vllm", "fleet"])
def test_a_cache_on_the_node_is_looked_at_and_the_file_says_how_to_do_without(live):
    """The operator wrote weights wherever the path led; here a start there would be refused."""
    (text,) = convert(live).files.values()
    (told,) = [line for line in convert(live).left if "modelCacheHostPath" in line]

    (line,) = [line for line in text.splitlines() if "rootDisk" in line]
    assert line.startswith("    rootDisk: Refuse  # ")
    assert "Allow" in line
    assert "cache.rootDisk: Allow" in told


@pytest.mark.parametrize("template", ["vllm/v1", "vllm/v2"])
def test_the_pods_of_the_file_look_for_a_disk_before_weights_come(shell, template):
    """`root-disk-unchecked` would be a warning of each imported service."""
    (text,) = convert(VLLM).files.values()
    body = yaml.safe_load(text)
    body["spec"]["model"]["revision"] = "a" * 40
    body["spec"]["render"] = {"template": template}
    folder = shell.fleet()
    (folder / "models" / "imported.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    validated = shell("validate", folder)
    rendered = shell("render", "qwen-7b", "--path", folder)

    assert (0, False) == (validated.code, "root-disk" in validated.err), validated.err
    assert (0, True) == (rendered.code, "- Refuse" in rendered.out), rendered.err


@pytest.mark.parametrize("live", [VLLM, FLEET], ids=["vllm", "fleet"])
def test_the_file_is_right_but_for_the_revision_that_nobody_named(live):
    (text,) = convert(live).files.values()

    (finding,) = check_file("models/x.yaml", text.encode())

    assert ("invalid-model-revision", "spec.model.revision") == (finding.code, finding.field)


@pytest.mark.parametrize(
    ("path", "value", "at", "expected"),
    [
        ("spec.model", "org/other", "model.uri", "hf://org/other"),
        ("spec.replicas", 7, "replicas", 7),
        ("spec.replicas", None, "replicas", 1),
        ("spec.warmupStrategy", "Eager", "engine.cudaGraphs", "Skip"),
        ("spec.warmupStrategy", None, "engine.cudaGraphs", "Skip"),
        ("spec.image", "x:1", "engine.image", "x:1"),
        ("spec.gpu", 4, "gpu.count", 4),
        ("spec.gpu", None, "gpu.count", 1),
        ("spec.runtimeClassName", "other", "podTemplate.spec.runtimeClassName", "other"),
        ("spec.runtimeClassName", None, "podTemplate.spec.runtimeClassName", None),
        ("spec.extraArgs", ["--x"], "engine.args", ["--x"]),
        ("spec.extraArgs", None, "engine.args", None),
        (
            "spec.modelCacheHostPath",
            "/c",
            "cache",
            {"type": "HostPath", "path": "/c", "rootDisk": "Refuse"},
        ),
        ("spec.modelCacheHostPath", None, "cache", None),
        ("spec.nodeName", "n2", "podTemplate.spec.nodeSelector", {"kubernetes.io/hostname": "n2"}),
        ("spec.nodeName", None, "podTemplate.spec.nodeSelector", None),
    ],
)
def test_each_field_of_a_single_service_arrives(path, value, at, expected):
    found: Any = service(changed(VLLM, path, value))["spec"]
    for key in at.split("."):
        found = (found or {}).get(key)

    assert expected == found


@pytest.mark.parametrize(
    ("path", "value", "at", "expected"),
    [
        ("spec.template.gpu", 4, "gpu.count", 4),
        ("spec.template.image", "x:1", "engine.image", "x:1"),
        ("spec.placement.strategy", "WarmthFirst", "placement.order", "WarmthFirst"),
        ("spec.placement.strategy", "Spread", "placement.order", "Spread"),
        ("spec.placement.strategy", "BinPack", "placement.order", "BinPack"),
        ("spec.placement.strategy", None, "placement.order", "WarmthFirst"),
        ("spec.placement.signalMaxAgeSeconds", None, "placement.signalMaxAge", None),
        ("spec.hysteresis.maxConcurrentReschedules", 0, "disruption.maxConcurrentMoves", 1),
        ("spec.hysteresis", None, "disruption", None),
        ("spec.nodePool.selector", {"gpu": "a10"}, "podTemplate.spec.nodeSelector", {"gpu": "a10"}),
    ],
)
def test_each_field_of_a_fleet_service_arrives(path, value, at, expected):
    found: Any = service(changed(FLEET, path, value))["spec"]
    for key in at.split("."):
        found = (found or {}).get(key)

    assert expected == found


@pytest.mark.parametrize(
    ("live", "path", "value"),
    [
        (VLLM, "spec.healthPath", "/ready"),
        (VLLM, "spec.healthPath", ""),
        (VLLM, "spec.newField", 1),
        (VLLM, "status", {"phase": "Ready"}),
        (VLLM, "metadata.labels", {"a": "b"}),
        (VLLM, "metadata.annotations", {"a": "b"}),
        (FLEET, "spec.newField", 1),
        (FLEET, "spec.template.newField", 1),
        (FLEET, "spec.nodePool.newField", 1),
        (FLEET, "spec.placement.newField", 1),
        (FLEET, "spec.placement.strategy", "Spread"),
        (FLEET, "spec.hysteresis.newField", 1),
        (FLEET, "spec.hysteresis.maxConcurrentReschedules", 0),
        (STATE, "spec.newField", 1),
        (STATE, "status.newField", 1),
    ],
)
def test_what_is_in_no_file_is_named(live, path, value):
    named = [line.split()[1] for line in lines(changed(live, path, value))]

    assert path in named
    assert path not in [line.split()[1] for line in lines(live)]


# Every field of the three CRDs (seed 000, semantics.md 1.1), with a value that is not its default:
# its parent in an object, and where it is named if it is in no file. None: it is in a file.
FIELDS: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, str | None]]]] = {
    "VllmService": (
        VLLM,
        {
            "spec.model": ("org/other", None),
            "spec.replicas": (5, None),
            "spec.warmupStrategy": ("Graph", None),
            "spec.image": ("registry.example/other:1", None),
            "spec.gpu": (4, None),
            "spec.healthPath": ("/ready", "spec.healthPath"),
            "spec.runtimeClassName": ("other", None),
            "spec.extraArgs": (["--other"], None),
            "spec.modelCacheHostPath": ("/other", None),
            "spec.nodeName": ("other", None),
            "status.phase": ("Ready", "status"),
            "status.message": ("serving", "status"),
        },
    ),
    "FleetService": (
        FLEET,
        {
            "spec.model": ("org/other", None),
            "spec.replicas": (5, None),
            "spec.template.warmupStrategy": ("Graph", None),
            "spec.template.image": ("registry.example/other:1", None),
            "spec.template.gpu": (4, None),
            "spec.template.healthPath": ("/ready", "spec.template.healthPath"),
            "spec.template.runtimeClassName": ("other", None),
            "spec.template.extraArgs": (["--other"], None),
            "spec.template.modelCacheHostPath": ("/other", None),
            "spec.nodePool.selector.matchLabels": ({"pool": "other"}, None),
            "spec.nodePool.selector.matchExpressions": (
                [{"key": "other", "operator": "Exists"}],
                None,
            ),
            "spec.nodePool.spotPolicy.enabled": (True, "spec.nodePool.spotPolicy.enabled"),
            "spec.nodePool.spotPolicy.maxSpotFraction": (
                0.25,
                "spec.nodePool.spotPolicy.maxSpotFraction",
            ),
            "spec.placement.strategy": ("BinPack", None),
            "spec.placement.signalMaxAgeSeconds": (7, None),
            "spec.hysteresis.stableReconcilesRequired": (
                9,
                "spec.hysteresis.stableReconcilesRequired",
            ),
            "spec.hysteresis.maxConcurrentReschedules": (4, None),
            "status.replicas": (2, "status"),
            "status.warmingReplicas": (1, "status"),
            "status.phase": ("Ready", "status"),
            "status.decidedOn": ([{"node": "gpu-1"}], "status"),
        },
    ),
    "NodeState": (
        STATE,
        {
            "spec.reportIntervalSeconds": (99, None),
            **{f"status.{name}": (value, f"status.{name}") for name, value in (
                ("observedGeneration", 9),
                ("lastReportTime", "2026-11-30T00:00:00Z"),
                ("warmth", "Cold"),
                ("gpuUtilization", 0.25),
                ("gpuMemoryUsedBytes", 9),
                ("activeServiceCount", 9),
                ("kvCacheHitRate", 0.25),
                ("kvCacheHitRateObservedAt", "2026-11-30T00:00:00Z"),
                ("tokensPerJoule", 9.0),
                ("tokensPerJouleObservedAt", "2026-11-30T00:00:00Z"),
                ("requestsWaiting", 9),
                ("requestsRunning", 9),
            )},
            "status.spot.isSpotInstance": (True, "status.spot"),
            "status.spot.preemptionNoticeDetected": (True, "status.spot"),
            "status.spot.preemptionNoticeTime": ("2026-11-30T00:00:00Z", "status.spot"),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind, (_, fields) in FIELDS.items() for path in fields]
)
def test_no_field_of_the_three_kinds_is_lost(kind, path):
    """The value is in a file, or its field is named as left out; nothing is dropped in silence."""
    live, fields = FIELDS[kind]
    value, named = fields[path]
    with_it = convert(changed(live, path, value), "registry.example/base:1")
    without = convert(_without(live, path), "registry.example/base:1")
    names = [line.split()[1] for line in with_it.left]

    if named is None:
        assert with_it.files != without.files, "another value makes another file"
    else:
        assert named in names
        assert with_it.files == without.files


def _without(live, path):
    """The same object with another value in a required field, else without the field."""
    return changed(live, path, "org/required" if path == "spec.model" else None)


def test_a_node_state_carries_what_is_wanted_and_names_what_is_measured():
    found = convert(STATE)
    body = yaml.safe_load(found.files["node-states/nodestate-gpu-1.yaml"])

    assert {"reportIntervalSeconds": 30} == body["spec"]
    assert "Bundle" == yaml.safe_load(found.files["node-states/bundle.yaml"])["kind"]
    assert {f"status.{name}" for name in STATE["status"]} == {
        line.split()[1] for line in found.left
    }
    assert {} == convert(changed(STATE, "spec", None)).files


@pytest.mark.parametrize(
    ("live", "why"),
    [
        (changed(VLLM, "spec.model", None), "no repository of a hub"),
        (changed(VLLM, "spec.model", "/models/own"), "no repository of a hub"),
        (changed(VLLM, "spec.image", None), "names no image"),
        (changed(VLLM, "spec.warmupStrategy", "Hot"), "none of Eager, Graph"),
        (changed(FLEET, "spec.placement.strategy", "Random"), "none of WarmthFirst"),
        (changed(FLEET, "spec.template", [1]), "template is no map"),
        (
            changed(VLLM, "metadata.ownerReferences",
                    [{"kind": "FleetService", "name": "f", "controller": True}]),
            "FleetService/f makes it",
        ),
    ],
)  # fmt: skip
def test_what_is_not_recognised_is_never_guessed(live, why):
    with pytest.raises(Stalled, match=why):
        convert(live)


def test_an_image_that_nobody_names_is_that_of_its_deployment():
    assert "x:1" == service(changed(VLLM, "spec.image", None), "x:1")["spec"]["engine"]["image"]


def define(place, *kinds, scope="Namespaced"):
    for kind in kinds:
        place.cluster.create(
            a_definition(GROUP, "v1alpha1", kind, f"{kind.lower()}s", scope), manager="setup"
        )


def test_objects_of_a_cluster_become_files_whatever_their_group(place):
    define(place, "VllmService", "FleetService")
    place.cluster.create(VLLM, manager="setup")
    place.cluster.create(FLEET, manager="setup")

    answer = place.run("vllmservice/qwen-7b", "fleetservices/gpufleet")

    assert answer.code == 0, answer.err
    assert place.read("qwen-7b.yaml")["spec"]["replicas"] == 3
    assert place.read("gpufleet.yaml")["spec"]["replicas"] == 2
    assert "VllmService/qwen-7b spec.model (it has no revision" in answer.err


def test_a_kind_that_nobody_serves_is_not_found(place):
    answer = place.run("fleetservice/gpufleet")

    assert answer.code != 0
    assert "one group must serve FleetService, found: none" in answer.err


def test_a_node_state_is_read_without_a_namespace(place):
    define(place, "NodeState", scope="Cluster")
    place.cluster.create(STATE, manager="setup")

    answer = place.run("nodestate/gpu-1")

    assert answer.code == 0, answer.err
    assert place.read("node-states/nodestate-gpu-1.yaml")["spec"] == {"reportIntervalSeconds": 30}

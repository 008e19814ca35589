"""What `stoker install --reporter` prints: rights for NodeStates and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from stoker.report.install_reporter import ReporterInstall, reporter_manifests


def objects(**more: Any) -> list[dict[str, Any]]:
    told = ReporterInstall("registry.invalid/stoker@sha256:00", **more)
    return list(yaml.safe_load_all(reporter_manifests(told)))


def named(kind: str, **more: Any) -> dict[str, Any]:
    return next(o for o in objects(**more) if o["kind"] == kind)


def pod(**more: Any) -> dict[str, Any]:
    found: dict[str, Any] = named("DaemonSet", **more)["spec"]["template"]["spec"]
    return found


def test_a_reporter_may_make_node_states_and_patch_their_status_and_nothing_else():
    rules = named("ClusterRole")["rules"]

    assert [(r["apiGroups"], r["resources"], r["verbs"]) for r in rules] == [
        (["stoker.dev"], ["nodestates"], ["get", "create"]),
        (["stoker.dev"], ["nodestates/status"], ["patch"]),
    ]
    assert [o["kind"] for o in objects() if "Role" in o["kind"]] == [
        "ClusterRole",
        "ClusterRoleBinding",
    ]


def test_a_reporter_is_held_to_the_node_of_its_own_pod():
    """RBAC cannot tell the nodes of a DaemonSet apart; live tests prove that this does."""
    spec = named("ValidatingAdmissionPolicy", namespace="other")["spec"]

    assert "system:serviceaccount:other:stoker-reporter" in spec["matchConditions"][0]["expression"]
    assert spec["failurePolicy"] == "Fail"
    assert named("ValidatingAdmissionPolicyBinding")["spec"]["validationActions"] == ["Deny"]


def test_everything_comes_in_an_order_that_can_be_applied():
    assert [o["kind"] for o in objects()] == [
        "CustomResourceDefinition",
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "DaemonSet",
    ]


def test_the_pod_has_no_rights_on_its_host():
    security = pod()["containers"][0]["securityContext"]

    assert pod()["securityContext"]["runAsNonRoot"]
    assert not security["allowPrivilegeEscalation"]
    assert security["readOnlyRootFilesystem"]
    assert security["capabilities"]["drop"] == ["ALL"]
    assert "privileged" not in security
    assert not pod()["hostNetwork"]
    assert "volumes" not in pod()


def test_the_cache_is_mounted_for_reading_only():
    told = pod(cache_path="/mnt/nvme/stoker")

    assert told["volumes"] == [{"name": "cache", "hostPath": {"path": "/mnt/nvme/stoker"}}]
    assert told["containers"][0]["volumeMounts"][0]["readOnly"]
    assert "--cache=/cache" in told["containers"][0]["args"]


def test_pods_may_be_listed_in_named_namespaces_and_nowhere_else():
    text = reporter_manifests(ReporterInstall("i", engine_namespaces=("llm", "ml", "llm")))
    objects = [each for each in yaml.safe_load_all(text) if each]
    roles = [each for each in objects if each["kind"] == "Role"]

    assert ["llm", "ml"] == [role["metadata"]["namespace"] for role in roles]
    assert {"pods": ["list"]} == {
        rule["resources"][0]: rule["verbs"] for role in roles for rule in role["rules"]
    }
    assert [] == [
        rule
        for each in objects
        if each["kind"] == "ClusterRole"
        for rule in each["rules"]
        if "pods" in rule["resources"]
    ]
    (container,) = pod(engine_namespaces=("llm",))["containers"]
    assert "--engine-namespace=llm" in container["args"]


def test_only_who_lets_it_evict_lets_it_write_to_the_cache():
    told = pod(cache_path="/mnt/nvme/stoker", evict=True)
    (container,) = told["containers"]

    assert not container["volumeMounts"][0]["readOnly"]
    assert "--evict" in container["args"]
    assert {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]} == container["securityContext"][
        "capabilities"
    ]
    assert 0 == told["securityContext"]["runAsUser"]
    assert "--evict" not in pod(cache_path="/mnt")["containers"][0]["args"]


@pytest.mark.parametrize(
    ("more", "level"),
    [
        ({}, "restricted"),
        ({"cache_path": "/mnt"}, "privileged"),
        ({"host_network": True}, "privileged"),
    ],
)
def test_the_namespace_enforces_the_strictest_level_that_lets_the_pod_in(more, level):
    labels = named("Namespace", **more)["metadata"]["labels"]

    assert labels["pod-security.kubernetes.io/enforce"] == level


def test_on_the_hosts_network_it_listens_on_loopback_alone():
    container = pod(host_network=True)["containers"][0]

    assert "--listen=127.0.0.1:8081" in container["args"]
    assert container["livenessProbe"]["httpGet"]["host"] == "127.0.0.1"


def test_engines_on_ports_of_the_host_can_be_named():
    """Kubernetes puts the variable into the argument."""
    container = pod(options=("--engine=$(NODE_IP):8000",))["containers"][0]

    assert container["args"][-1] == "--engine=$(NODE_IP):8000"
    assert "NODE_IP" in {variable["name"] for variable in container["env"]}


def test_gpus_are_seen_and_none_is_taken():
    container = pod()["containers"][0]

    assert {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"} in container["env"]
    assert set(container["resources"]["limits"]) == {"memory"}

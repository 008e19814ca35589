"""Fake GPU nodes."""

from __future__ import annotations

from stoker.sim.nodes import SIMULATED_LABEL, node_manifest


def test_a_node_says_what_gpu_discovery_says():
    node = node_manifest(
        "h100-1", labels={"pool": "h100"}, gpus=8, product="NVIDIA-H100-80GB-HBM3", zone="b"
    )
    labels = node["metadata"]["labels"]

    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert ("h100", "b", "true") == (
        labels["pool"],
        labels["topology.kubernetes.io/zone"],
        labels[SIMULATED_LABEL],
    )
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["status"]["conditions"][0]["status"] == "True"


def test_a_node_without_gpus_names_none():
    node = node_manifest("cpu-1", gpus=0)

    assert "nvidia.com/gpu" not in node["status"]["allocatable"]
    assert not [key for key in node["metadata"]["labels"] if key.startswith("nvidia.com/")]

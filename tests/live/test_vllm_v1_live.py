"""What the shipped templates render, on the real API server: accepted and stored as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.live

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("vllm_v*/*.yaml"))
MANAGER = "stoker-f1ee7000"


@pytest.fixture(scope="module")
def namespace(live_cluster):
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}
    return live_cluster.apply(manifest, manager=MANAGER)


def lost(rendered, stored, path=""):
    """Paths of rendered fields that are not stored as they were sent."""
    if isinstance(rendered, dict):
        found = []
        for key, value in rendered.items():
            if not isinstance(stored, dict) or key not in stored:
                found.append(f"{path}.{key}")
            else:
                found += lost(value, stored[key], f"{path}.{key}")
        return found
    if isinstance(rendered, list):
        if not isinstance(stored, list) or len(rendered) != len(stored):
            return [path]
        pairs = zip(rendered, stored, strict=True)
        return [p for i, (a, b) in enumerate(pairs) for p in lost(a, b, f"{path}[{i}]")]
    return [] if rendered == stored else [path]


@pytest.mark.parametrize("file", GOLDEN, ids=[f"{file.parent.name} {file.stem}" for file in GOLDEN])
def test_the_api_server_stores_what_is_rendered(live_cluster, namespace, file):
    """No unknown field, nothing refused, nothing respelled; the second apply changes nothing."""
    for manifest in yaml.safe_load_all(file.read_text()):
        first = live_cluster.apply(manifest, manager=MANAGER)
        second = live_cluster.apply(manifest, manager=MANAGER)

        assert [] == lost(manifest, first), manifest["kind"]
        # Controllers write status meanwhile; a change of ours would count the generation up.
        assert first["metadata"].get("generation") == second["metadata"].get("generation")

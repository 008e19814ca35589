"""Template vllm/v2: vllm/v1, but for folders of nodes, which are looked at before weights come."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from stoker.model.cache import Cache, CacheType, RootDisk
from stoker.model.prefetch import Prefetch
from stoker.render import Renderer, render, shape
from stoker.render.fetch_program import FETCH_PROGRAM
from unit.render import test_vllm_v1, test_vllm_v1_folder
from unit.render.builders import (
    FLEET_ID,
    POOL,
    FakeRepo,
    decision,
    desired,
    placement,
    plan,
    service,
    unit,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "vllm_v2"
ON_DISK = Cache(CacheType.HOST_PATH, path="/mnt/nvme/stoker")
SILENT = service(cache=ON_DISK)
OWN_WEIGHTS = service(model_uri="file:///models/own", model_revision="1", cache=ON_DISK)
EVERY = {**test_vllm_v1.SERVICES, **test_vllm_v1_folder.SERVICES, "silent": SILENT}


@pytest.fixture(scope="module")
def children():
    with Renderer(1) as renderer:
        yield renderer


def rendered(children, spec, template, *prefetches):
    """All manifests of the service by that template."""
    spec = replace(spec, template=template)
    item = unit(spec, "web")
    fleet = desired(item, pools=(POOL, test_vllm_v1.PINNED))
    shapes = shape(fleet, FakeRepo(), children, FLEET_ID)
    place = placement(shapes, item.ref, "node-1.example", pool=spec.pools[0])
    made = replace(
        decision(item.ref, place, mode=spec.placement_mode), prefetches=tuple(prefetches)
    )
    (found,) = render(fleet, shapes, plan(made), FakeRepo(), children, FLEET_ID)
    assert found.complete, found.findings
    return [manifest.body for manifest in found.manifests]


def pod_of(bodies):
    (deployment,) = [body for body in bodies if body["kind"] == "Deployment"]
    return deployment["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("name", "spec"), [("silent", SILENT), ("own-weights", OWN_WEIGHTS), ("plain", service())]
)
def test_a_published_version_never_changes_what_it_renders(children, name, spec):
    """design.md section 4. A wanted change is templates/vllm/v3 with golden files of its own."""
    text = yaml.safe_dump_all(rendered(children, spec, "vllm/v2"), sort_keys=True, width=1000)
    file = GOLDEN / f"{name}.yaml"
    if os.environ.get("STOKER_WRITE_GOLDEN") == "1" and not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    assert file.read_text() == text


@pytest.mark.parametrize("name", EVERY)
def test_only_a_folder_of_which_the_file_says_nothing_is_another_pod(children, name):
    """So changing to vllm/v2 restarts those services and no others: equal pods have one rev."""
    spec = EVERY[name]
    says_nothing = spec.cache.root_disk is None and spec.cache.max_size_bytes is None
    first, second = (rendered(children, spec, f"vllm/v{n}") for n in (1, 2))

    assert (first != second) is (spec.cache.type is CacheType.HOST_PATH and says_nothing)


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        (ON_DISK, "Refuse"),
        (replace(ON_DISK, max_size_bytes=800), "Refuse"),
        (replace(ON_DISK, root_disk=RootDisk.ALLOW), "Allow"),
        (replace(ON_DISK, root_disk=RootDisk.ALLOW, max_size_bytes=800), "Allow"),
        (replace(ON_DISK, root_disk=RootDisk.REFUSE), "Refuse"),
    ],
    ids=["nothing", "bound", "allowed", "allowed and bound", "refused"],
)
def test_a_start_and_a_fetch_ahead_refuse_the_same_disk(children, cache, said):
    """A fetch that filled the root disk would be followed by a start that refuses it."""
    cache = replace(cache, prefetch_nodes=1)
    ahead = Prefetch("web-prefetch-1", "l4-od-2", "uid-2")
    bodies = rendered(children, service(cache=cache), "vllm/v2", ahead)
    (weights,) = pod_of(bodies)["initContainers"]
    (job,) = [body for body in bodies if body["kind"] == "Job"]
    (fetch,) = job["spec"]["template"]["spec"]["containers"]

    assert said == weights["command"][-2]
    assert weights["command"] == fetch["command"]


def test_weights_of_the_own_kind_are_not_fetched_and_their_disk_is_looked_at(children):
    (weights,) = pod_of(rendered(children, OWN_WEIGHTS, "vllm/v2"))["initContainers"]

    assert ["python3", "-c", FETCH_PROGRAM, "", "", "Refuse", ""] == weights["command"]


@pytest.mark.parametrize(("said", "ends_well"), [("Refuse", False), ("Allow", True)])
def test_a_folder_on_the_disk_of_the_kubelet_is_refused(children, tmp_path, said, ends_well):
    """The program itself, with a folder on the disk that also holds what a kubelet mounts."""
    cache = replace(ON_DISK, root_disk=RootDisk(said))
    spec = replace(OWN_WEIGHTS, cache=cache)
    (weights,) = pod_of(rendered(children, spec, "vllm/v2"))["initContainers"]
    program = weights["command"][2].replace("/etc/hosts", str(tmp_path / "hosts"))
    (tmp_path / "hosts").touch()
    done = subprocess.run(
        [sys.executable, "-c", program, *weights["command"][3:]],
        env={"HF_HOME": str(tmp_path / "huggingface")},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert ends_well is (done.returncode == 0), done.stderr
    assert ends_well or "is on the root disk" in done.stderr


def _set_of(children, spec, template):
    """The neutral LeaderWorkerSet of a service over three nodes."""
    item = unit(replace(spec, template=template, nodes=3), "web")
    shapes = shape(desired(item, pools=(POOL,)), FakeRepo(), children, FLEET_ID)
    workload = shapes.neutral[item.ref].workload
    assert workload is not None, shapes.findings
    assert workload.ref.kind == "LeaderWorkerSet"
    return workload.body["spec"]


def test_groups_are_those_of_vllm_v1_but_for_the_folder(children):
    assert _set_of(children, service(), "vllm/v1") == _set_of(children, service(), "vllm/v2")

    inside = _set_of(children, SILENT, "vllm/v2")["leaderWorkerTemplate"]
    for pods in (inside["leaderTemplate"], inside["workerTemplate"]):
        assert ["weights"] == [each["name"] for each in pods["spec"]["initContainers"]]

"""The Job that fetches ahead: what a replica would find, without GPUs and beside nobody."""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from stoker.model.cache import Cache, CacheType
from stoker.model.fleet import SecretKey
from stoker.model.prefetch import Prefetch, PrefetchState
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.render import Renderer, render, shape
from stoker.render.fetch_program import FETCH_PROGRAM
from unit.render.builders import (
    FLEET_ID,
    FakeRepo,
    decision,
    desired,
    placement,
    plan,
    service,
    unit,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "prefetch"
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
ON_DISK = service(
    cache=Cache(CacheType.HOST_PATH, "/mnt/nvme", prefetch_nodes=1),
    token_secret=SecretKey("hf", "token"),
    gpu_count=4,
    pod_template={
        "spec": {
            "tolerations": [TOLERATION],
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [{"name": "side", "image": "registry.example/side:1"}],
        }
    },
)
SHARED = service(cache=Cache(CacheType.PVC, claim="models", prefetch_nodes=1))
IN_AN_IMAGE = service(
    model_uri="file:///models/qwen",
    cache=Cache(CacheType.IMAGE, image="registry.example/qwen:1", prefetch_nodes=1),
)
BOUND = replace(ON_DISK, cache=replace(ON_DISK.cache, max_size_bytes=800))
NEW = Prefetch("web-prefetch-1", "l4-od-2", "uid-2")


JOBS = {"on-disk": ON_DISK, "shared": SHARED, "image": IN_AN_IMAGE, "bound": BOUND}


@pytest.fixture(scope="module")
def children():
    with Renderer(1) as renderer:
        yield renderer


def a_set(children, spec, *prefetches):
    item = unit(spec, "web")
    fleet = desired(item)
    shapes = shape(fleet, FakeRepo(), children, FLEET_ID)
    made = replace(decision(item.ref, placement(shapes, item.ref)), prefetches=prefetches)
    (found,) = render(fleet, shapes, plan(made), FakeRepo(), children, FLEET_ID)
    assert found.complete, found.findings
    return found


def the_job(found):
    (body,) = (m.body for m in found.manifests if m.ref.kind == "Job")
    return body


@pytest.mark.parametrize(("name", "spec"), JOBS.items())
def test_a_form_of_job_never_changes(children, name, spec):
    """The pod of a Job cannot be changed: other bytes need another FORM (decide/prefetch.py)."""
    body = the_job(a_set(children, spec, NEW))

    assert (GOLDEN / f"{name}.yaml").read_text("utf-8") == yaml.safe_dump(body, sort_keys=True)


def test_a_job_takes_no_gpu_no_traffic_and_no_place_of_a_deployment(children):
    body = the_job(a_set(children, ON_DISK, NEW))
    pod = body["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert {"requests": {"cpu": "250m", "memory": "512Mi"}} == container["resources"]
    assert "void" == {e["name"]: e.get("value") for e in container["env"]}["NVIDIA_VISIBLE_DEVICES"]
    assert {names.FLEET_LABEL, names.PREFETCH_LABEL} == set(
        body["spec"]["template"]["metadata"]["labels"]
    ), "no Service, budget or Deployment selects it"
    assert [TOLERATION] == pod["tolerations"]
    assert [{"name": "pull"}] == pod["imagePullSecrets"]
    assert {"ports", "livenessProbe", "startupProbe", "readinessProbe", "lifecycle"}.isdisjoint(
        container
    )


def test_fetching_ahead_changes_no_byte_of_a_replica(children):
    with_job = a_set(children, ON_DISK, NEW)
    without = a_set(children, replace(ON_DISK, cache=replace(ON_DISK.cache, prefetch_nodes=0)))

    kept = [m.digest for m in with_job.manifests if m.ref.kind != "Job"]

    assert [m.digest for m in without.manifests] == kept


def test_a_job_that_stands_is_kept_or_over_and_never_sent_again(children):
    running = Prefetch("web-prefetch-2", "n2", "u2", PrefetchState.RUNNING)
    done = Prefetch("web-prefetch-3", "n3", "u3", PrefetchState.DONE, "a replica is there")

    found = a_set(children, ON_DISK, running, done)

    assert [] == [m for m in found.manifests if m.ref.kind == "Job"]
    assert ObjectRef("batch", "Job", "llm", running.name) in found.kept
    assert (ObjectRef("batch", "Job", "llm", done.name),) == found.over


def test_an_image_with_weights_is_pulled_by_mounting_it(children):
    body = the_job(a_set(children, IN_AN_IMAGE, NEW))
    pod = body["spec"]["template"]["spec"]

    assert ["registry.example/qwen:1"] == [v["image"]["reference"] for v in pod["volumes"]]
    assert ["/models/qwen"] == [m["mountPath"] for m in pod["containers"][0]["volumeMounts"]]
    assert "image@registry.example/qwen:1" == body["metadata"]["annotations"][names.PREFETCH_MODEL]


HUB = """\
import os, sys
class HfApi:
    def list_repo_files(self, name, revision): return os.environ["FILES"].split()
def snapshot_download(name, **how): print(name, how)
"""


def run(folder, *arguments, files="m.bin", program=FETCH_PROGRAM):
    (folder / "huggingface_hub.py").write_text(HUB)
    environment = {"PYTHONPATH": str(folder), "HF_HOME": str(folder / "home"), "FILES": files}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ("model.safetensors pytorch_model.bin config.json", "'*.safetensors'"),
        ("pytorch_model.bin config.json", "'*.bin'"),
    ],
)
def test_the_program_fetches_the_files_that_vllm_would(tmp_path, files, wanted):
    out, _ = run(tmp_path, "a/b", "c" * 40, "Allow", "", files=files).communicate(timeout=60)

    assert out.startswith("a/b {'revision': '" + "c" * 40)
    assert f"'*.py', {wanted}]" in out


def test_the_program_leaves_a_mark_of_what_it_fetched(tmp_path):
    run(tmp_path, "a/b", "c" * 40, "Allow", "800").communicate(timeout=60)
    (mark,) = (tmp_path / "home" / "stoker-marks").glob("*.json")

    assert {"name": "a/b", "revision": "c" * 40, "mostBytes": "800"} == json.loads(mark.read_text())


def test_a_second_program_waits_for_the_lock_of_the_first(tmp_path):
    """One downloader a node and model: the holder of the lock is shown, then lets go."""
    key = hashlib.sha256(("a/b@" + "c" * 40).encode()).hexdigest()[:16]
    marks = tmp_path / "home" / "stoker-marks"
    marks.mkdir(parents=True)
    with (marks / f"{key}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = run(tmp_path, "a/b", "c" * 40, "Allow", "")
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(1.0)
        fcntl.flock(held, fcntl.LOCK_UN)
    out, _ = second.communicate(timeout=60)

    assert "a/b" in out


@pytest.mark.parametrize(("said", "fails"), [("Refuse", True), ("Allow", False)])
@pytest.mark.parametrize("name", ["a/b", ""])
def test_a_folder_on_the_kubelets_own_disk_is_refused_unless_allowed(tmp_path, said, fails, name):
    (tmp_path / "hosts").touch()
    program = FETCH_PROGRAM.replace('"/etc/hosts"', repr(str(tmp_path / "hosts")))

    found = run(tmp_path, name, "c" * 40, said, "", program=program)
    out, told = found.communicate(timeout=60)

    assert fails == bool(found.returncode)
    assert fails == ("cache.rootDisk" in told)
    assert bool(out) == (not fails and bool(name)), "nothing is downloaded there"


def test_a_folder_on_another_disk_is_taken(tmp_path):
    nowhere = FETCH_PROGRAM.replace('"/etc/hosts", "/dev/termination-log"', '"/proc/version",')

    found = run(tmp_path, "", "", "Refuse", "", program=nowhere)
    found.communicate(timeout=60)

    assert found.returncode == 0

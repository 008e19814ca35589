"""Template vllm/v1 with cache.rootDisk or cache.maxSize: a folder that is looked after."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from stoker.model.cache import Cache, CacheType, RootDisk
from stoker.model.fleet import SecretKey
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

GOLDEN = Path(__file__).parents[2] / "golden" / "vllm_v1"
ON_DISK = Cache(CacheType.HOST_PATH, path="/mnt/nvme/stoker")
SERVICES = {
    "hostpath": service(
        token_secret=SecretKey("hf", "token"),
        cache=replace(ON_DISK, max_size_bytes=800 * 2**30),
    ),
    "rootdisk": service(cache=replace(ON_DISK, root_disk=RootDisk.ALLOW)),
    "own-weights": service(
        model_uri="file:///models/own",
        model_revision="1",
        cache=replace(ON_DISK, root_disk=RootDisk.REFUSE),
    ),
}


@pytest.fixture(scope="module")
def rendered():
    found = {}
    with Renderer(1) as renderer:
        for name, spec in {**SERVICES, "silent": service(cache=ON_DISK)}.items():
            item = unit(spec, "web")
            fleet = desired(item)
            shapes = shape(fleet, FakeRepo(), renderer, FLEET_ID)
            answer = plan(decision(item.ref, placement(shapes, item.ref, "node-1")))
            (made,) = render(fleet, shapes, answer, FakeRepo(), renderer, FLEET_ID)
            assert made.complete, made.findings
            found[name] = [manifest.body for manifest in made.manifests]
    return found


def pod_of(bodies):
    (deployment,) = [body for body in bodies if body["kind"] == "Deployment"]
    return deployment["spec"]["template"]["spec"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_published_version_never_changes_what_it_renders(rendered, name):
    """design.md section 4. A wanted change is templates/vllm/v2 with golden files of its own."""
    text = yaml.safe_dump_all(rendered[name], sort_keys=True, width=1000)
    file = GOLDEN / f"{name}.yaml"
    if os.environ.get("STOKER_WRITE_GOLDEN") == "1" and not file.exists():
        file.write_text(text)

    assert file.read_text() == text


def test_a_folder_of_which_the_file_says_no_more_is_as_it_always_was(rendered):
    pod = pod_of(rendered["silent"])

    assert "initContainers" not in pod
    assert ["vllm", "serve"] == pod["containers"][0]["command"]


def test_weights_come_by_the_program_of_fetches_ahead(rendered):
    """One lock for both: whoever comes second finds everything there."""
    pod = pod_of(rendered["hostpath"])
    (weights,) = pod["initContainers"]

    assert ["python3", "-c", FETCH_PROGRAM] == weights["command"][:3]
    assert ["Refuse", str(800 * 2**30)] == weights["command"][-2:]
    assert "resources" not in weights, "no GPU of its own"
    allowed = pod_of(rendered["rootdisk"])["initContainers"][0]["command"]
    assert ["Allow", ""] == allowed[-2:]
    assert ["", "", "Refuse", ""] == pod_of(rendered["own-weights"])["initContainers"][0][
        "command"
    ][3:]


def test_the_engine_holds_the_mark_of_its_weights_while_it_lives(rendered, tmp_path):
    """The reporter evicts nothing whose mark is held; the kernel lets go with the engine."""
    command = pod_of(rendered["hostpath"])["containers"][0]["command"]
    spec = SERVICES["hostpath"]
    name = spec.model_uri.removeprefix("hf://")
    key = hashlib.sha256(f"{name}@{spec.model_revision}".encode()).hexdigest()[:16]
    assert f"/cache/huggingface/stoker-marks/{key}.json" == command[3]
    assert ["vllm", "serve"] == command[4:]
    mark = tmp_path / "mark.json"
    mark.touch()
    program = [sys.executable, "-c", command[2], str(mark)]
    engine = subprocess.Popen(
        [*program, sys.executable, "-uc", "print(1); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with mark.open() as ours:
        assert engine.stdout is not None
        assert b"1\n" == engine.stdout.readline()
        with pytest.raises(BlockingIOError):
            fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        engine.communicate(b"\n", timeout=60)
        fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)

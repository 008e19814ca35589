"""Where the control plane's programs come from, and the reason when there are none."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from stoker.sim import controlplane_binary
from stoker.sim.controlplane_binary import (
    COMPONENTS,
    Programs,
    cached_program,
    find_or_build,
    source_folder,
    source_hash,
)

GO = """#!/bin/sh
if [ "$1" = env ]; then echo {version}; exit 0; fi
echo "$@" >> "$LOG"
{build}
"""
WRITE_PROGRAM = 'while [ "$1" != -o ]; do shift; done; cp "$(pwd)/go.mod" "$2"'


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def sources() -> Path:
    folder = source_folder()
    assert folder is not None
    return folder


@pytest.fixture
def environ(tmp_path):
    return {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "XDG_CACHE_HOME": f"{tmp_path}/cache"}


@pytest.fixture
def go(tmp_path, environ):
    """A Go toolchain that says and does what a test wants; gives the log of its builds."""

    def make(*, version="go1.26.8", build=WRITE_PROGRAM):
        environ["LOG"] = str(tmp_path / "go.log")
        script = tmp_path / "bin" / "go"
        program(script)
        script.write_text(GO.format(version=version, build=build))
        return tmp_path / "go.log"

    return make


def test_kubebuilder_assets_come_first(tmp_path, environ):
    for name in COMPONENTS:
        program(tmp_path / "assets" / name)
    environ["KUBEBUILDER_ASSETS"] = f"{tmp_path}/assets"
    found = find_or_build(environ=environ)

    assert isinstance(found, Programs)
    assert found.origin == "KUBEBUILDER_ASSETS"
    assert (f"{tmp_path}/assets/etcd",) == found.command("etcd")


def test_assets_without_a_component_are_passed_over_and_named(tmp_path, environ):
    """The usual assets hold no scheduler and no controller manager."""
    program(tmp_path / "assets" / "etcd")
    program(tmp_path / "assets" / "kube-apiserver")
    environ["KUBEBUILDER_ASSETS"] = f"{tmp_path}/assets"

    some = find_or_build(components=("etcd", "kube-apiserver"), environ=environ)
    every = find_or_build(environ=environ, build=False)

    assert isinstance(some, Programs)
    assert every == (
        "KUBEBUILDER_ASSETS lacks kube-controller-manager, kube-scheduler; no cached build;"
        " building was not asked for"
    )


def test_a_cached_build_is_used(environ):
    source = sources()
    cached = cached_program(source, environ)
    program(cached)

    assert Programs(origin="cache", program=cached) == find_or_build(environ=environ)
    assert (str(cached), "etcd") == Programs(origin="cache", program=cached).command("etcd")


def test_another_release_is_another_program(tmp_path):
    copy = tmp_path / "source"
    shutil.copytree(sources(), copy)
    before = source_hash(copy)
    (copy / "go.mod").write_text((copy / "go.mod").read_text() + "\n")

    assert source_hash(sources()) == before != source_hash(copy)


def test_a_build_names_the_version_and_is_kept(environ, go):
    log = go()
    told: list[str] = []
    first = find_or_build(told.append, environ=environ)
    second = find_or_build(told.append, environ=environ)

    assert isinstance(first, Programs)
    assert isinstance(second, Programs)
    assert ("build", "cache") == (first.origin, second.origin)
    assert len(told) == 1
    assert "gitVersion=v1.37.2" in log.read_text()
    assert first.program is not None
    assert first.program.read_bytes() == (sources() / "go.mod").read_bytes()


def test_two_that_build_at_once_build_once(environ, go):
    log = go(build=f"sleep 0.2; {WRITE_PROGRAM}")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(find_or_build(environ=environ)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(log.read_text().splitlines()) == 1
    assert all(isinstance(each, Programs) for each in found)


@pytest.mark.parametrize(
    ("version", "build", "reason"),
    [
        pytest.param("go1.25.1", "", "Go 1.26 or newer is needed, found go1.25", id="old"),
        pytest.param("devel", "", "Go 1.26 or newer is needed, found no version", id="unknown"),
        pytest.param(
            "go1.26.8", "echo no network >&2; exit 1", "go build failed: no network", id="fails"
        ),
    ],
)
def test_a_build_that_cannot_be_is_a_reason(environ, go, version, build, reason):
    go(version=version, build=build)

    assert find_or_build(environ=environ) == f"no cached build; {reason}"


def test_without_go_there_is_a_reason(environ):
    environ["PATH"] = ""

    assert find_or_build(environ=environ) == "no cached build; no Go toolchain on PATH"


def test_without_sources_there_is_a_reason(environ, monkeypatch):
    monkeypatch.setattr(controlplane_binary, "source_folder", lambda: None)

    assert find_or_build(environ=environ) == (
        "the control plane's Go files are neither shipped nor here"
    )

"""Both servers of the contract: the in-memory one and a real API server without controllers."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.api import Api
from contract.gizmos import GIZMO
from contract.plain_https import PlainHttps
from stoker.clock import SystemClock
from stoker.kube.memory import MemoryServer
from stoker.sim.clock import VirtualClock
from stoker.sim.controlplane import ControlPlane
from stoker.sim.controlplane_binary import find_or_build

COMPONENTS = ("etcd", "kube-apiserver")
_NUMBERS = itertools.count(1)


class TickingClock(VirtualClock):
    """Virtual time that passes whenever somebody looks, so that watches end."""

    def monotonic(self) -> float:
        self.advance(400)
        return super().monotonic()


@pytest.fixture(scope="session")
def real_transports(tmp_path_factory) -> Iterator[tuple[PlainHttps, PlainHttps]]:
    """A real API server without controllers, as seen by its admin and by a user without rights."""
    programs = find_or_build(components=COMPONENTS, build=False)
    if isinstance(programs, str):
        reason = f"no control plane: {programs}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("api-server")
    with ControlPlane(folder, components=COMPONENTS, programs=programs) as plane:
        admin = PlainHttps(plane.kubeconfig_path.read_text("utf-8"))
        nobody = PlainHttps(plane.kubeconfig_for().read_text("utf-8"))
        yield admin, nobody
        admin.close()
        nobody.close()


def _memory_api(namespace: str) -> Api:
    clock = TickingClock()
    return Api(MemoryServer(clock), namespace, real=False, wait=clock.wait)


def _real_api(namespace: str, transports: tuple[PlainHttps, PlainHttps]) -> Api:
    admin, nobody = transports
    return Api(admin, namespace, real=True, wait=SystemClock().wait, nobody=nobody)


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.live)])
def server(request) -> Api:
    """One server, with a namespace of the test's own and the CRD of Gizmos."""
    namespace = f"c{next(_NUMBERS)}"
    if request.param == "memory":
        api = _memory_api(namespace)
    else:
        api = _real_api(namespace, request.getfixturevalue("real_transports"))
    _install(api)
    return api


@pytest.fixture
def pair(real_transports) -> tuple[Api, Api]:
    """The real server and the in-memory one, each with the same namespace."""
    namespace = f"c{next(_NUMBERS)}"
    both = _real_api(namespace, real_transports), _memory_api(namespace)
    for api in both:
        _install(api)
    return both


@pytest.fixture
def memory() -> Api:
    """Only the in-memory server, for what a test can't do to a real one."""
    return _memory_api("c")


def _install(api: Api) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    if api.send("GET", f"{path}/gizmos.stoker.dev").status == 200:
        return
    made = api.send("POST", path, GIZMO)
    assert made.status == 201, made
    for _ in range(2000):
        if api.send("GET", api.path("Gizmo")).status == 200:
            return
    raise AssertionError("the CRD is never served")


GOLDEN = Path(__file__).with_name("created_objects.json")


class GoldenObjects:
    """What the real server makes of minimal objects: recorded from it, held against both."""

    def __init__(self) -> None:
        self._known = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}

    def check(self, kind: str, server: Api, body: dict[str, Any]) -> bool:
        """Compare (raises AssertionError) what is left when times and ids are taken out."""
        text = json.dumps(body, sort_keys=True)
        metadata = body["metadata"]
        for value in (metadata["uid"], server.ns, metadata["creationTimestamp"]):
            text = text.replace(value, "…")
        text = re.sub(r'"10\.0\.\d+\.\d+"', '"10.0.0.0"', text)
        text = re.sub(r'"resourceVersion": "\d+"', '"resourceVersion": "1"', text)
        seen = json.loads(text)
        if server.real and os.environ.get("STOKER_RECORD") == "true":
            self._known[kind] = seen
            GOLDEN.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n", "utf-8")
        assert self._known[kind] == seen
        return True


@pytest.fixture(scope="session")
def golden_objects() -> GoldenObjects:
    return GoldenObjects()

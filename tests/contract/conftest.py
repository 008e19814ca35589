"""Both servers of the contract: the in-memory one and a real API server without controllers."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from contract.api import Api, PlainHttps
from stoker.clock import SystemClock
from stoker.kube.memory import MemoryServer
from stoker.sim.clock import VirtualClock
from stoker.sim.controlplane import ControlPlane
from stoker.sim.controlplane_binary import find_or_build

COMPONENTS = ("etcd", "kube-apiserver")
_NUMBERS = itertools.count(1)

GIZMO = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gizmos.stoker.dev"},
    "spec": {
        "group": "stoker.dev",
        "names": {"kind": "Gizmo", "plural": "gizmos"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "mode": {
                                        "type": "string",
                                        "default": "A",
                                        "enum": ["A", "B"],
                                    },
                                    "nothing": {"type": "integer", "nullable": True},
                                    "share": {"x-kubernetes-int-or-string": True},
                                    "plain": {"type": "array", "items": {"type": "string"}},
                                    "things": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"a": {"type": "string"}},
                                        },
                                    },
                                    "set": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "byname": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "name": {"type": "string"},
                                                "v": {"type": "string"},
                                            },
                                            "required": ["name"],
                                        },
                                    },
                                    "defaulted": {
                                        "type": "array",
                                        "default": ["x"],
                                        "items": {"type": "string"},
                                    },
                                    "map": {
                                        "type": "object",
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "any": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "selector": {"type": "string"},
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "type": {"type": "string"},
                                                "status": {"type": "string"},
                                            },
                                            "required": ["type"],
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


class TickingClock(VirtualClock):
    """Virtual time that passes whenever somebody looks, so that watches end."""

    def monotonic(self) -> float:
        self.advance(400)
        return super().monotonic()


@pytest.fixture(scope="session")
def real_transport(request, tmp_path_factory) -> Iterator[PlainHttps]:
    """A real API server with etcd and nothing else: no controller interferes."""
    programs = find_or_build(components=COMPONENTS, build=False)
    if isinstance(programs, str):
        reason = f"no control plane: {programs}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("api-server")
    with ControlPlane(folder, components=COMPONENTS, programs=programs) as plane:
        transport = PlainHttps(plane.kubeconfig_path.read_text("utf-8"))
        yield transport
        transport.close()


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.live)])
def server(request) -> Api:
    """One server, with a namespace of the test's own and the CRD of Gizmos."""
    namespace = f"c{next(_NUMBERS)}"
    if request.param == "memory":
        clock = TickingClock()
        api = Api(MemoryServer(clock), namespace, real=False, wait=clock.wait)
    else:
        transport = request.getfixturevalue("real_transport")
        api = Api(transport, namespace, real=True, wait=SystemClock().wait)
    _install(api)
    return api


@pytest.fixture
def memory(server) -> Api:
    """Only the in-memory server, for what a test can't do to a real one."""
    if server.real:
        pytest.skip("only the in-memory server has this")
    return server


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

"""Fleet files for stories: builders that show only what matters.

`a_fleet`, `a_service` and `a_bundle` give the text of one file each; `the_fleet` gives a whole
repository by path, ready for `World.commit`. Names: fleet `local`, namespace `llm`, pool `gpu`
(label pool=gpu), and start times of a few seconds (`QUICK`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stoker.cli.world import CLUSTER_UID
from stoker.model.refs import ObjectRef
from stoker.sim.start_times import StartTimes

GIB = 1024**3
EXAMPLES = Path(__file__).parents[2] / "examples"
FLEET = "clusters/local/fleet.yaml"
URI = "hf://example/tiny-1b"
OLD, NEW = "a" * 40, "b" * 40
"""Two revisions of its weights."""

QUICK = StartTimes(
    default_image_bytes=GIB // 4,
    weights_bytes={URI: GIB // 4},
    default_weights_bytes=GIB // 4,
    init_seconds=1.0,
    plain_seconds=0.5,
)
"""A cold start takes about 2 s, then a startup probe."""

NAMESPACE_FILE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: llm}\n"


def example(name: str) -> dict[str, str]:
    """Every file of an example, by path."""
    root = EXAMPLES / name
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def _text(kind: str, name: str, spec: Mapping[str, Any], **metadata: str) -> str:
    body = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": dict(spec),
    }
    return yaml.safe_dump(body, sort_keys=False)


def a_fleet(name: str = "local", **spec: Any) -> str:
    """A Fleet in mode Correct; a keyword replaces a whole block of spec."""
    plain: dict[str, Any] = {
        "cluster": {"uid": CLUSTER_UID},
        "mode": "Correct",
        "include": ["/models/*.yaml", "/bundles/*/bundle.yaml"],
        "defaults": {"namespace": "llm"},
        "pools": [a_pool("gpu")],
        "status": {"flushInterval": "1s"},
    }
    return _text("Fleet", name, {**plain, **spec})


def a_patient_fleet() -> str:
    """A Fleet that collects status for 10 s: long stories spend their time on it. See `rest`."""
    return a_fleet(status={"flushInterval": "10s"})


def a_pool(name: str, **more: Any) -> dict[str, Any]:
    """A pool of the nodes labelled pool=<name>."""
    return {"name": name, "nodeSelector": {"matchLabels": {"pool": name}}, **more}


def a_service(
    name: str = "tiny",
    *,
    replicas: int | None = 1,
    revision: str = OLD,
    metadata: Mapping[str, str] | None = None,
    **spec: Any,
) -> str:
    """A ModelService of one GPU a replica, with a short drain."""
    plain: dict[str, Any] = {
        "model": {"uri": URI, "revision": revision, "size": "1Gi"},
        "engine": {"type": "vllm", "image": "registry.example/vllm:0.28"},
        "gpu": {"count": 1},
        "placement": {"pools": [{"name": "gpu"}]},
        "drain": {"endpointSync": "1s", "max": "2s", "shutdown": "1s"},
    }
    if replicas is not None:
        plain["replicas"] = replicas
    return _text("ModelService", name, {**plain, **spec}, **(metadata or {}))


def a_bundle(name: str, paths: tuple[str, ...] = ("*.yaml",), **render: Any) -> str:
    """A Bundle of plain manifests beside it, unless `render` says otherwise."""
    return _text("Bundle", name, {"render": render or {"manifests": list(paths)}})


def a_config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> str:
    """A ConfigMap without a namespace of its own."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": dict(data or {"key": "value"}),
    }
    return yaml.safe_dump(body, sort_keys=False)


def a_custom_kind(ref: ObjectRef, plural: str) -> str:
    """The CRD of a namespaced kind with a status of its own, any fields allowed."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": ref.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": ref.kind, "plural": plural, "singular": ref.kind.lower()}
    spec = {"group": ref.group, "scope": "Namespaced", "names": names, "versions": [version]}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{ref.group}"},
        "spec": spec,
    }
    return yaml.safe_dump(body, sort_keys=False)


def the_fleet(*services: str, fleet: str = "", **bundles: Mapping[str, str]) -> dict[str, str]:
    """A repository: the Fleet, the namespace, a file a service, a folder a bundle.

    A bundle is named by its keyword and given as its manifests by file name.
    """
    files = {
        FLEET: fleet or a_fleet(),
        "bundles/base/bundle.yaml": a_bundle("base", ("namespace.yaml",)),
        "bundles/base/namespace.yaml": NAMESPACE_FILE,
    }
    for text in services:
        files[f"models/{yaml.safe_load(text)['metadata']['name']}.yaml"] = text
    for name, manifests in bundles.items():
        files[f"bundles/{name}/bundle.yaml"] = a_bundle(name, tuple(sorted(manifests)))
        files |= {f"bundles/{name}/{path}": text for path, text in manifests.items()}
    if not services:
        files[FLEET] = files[FLEET].replace("  - /models/*.yaml\n", "")
    return files


def the_village(**instead: str) -> dict[str, str]:
    """Services `tiny` (2 replicas) and `other` (1), and bundles `base` and `side`.

    A keyword replaces the text of a service's file.
    """
    services = {"tiny": a_service(replicas=2), "other": a_service("other"), **instead}
    return the_fleet(*services.values(), side={"side.yaml": a_config_map("side")})

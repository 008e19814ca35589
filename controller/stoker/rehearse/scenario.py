"""Scenario files: bytes in, a scenario or findings with their places out; the shipped ones.

Called by `stoker rehearse`. The fleet repository that a scenario stands for is made here, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stoker.errors import BadInput, Finding, SourceLocation, Stalled
from stoker.objects.names import API_VERSION
from stoker.rehearse.schema import ScenarioFile, ScenarioSpec, ServiceBlock
from stoker.shipped import shipped_folder
from stoker.source import read_yaml
from stoker.source.durations import duration_ms, duration_text
from stoker.source.layers import Layer, overlay
from stoker.source.parsed import parsed

__all__ = [
    "FLEET_NAME",
    "FLEET_PATH",
    "NAMESPACE",
    "fleet_files",
    "merged",
    "read_scenario",
    "scenario_named",
    "service_file",
    "service_spec",
    "shipped_scenarios",
]

FLEET_NAME = "rehearsal"
FLEET_PATH = "clusters/rehearsal/fleet.yaml"
NAMESPACE = "llm"

_SPEC: dict[str, Any] = {
    "engine": {"type": "vllm", "image": "registry.example/vllm:0.28"},
    "gpu": {"count": 1},
    "replicas": 1,
    "cache": {"type": "HostPath", "path": "/mnt/models"},
    "coldStart": {"deadline": "10m"},
}
"""What every service begins with; its model is named after it."""


def read_scenario(path: str, data: bytes) -> ScenarioFile:
    """The scenario of a file; raises BadInput with every finding and its place."""
    file = read_yaml(path, data)
    findings: list[Finding] = [file.broken] if file.broken is not None else []
    found: list[ScenarioFile] = []
    for document in file.documents:
        findings += document.findings
        scenario, problems = parsed(document, ScenarioFile, "Scenario")
        findings += problems
        if scenario is not None:
            found.append(scenario)
    if not findings and len(found) != 1:
        message = f"holds {len(found)} documents; a scenario is one"
        findings.append(Finding(SourceLocation(path), "invalid-value", message))
    if findings:
        raise BadInput(tuple(findings))
    return found[0]


def shipped_scenarios() -> dict[str, Path]:
    """The scenarios that come with Stoker: name to file, sorted."""
    folder = shipped_folder("examples") / "rehearsals"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def scenario_named(name: str) -> ScenarioFile:
    """A shipped scenario by name, or that of a file; raises Stalled when there is neither."""
    path = Path(name)
    if not path.is_file():
        shipped = shipped_scenarios()
        if name not in shipped:
            raise Stalled(
                f"no scenario {name!r} is shipped, and no file is called so",
                code="usage",
                hint=f"shipped: {', '.join(shipped)}",
            )
        path = shipped[name]
    return read_scenario(name, path.read_bytes())


def fleet_files(
    scenario: ScenarioSpec, cluster_uid: str, time_scale: float = 1.0
) -> dict[str, str]:
    """The repository: Fleet, namespace, a file a service; see service_file for the scale."""
    pools = dict.fromkeys(node.pool for node in scenario.nodes)
    spec = {
        "cluster": {"uid": cluster_uid},
        "mode": "Correct",
        "include": ["/models/*.yaml", "/bundles/*/bundle.yaml"],
        "defaults": {"namespace": NAMESPACE},
        "pools": [{"name": p, "nodeSelector": {"matchLabels": {"pool": p}}} for p in pools],
        "status": {"flushInterval": "10m", "snapshot": "None"},
    }
    files = {
        FLEET_PATH: _text("Fleet", FLEET_NAME, merged(spec, scenario.fleet)),
        "bundles/base/bundle.yaml": _text(
            "Bundle", "base", {"render": {"manifests": ["namespace.yaml"]}}
        ),
        "bundles/base/namespace.yaml": yaml.safe_dump(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        ),
    }
    for service in scenario.services:
        path, text = service_file(service.name, service_spec(scenario, service), time_scale)
        files[path] = text
    return files


def service_spec(scenario: ScenarioSpec, service: ServiceBlock) -> dict[str, Any]:
    """The whole spec of a service."""
    model = {"uri": f"hf://example/{service.name}", "revision": "a" * 40, "size": "15Gi"}
    plain = {**_SPEC, "model": model, "placement": _pools(scenario)}
    return merged(merged(plain, scenario.defaults), service.spec)


def service_file(name: str, spec: dict[str, Any], time_scale: float = 1.0) -> tuple[str, str]:
    """Path and text of the file of a service, its drain times divided by `time_scale`."""
    drain = spec.get("drain")
    if time_scale != 1 and isinstance(drain, dict):
        faster = {
            key: duration_text(round(duration_ms(value) / time_scale))
            for key, value in drain.items()
        }
        spec = {**spec, "drain": faster}
    return f"models/{name}.yaml", _text("ModelService", name, spec)


def merged(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """`base` with a patch, as a Fleet's unitPatches are merged; neither is changed."""
    return overlay(Layer(base), Layer(patch)).value


def _pools(scenario: ScenarioSpec) -> dict[str, Any]:
    pools = dict.fromkeys(node.pool for node in scenario.nodes)
    return {"pools": [{"name": pool} for pool in pools]}


def _text(kind: str, name: str, spec: dict[str, Any]) -> str:
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    return yaml.safe_dump(body, sort_keys=False)

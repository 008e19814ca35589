"""From the cold-start operator's VllmService, FleetService and NodeState to files; pure.

A live object comes in, a `Converted` goes out: its file, and every field that is not in it with
the reason. Nothing is adopted: the new replicas come up beside the old ones, which go when
their object is deleted. Called by import_objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.cli.import_notes import Notes, block, one_of
from stoker.objects import names
from stoker.report import manifest_text

__all__ = ["COLD_START_KINDS", "Converted", "convert"]

COLD_START_KINDS = {
    "fleetservice": "FleetService",
    "nodestate": "NodeState",
    "vllmservice": "VllmService",
}
"""As they are named on the command line, and their kinds. Their group is whatever serves them."""
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_GRAPHS = {"Eager": "Skip", "Graph": "Capture"}
_ORDERS = ("WarmthFirst", "EfficiencyAware", "Spread", "BinPack")
_HEALTH = "/health"
"""What the template asks too."""
_REFUSES = "    rootDisk: Refuse"
_TO_ALLOW = "  # the operator did not look; Allow, where the path is on the root disk of its nodes"
_POD_FIELDS = frozenset(
    {"warmupStrategy", "image", "gpu", "healthPath", "runtimeClassName", "extraArgs",
     "modelCacheHostPath", "nodeName"}
)  # fmt: skip
_MEASURED = "measured anew by stoker reporter"
_NODE_STATUS = {
    "notice": "a notice is told anew by stoker reporter",
    "spot": "a notice is told anew by stoker reporter",
}


@dataclass(frozen=True, slots=True)
class Converted:
    """Files by path, and what is in none of them: `Kind/name field (why)`."""

    files: Mapping[str, str] = field(hash=False)
    left: tuple[str, ...] = ()


def convert(live: Mapping[str, Any], image: str = "") -> Converted:
    """The files of one object. `image` is what its replicas run where the object names none.

    Raises Stalled `source-not-carried` where a required field is missing or unreadable.
    """
    match live["kind"]:
        case "VllmService":
            return _vllm_service(live, image)
        case "FleetService":
            return _fleet_service(live, image)
        case _:
            return _node_state(live)


def _vllm_service(live: Mapping[str, Any], image: str) -> Converted:
    notes = Notes(live)
    for owner in live["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            raise notes.refuse(f"{owner.get('kind')}/{owner.get('name')} makes it: import that")
    spec = block(live, "spec", notes)
    service = _service(spec, spec, image, notes, "spec")
    notes.others(spec, {"model", "replicas", *_POD_FIELDS}, "spec")
    return _written(live, service, notes)


def _fleet_service(live: Mapping[str, Any], image: str) -> Converted:
    notes = Notes(live)
    spec = block(live, "spec", notes)
    template = block(spec, "template", notes)
    service = _service(spec, template, image, notes, "spec.template")
    notes.others(template, _POD_FIELDS, "spec.template")
    _pool(block(spec, "nodePool", notes), service, notes)
    service["placement"] = _placement(block(spec, "placement", notes), notes)
    _hysteresis(block(spec, "hysteresis", notes), service, notes)
    known = {"model", "replicas", "template", "nodePool", "placement", "hysteresis"}
    notes.others(spec, known, "spec")
    return _written(live, service, notes)


def _service(
    spec: Mapping[str, Any], pod: Mapping[str, Any], image: str, notes: Notes, at: str
) -> dict[str, Any]:
    """What both kinds say of a replica."""
    model = str(spec.get("model") or "")
    if not _HUB.fullmatch(model):
        raise notes.refuse(f"its model {model or '(none)'!r} is no repository of a hub")
    image = str(pod.get("image") or image)
    if not image:
        raise notes.refuse("it names no image, and no Deployment of its name runs one")
    notes.add("spec.model", "it has no revision: write the commit in place of main")
    engine: dict[str, Any] = {"type": "vllm", "image": image}
    if arguments := pod.get("extraArgs"):
        engine["args"] = [str(each) for each in arguments]
    engine["cudaGraphs"] = one_of(_GRAPHS, pod, "warmupStrategy", "Eager", notes, at)
    service: dict[str, Any] = {
        "model": {"uri": f"hf://{model}", "revision": "main", "servedNames": [model]},
        "engine": engine,
        "gpu": {"count": int(pod.get("gpu", 1))},
        "replicas": int(spec.get("replicas", 1)),
    }
    if pod.get("healthPath", _HEALTH) != _HEALTH:
        notes.add(f"{at}.healthPath", f"Ready means a served token; {_HEALTH} is asked after that")
    if path := pod.get("modelCacheHostPath"):
        service["cache"] = {"type": "HostPath", "path": str(path), "rootDisk": "Refuse"}
        notes.add(
            f"{at}.modelCacheHostPath",
            f"carried; weights are kept below {path}/huggingface, and a node without a disk "
            f"mounted there is refused: cache.rootDisk: Allow takes its root disk",
        )
    inner: dict[str, Any] = {}
    if runtime := pod.get("runtimeClassName"):
        inner["runtimeClassName"] = str(runtime)
    if node := pod.get("nodeName"):
        inner["nodeSelector"] = {"kubernetes.io/hostname": str(node)}
    if inner:
        service["podTemplate"] = {"spec": inner}
    return service


def _pool(pool: Mapping[str, Any], service: dict[str, Any], notes: Notes) -> None:
    """Which nodes may be used, as the pod says it: pools belong to the Fleet."""
    selector = block(pool, "selector", notes)
    plain = {"matchLabels", "matchExpressions"}.isdisjoint(selector)
    labels = selector if plain else block(selector, "matchLabels", notes)
    expressions = [] if plain else list(selector.get("matchExpressions") or ())
    inner = service.setdefault("podTemplate", {}).setdefault("spec", {})
    if labels:
        found = {str(key): str(value) for key, value in sorted(labels.items())}
        inner["nodeSelector"] = {**inner.get("nodeSelector", {}), **found}
    if expressions:
        terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        inner["affinity"] = {"nodeAffinity": required}
    if not inner:
        del service["podTemplate"]
    spot = block(pool, "spotPolicy", notes)
    for name in sorted(spot):
        notes.add(
            f"spec.nodePool.spotPolicy.{name}",
            "the operator never obeyed it; give spot nodes a pool",
        )
    notes.others(pool, {"selector", "spotPolicy"}, "spec.nodePool")
    if not plain:
        notes.others(selector, {"matchLabels", "matchExpressions"}, "spec.nodePool.selector")


def _placement(said: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    orders = {name: name for name in _ORDERS}
    order = one_of(orders, said, "strategy", "WarmthFirst", notes, "spec.placement")
    if order in {"Spread", "BinPack"}:
        notes.add(
            "spec.placement.strategy", f"carried; the operator placed by WarmthFirst, not {order}"
        )
    placement: dict[str, Any] = {"order": order}
    if (age := said.get("signalMaxAgeSeconds")) is not None:
        placement["signalMaxAge"] = f"{int(age)}s"
    notes.others(said, {"strategy", "signalMaxAgeSeconds"}, "spec.placement")
    return placement


def _hysteresis(said: Mapping[str, Any], service: dict[str, Any], notes: Notes) -> None:
    if (moves := said.get("maxConcurrentReschedules")) is not None:
        service["disruption"] = {"maxConcurrentMoves": max(1, int(moves))}
        if int(moves) < 1:
            notes.add(
                "spec.hysteresis.maxConcurrentReschedules", "0 would move nothing; 1 is written"
            )
    if "stableReconcilesRequired" in said:
        notes.add(
            "spec.hysteresis.stableReconcilesRequired", "it counts reconciles, which are no time"
        )
    notes.others(said, {"maxConcurrentReschedules", "stableReconcilesRequired"}, "spec.hysteresis")


def _node_state(live: Mapping[str, Any]) -> Converted:
    """A Bundle with the interval of its reporter: all else of a node is measured, not wanted."""
    notes = Notes(live)
    name = str(live["metadata"]["name"])
    spec = block(live, "spec", notes)
    notes.others(spec, {"reportIntervalSeconds"}, "spec")
    for found in sorted(block(live, "status", notes)):
        notes.add(f"status.{found}", _NODE_STATUS.get(found, _MEASURED))
    if (interval := spec.get("reportIntervalSeconds")) is None:
        return Converted({}, tuple(notes.lines))
    body = {
        "apiVersion": names.API_VERSION,
        "kind": "NodeState",
        "metadata": {"name": name},
        "spec": {"reportIntervalSeconds": int(interval)},
    }
    bundle = {
        "apiVersion": names.API_VERSION,
        "kind": "Bundle",
        "metadata": {"name": "node-states"},
        "spec": {"render": {"manifests": ["*.yaml"]}},
    }
    files = {
        "node-states/bundle.yaml": manifest_text(bundle),
        f"node-states/nodestate-{name}.yaml": manifest_text(body),
    }
    return Converted(files, tuple(notes.lines))


def _written(live: Mapping[str, Any], service: dict[str, Any], notes: Notes) -> Converted:
    metadata = live["metadata"]
    name = str(metadata["name"])
    if live.get("status"):
        notes.add("status", "observed anew")
    for what in ("labels", "annotations"):
        if metadata.get(what):
            notes.add(f"metadata.{what}", "a unit has none")
    body = {
        "apiVersion": names.API_VERSION,
        "kind": "ModelService",
        "metadata": {"name": name, "namespace": str(metadata.get("namespace") or "default")},
        "spec": service,
    }
    head = f"# Imported from {notes.object}; delete that once these replicas serve.\n"
    text = manifest_text(body).replace(_REFUSES, _REFUSES + _TO_ALLOW, 1)
    return Converted({f"{name}.yaml": head + text}, tuple(notes.lines))

"""Random manifests and random histories of writes, for the comparison of both servers."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from contract.api import Answer, Api

Json = dict[str, Any]

MANAGERS = ("s", "t", "u")
WAYS = ("apply", "force", "merge", "strategic", "put", "scale", "status")
WEIGHTS = (6, 2, 2, 2, 1, 1, 1)


def config_map(random: Random) -> Json:
    fields: Json = {}
    if random.random() < 0.8:
        fields["data"] = _maybe_empty(random, _some(random, "abc", ("1", "2", "")))
    metadata: Json = {}
    if random.random() < 0.4:
        metadata["labels"] = _maybe_empty(random, _some(random, "xy", ("1", "2")))
    if random.random() < 0.3:
        metadata["finalizers"] = [f"a.io/{name}" for name in "xyz" if random.random() < 0.5]
    return {**fields, "metadata": metadata} if metadata else fields


def deployment(random: Random) -> Json:
    names = random.sample(["c", "d", "e"], random.randint(1, 3))
    pod: Json = {"containers": [_container(random, name) for name in names]}
    if random.random() < 0.3:
        pod["nodeSelector"] = _some(random, "xy", ("1",))
    if random.random() < 0.3:
        chosen = random.sample(["v", "w"], random.randint(0, 2))
        pod["volumes"] = [{"name": name, "emptyDir": {}} for name in chosen]
    if random.random() < 0.2:
        pod["hostNetwork"] = random.choice([False, None])
    labels = {"app": "a", **_some(random, "v", ("1", "2"))}
    spec: Json = {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if random.random() < 0.6:
        spec["replicas"] = random.choice([0, 1, 2, 3, None])
    if random.random() < 0.3:
        rolling = {"rollingUpdate": {"maxSurge": random.choice([1, "50%"])}}
        spec["strategy"] = random.choice([{"type": "Recreate"}, rolling, {}])
    return {"spec": spec}


def _container(random: Random, name: str) -> Json:
    container: Json = {"name": name, "image": random.choice(["x:1", "x:2"])}
    if random.random() < 0.5:
        chosen = random.sample("ABC", random.randint(0, 3))
        container["env"] = [{"name": n, "value": random.choice(["1", "2", ""])} for n in chosen]
    if random.random() < 0.4:
        container["args"] = [random.choice("ab") for _ in range(random.randint(0, 2))]
    if random.random() < 0.4:
        ports = random.sample([80, 81], random.randint(0, 2))
        protocols: tuple[Json, ...] = ({}, {"protocol": "UDP"})
        container["ports"] = [{"containerPort": p, **random.choice(protocols)} for p in ports]
    if random.random() < 0.4:
        cpu = {"limits": {"cpu": random.choice(["1", "1000m", "2"])}}
        container["resources"] = random.choice([{}, {"limits": {}}, cpu])
    if random.random() < 0.2:
        container["tty"] = random.choice([True, False, None])
    if random.random() < 0.2:
        container["securityContext"] = random.choice([{}, {"privileged": False}])
    return container


def gizmo(random: Random) -> Json:
    choices: dict[str, tuple[Any, ...]] = {
        "replicas": (0, 1, 2),
        "mode": ("A", "B", None),
        "nothing": (None, 1),
        "share": (1, "10%"),
        "plain": ([], ["a"], ["b"]),
        "things": ([], [{"a": "1"}], [{}]),
        "set": ([], ["a"], ["b", "a"], ["c", "a", "b"]),
        "byname": ([], [{"name": "m"}], [{"name": "n", "v": "1"}, {"name": "m", "v": "2"}]),
        "defaulted": ([], ["y"], None),
        "map": ({}, {"k": "1"}, {"k": "2", "l": "1"}),
        "whole": ({}, {"k": "1"}, {"l": "1"}),
        "any": ({}, {"a": 1}, {"a": {"b": 1}}, {"a": [1]}, {"a": None}),
    }
    spec = {k: random.choice(v) for k, v in choices.items() if random.random() < 0.3}
    return {"spec": spec} if random.random() < 0.95 else {}


def service(random: Random) -> Json:
    ports = [
        {
            "port": port,
            **random.choice(({}, {"protocol": "UDP"})),
            **({"name": f"n{index}"} if random.random() < 0.8 else {}),
            **({"targetPort": random.choice([8000, "web"])} if random.random() < 0.4 else {}),
        }
        for index, port in enumerate(random.sample([80, 81, 82], random.randint(0, 3)))
    ]
    spec: Json = {"ports": ports}
    if random.random() < 0.7:
        spec["selector"] = _some(random, "ab", ("1", "2"))
    if random.random() < 0.2:
        spec["clusterIP"] = "None"
    if random.random() < 0.2:
        spec["sessionAffinity"] = random.choice(["None", "ClientIP"])
    return {"spec": spec}


def budget(random: Random) -> Json:
    bounds: tuple[Json, ...] = ({}, {"maxUnavailable": 1}, {"minAvailable": "50%"})
    selectors: tuple[Json, ...] = ({}, {"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "2"}})
    spec = {**random.choice(bounds), "selector": random.choice(selectors)}
    return {"spec": spec}


MAKERS = {
    "ConfigMap": config_map,
    "Deployment": deployment,
    "Gizmo": gizmo,
    "Service": service,
    "PodDisruptionBudget": budget,
}
SCALED = ("Deployment", "Gizmo")


def _some(random: Random, keys: str, values: tuple[str, ...]) -> dict[str, str]:
    return {key: random.choice(values) for key in keys if random.random() < 0.5}


def _maybe_empty(random: Random, value: dict[str, str]) -> Any:
    return random.choice([None, {}]) if random.random() < 0.15 else value


def written(api: Api, kind: str, way: str, by: str, fields: Json, count: Any) -> Answer:
    """One write to the object `o`."""
    match way:
        case "apply" | "force":
            return api.apply(kind, "o", fields, by=by, force=True if way == "force" else None)
        case "merge" | "strategic":
            return api.patch(kind, "o", fields, by=by, how=way)
        case "scale":
            return api.scale(kind, "o", count, by=by)
        case "status":
            return api.patch(kind, "o", {"status": {"replicas": count}}, by=by, sub="status")
        case _:
            live = api.get(kind, "o")
            if live.status != 200:
                return live
            body = api.whole(kind, fields, "o")
            body["metadata"]["resourceVersion"] = live.rv
            return api.put(kind, "o", body, by=by)


def comparable(answer: Answer) -> Any:
    """What both servers must agree on: everything but ids, times, versions and addresses."""
    if answer.status >= 300:
        texts = answer.message if answer.status in {409, 500} else ""
        return answer.status, answer.reason, texts, answer.causes if answer.status == 409 else []
    body = json.loads(json.dumps(answer.body))
    metadata = body["metadata"]
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        metadata.pop(key, None)
    entries = [
        {k: v for k, v in e.items() if k != "time"} for e in metadata.get("managedFields", ())
    ]
    metadata["managedFields"] = sorted(entries, key=lambda e: json.dumps(e, sort_keys=True))
    spec = body.get("spec") or {}
    if spec.get("clusterIP") not in {None, "None"}:
        spec["clusterIP"], spec["clusterIPs"] = "…", ["…"]
    return answer.status, body

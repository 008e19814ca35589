"""Recognises a Deployment that runs vLLM, and writes the ModelService that adopts it.

A live Deployment comes in, the text of a ModelService with `spec.adopt` goes out, or why it
cannot be written: what is not recognised is never guessed. Arguments that mean the same in
the file's own words move there, all others are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker.errors import Stalled
from stoker.objects import names
from stoker.objects.masks import masked
from stoker.report import manifest_text

__all__ = ["service_text"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_GPU = "nvidia.com/gpu"
PORT = "8000"
"""Where vLLM listens unless told otherwise, and what the template serves on."""
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_PLACING = ("nodeSelector", "tolerations", "affinity", "imagePullSecrets", "priorityClassName")
"""Parts of the pod that a rendered template needs too, once it takes the old one's place."""

_WITH_VALUE = {
    "--model": "model",
    "--revision": "revision",
    "--served-model-name": "served",
    "--tensor-parallel-size": "tensor",
    "-tp": "tensor",
    "--pipeline-parallel-size": "pipeline",
    "-pp": "pipeline",
    "--host": "",
    "--port": "port",
    "--shutdown-timeout": "",
}
"""Arguments that the template writes itself; those for nothing are its own business."""


@dataclass(slots=True)
class _Arguments:
    """vLLM's command line, taken apart."""

    model: str = ""
    revision: str = ""
    served: list[str] = field(default_factory=list)
    tensor: int = 1
    pipeline: int = 1
    eager: bool = False
    port: str = PORT
    others: list[str] = field(default_factory=list)


def service_text(
    live: dict[str, Any],
    *,
    counted_elsewhere: bool,
    scaling: Mapping[str, Any] | None = None,
    replicas: int | None = None,
) -> str:
    """The ModelService for a live Deployment, with `scaling.mode: External` if so counted.

    `scaling` is what another autoscaler's rules became, `replicas` a count that is not the live
    one; both go before who counts now.

    Raises Stalled `source-not-carried` that names what is missing or cannot be carried.
    """
    metadata, spec = live["metadata"], live["spec"]
    name = str(metadata["name"])
    pod = spec["template"]["spec"]
    container = _engine(pod, name)
    arguments = _arguments([*(container.get("command") or ()), *(container.get("args") or ())])
    uri, revision = _model(arguments, name)
    gpus = str(((container.get("resources") or {}).get("limits") or {}).get(_GPU, "0"))
    if not gpus.isdecimal() or int(gpus) < 1:
        raise _refused(name, f"container {container['name']} has no limit of {_GPU}")
    if arguments.tensor * arguments.pipeline != int(gpus):
        sizes = f"{arguments.tensor} times pipeline size {arguments.pipeline}"
        raise _refused(name, f"tensor parallel size {sizes} is not its {gpus} GPUs")
    if not _NAME.fullmatch(name):
        raise _refused(name, "its name is no DNS label")
    if arguments.port != PORT:
        raise _refused(name, f"it listens on port {arguments.port}, the template on {PORT}")
    if masked("Deployment", ("args",), arguments.others) != arguments.others:
        raise _refused(name, "an argument holds a secret in clear")
    service: dict[str, Any] = {
        "adopt": {"kind": "Deployment", "name": name},
        "placement": {"mode": "Scheduler"},
        "model": {"uri": uri, "revision": revision, **_names(arguments), **_token(container)},
        "engine": {"type": "vllm", "image": str(container["image"])},
        "gpu": {"count": int(gpus)},
    }
    if arguments.others:
        service["engine"]["args"] = arguments.others
    if not arguments.eager:
        service["engine"]["cudaGraphs"] = "Capture"
    if arguments.pipeline > 1:
        parallelism = {"tensor": arguments.tensor, "pipeline": arguments.pipeline}
        service["parallelism"] = parallelism
    if resources := _resources(container):
        service["resources"] = resources
    if scaling is not None:
        service["scaling"] = dict(scaling)
    elif replicas is not None:
        service["replicas"] = replicas
    elif counted_elsewhere:
        service["scaling"] = {"mode": "External"}
    else:
        service["replicas"] = int(spec.get("replicas", 1))
    if kept := {key: pod[key] for key in _PLACING if pod.get(key)}:
        service["podTemplate"] = {"spec": kept}
    body = {
        "apiVersion": names.API_VERSION,
        "kind": "ModelService",
        "metadata": {"name": name, "namespace": str(metadata["namespace"])},
        "spec": service,
    }
    head = f"# Imported from deployment/{name}; its pods stay as they are until the rev changes.\n"
    return head + manifest_text(body)


def _refused(name: str, why: str) -> Stalled:
    return Stalled(
        f"deployment/{name} is not carried as a ModelService: {why}",
        code="source-not-carried",
        hint="import it without --as, as a Bundle",
    )


def _engine(pod: dict[str, Any], name: str) -> dict[str, Any]:
    """The one container that runs vLLM."""
    found = [c for c in pod.get("containers") or () if _runs_vllm(c)]
    if len(found) != 1:
        raise _refused(name, f"{len(found)} of its containers run vLLM")
    engine: dict[str, Any] = found[0]
    return engine


def _runs_vllm(container: dict[str, Any]) -> bool:
    words = [
        str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))
    ]
    program = words[:2] == ["vllm", "serve"] or any("vllm.entrypoints" in word for word in words)
    image = str(container.get("image", "")).partition("@")[0].rpartition("/")[2]
    return program or image.startswith("vllm")


def _arguments(words: Sequence[Any]) -> _Arguments:
    """Take the command line apart; an image's own entry point leaves only its arguments."""
    found = _Arguments()
    todo = [str(word) for word in words]
    if todo[:2] == ["vllm", "serve"]:
        todo = todo[2:]
    elif len(todo) > 2 and todo[1] == "-m" and "vllm.entrypoints" in todo[2]:
        todo = todo[3:]
    if todo and not todo[0].startswith("-"):
        found.model = todo.pop(0)
    while todo:
        flag, equals, value = todo.pop(0).partition("=")
        if flag not in _WITH_VALUE:
            if flag == "--enforce-eager" and not equals:
                found.eager = True
            else:
                found.others.append(f"{flag}{equals}{value}")
            continue
        values = [value] if equals else _values(todo, many=flag == "--served-model-name")
        _set(found, _WITH_VALUE[flag], values)
    return found


def _values(todo: list[str], *, many: bool) -> list[str]:
    """The values after a flag, taken off the list."""
    taken: list[str] = []
    while todo and not todo[0].startswith("-") and (many or not taken):
        taken.append(todo.pop(0))
    return taken


def _set(found: _Arguments, what: str, values: list[str]) -> None:
    value = values[0] if values else ""
    match what:
        case "model":
            found.model = value
        case "revision":
            found.revision = value
        case "served":
            found.served += values
        case "port":
            found.port = value
        case "tensor" | "pipeline":
            setattr(found, what, int(value) if value.isdecimal() else 0)
        case _:
            pass


def _model(arguments: _Arguments, name: str) -> tuple[str, str]:
    """Where the weights come from, and their commit: without one they may change unseen."""
    if not _HUB.fullmatch(arguments.model):
        raise _refused(name, f"its model {arguments.model or '(none)'!r} is no repository of a hub")
    if not _COMMIT.fullmatch(arguments.revision):
        raise _refused(name, f"its --revision {arguments.revision or '(none)'!r} is no commit")
    return f"hf://{arguments.model}", arguments.revision


def _names(arguments: _Arguments) -> dict[str, Any]:
    served = arguments.served or [arguments.model]
    return {"servedNames": list(dict.fromkeys(served))}


def _token(container: dict[str, Any]) -> dict[str, Any]:
    """The Secret that holds the hub's token, where there is one."""
    for variable in container.get("env") or ():
        source = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if variable.get("name") in _TOKENS and source:
            return {"tokenSecretRef": {"name": source["name"], "key": source["key"]}}
    return {}


def _resources(container: dict[str, Any]) -> dict[str, Any]:
    requests = (container.get("resources") or {}).get("requests") or {}
    kept = {key: str(requests[key]) for key in ("cpu", "memory") if key in requests}
    return {"requests": kept} if kept else {}

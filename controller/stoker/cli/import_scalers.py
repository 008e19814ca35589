"""The autoscalers that `stoker import` translates: whose objects they are, and what is written.

Named objects (live, or documents of a file) come in; a `Scaled` each goes out, and the files and
lines made of them. With a cluster at hand it says who owned the count and what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from stoker.cli.import_hpa import translate_hpa
from stoker.cli.import_keda import translate_scaledobject
from stoker.cli.import_llmscaler import translate_llmscaler
from stoker.cli.import_scaling import MetricSources, Scaled, policy_text
from stoker.errors import Stalled
from stoker.kube.errors import KindNotFound, NotFound
from stoker.model.ports import Cluster
from stoker.objects.conflicts import REPLICAS
from stoker.objects.owned import owners

__all__ = [
    "TRANSLATED_KINDS",
    "count_line",
    "file_objects",
    "is_file",
    "policy_files",
    "source_lines",
    "translate",
]

_TRANSLATIONS: dict[str, Callable[[Mapping[str, Any], MetricSources], Scaled]] = {
    "HorizontalPodAutoscaler": translate_hpa,
    "LLMScaler": translate_llmscaler,
    "ScaledObject": translate_scaledobject,
}
TRANSLATED_KINDS = frozenset({"horizontalpodautoscaler", "scaledobject"})
"""Kinds on the command line that are carried as objects unless `--translate` is given."""


def translate(live: Mapping[str, Any], sources: MetricSources) -> Scaled:
    """The scaling block of one object; raises Stalled `source-not-carried` where there is none."""
    kind = str(live.get("kind") or "")
    if kind not in _TRANSLATIONS:
        known = ", ".join(sorted(_TRANSLATIONS))
        message = f"{kind or 'a document without kind'} is not translated: only {known} are"
        raise Stalled(message, code="source-not-carried")
    return _TRANSLATIONS[kind](live, sources)


def is_file(text: str) -> bool:
    """Whether an argument names a file rather than an object of the cluster."""
    return Path(text).suffix in {".json", ".yaml", ".yml"} and Path(text).is_file()


def file_objects(path: str, namespace: str) -> tuple[dict[str, Any], ...]:
    """The objects in a file, in its order; those without a namespace get the given one.

    Raises Stalled `source-not-carried` where it cannot be read.
    """
    try:
        documents = list(yaml.safe_load_all(Path(path).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = str(error).splitlines()[0]
        raise Stalled(f"{path} cannot be read: {why}", code="source-not-carried") from error
    found = []
    for document in documents:
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if document is None:
            continue
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise Stalled(f"{path} holds what is no object", code="source-not-carried")
        placed = {"namespace": namespace or "default", **metadata}
        found.append({**document, "metadata": placed})
    return tuple(found)


def policy_files(translated: Iterable[Scaled], sources: MetricSources) -> dict[str, str]:
    """A ScalePolicy for each object by path; none for one that pins its target at zero."""
    files: dict[str, str] = {}
    for scaled in translated:
        if scaled.scaling is None:
            continue
        path = f"{scaled.name}.yaml"
        if path in files:
            path = f"{scaled.target.namespace}-{scaled.name}.yaml"
        files[path] = policy_text(scaled, sources)
    return files


def source_lines(translated: Iterable[Scaled], sources: MetricSources) -> tuple[str, ...]:
    """What a person must add to the Fleet file and to the cluster, one line a source and Secret."""
    wanted = sorted({name for scaled in translated for name in scaled.sources})
    lines = []
    for name in wanted:
        (kind, server), *_ = ((k, v) for k, v in sources.entries[name].items() if k != "name")
        lines.append(f"add metric source {name} ({kind} {server['url']}) to the Fleet file")
        for entry in server.get("headersFrom", ()):
            secret = entry["secretRef"]["name"]
            keys = ", ".join(sources.headers[secret])
            lines.append(f"make Secret {secret} with {keys} in the controller's namespace")
    return tuple(lines)


def count_line(scaled: Scaled, cluster: Cluster | None) -> str:
    """Whose count it was, and that it stays: `owner of spec.replicas: x (Update) -> stoker`."""
    plain = f"{scaled.target.name} count goes from {scaled.scaler} to Stoker"
    if cluster is None:
        return plain
    try:
        live = cluster.get(scaled.target)
    except (KindNotFound, NotFound):
        return f"{plain}; {scaled.target} is not in the cluster"
    entries = [each for each in owners(live) if REPLICAS in each.fields]
    told = ", ".join(f"{each.manager} ({each.operation})" for each in entries) or "nobody"
    count = (live.get("spec") or {}).get("replicas", 1)
    return f"{scaled.target.name}: owner of spec.replicas: {told} -> stoker; count stays {count}"

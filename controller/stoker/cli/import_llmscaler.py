"""From an LLMScaler to a scaling block with algorithm Ratio, which is its rule to the letter; pure.

An object comes in, live or from a file, a `Scaled` goes out: every field of seed 001 is in the
block or named with the reason. Called by import_scalers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.cli.import_notes import Notes, block, one_of
from stoker.cli.import_scaling import MetricSources, Scaled, label, target_text, whole, workload
from stoker.source.durations import duration_text

__all__ = ["translate_llmscaler"]

SYNC_SECONDS = 15
"""syncPeriodSeconds without a word (seed 001)."""
_PATH = "/decisions"
_KNOWN = frozenset(
    {"targetRef", "metricProvider", "customProvider", "serverAddress", "serverHeaders",
     "minReplicas", "maxReplicas", "metrics", "syncPeriodSeconds", "retryPeriodSeconds",
     "scaleDown", "preemption"}
)  # fmt: skip
_DOWN = frozenset(
    {"stabilizationWindowSeconds", "maxStepReplicas", "behavior", "deletionCostQuery"}
)
_PREEMPTION = {
    "enable": "the operator never obeyed it; spec.priority and placement.reclaim of a "
    "ModelService do",
    "priorityClass": "the operator never obeyed it; podTemplate.spec.priorityClassName does",
}


def translate_llmscaler(live: Mapping[str, Any], sources: MetricSources) -> Scaled:
    """The scaling block of one LLMScaler.

    Raises Stalled `source-not-carried` where a required field is missing or unreadable.
    """
    notes = Notes(live)
    spec = block(live, "spec", notes)
    target = workload(block(spec, "targetRef", notes), live, notes, "spec.targetRef")
    low = whole(spec, "minReplicas", notes, "spec")
    high = whole(spec, "maxReplicas", notes, "spec")
    if low > high:
        raise notes.refuse(f"spec.minReplicas {low} is above maxReplicas {high}")
    asked = _Asked(spec, sources, notes)
    scaling: dict[str, Any] = {
        "minReplicas": low,
        "maxReplicas": high,
        "interval": _interval(spec, notes),
        "algorithm": "Ratio",
        "metrics": asked.metrics(),
        "scaleDown": _scale_down(spec, asked, notes),
    }
    if "retryPeriodSeconds" in spec:
        notes.add("spec.retryPeriodSeconds", "what fails is tried again at the next interval")
    preemption = block(spec, "preemption", notes)
    for name in sorted(preemption):
        why = _PREEMPTION.get(name, "a field that is not known here")
        notes.add(f"spec.preemption.{name}", why)
    notes.others(spec, _KNOWN, "spec")
    if live.get("status"):
        notes.add("status", "observed anew")
    for what in ("labels", "annotations"):
        if live["metadata"].get(what):
            notes.add(f"metadata.{what}", "a unit has none")
    return Scaled(
        scaler=notes.object,
        name=label(str(live["metadata"]["name"]), "scaler"),
        target=target,
        scaling=scaling if high else None,
        sources=(asked.source,),
        left=tuple(notes.lines),
    )


class _Asked:
    """What the object measures, and of whom."""

    def __init__(self, spec: Mapping[str, Any], sources: MetricSources, notes: Notes) -> None:
        self._spec = spec
        self._notes = notes
        words = {"Prometheus": "prometheus", "Custom": "decision"}
        self.kind = one_of(words, spec, "metricProvider", "Prometheus", notes, "spec")
        headers = {str(k): str(v) for k, v in block(spec, "serverHeaders", notes).items()}
        address = str(spec.get("serverAddress") or "")
        self.source = sources.named(self.kind, address, headers, notes, "spec.serverAddress")
        if headers:
            secret = f"{self.source}-headers"
            told = ", ".join(sorted(headers))
            notes.add("spec.serverHeaders", f"values never go to Git: Secret {secret} with {told}")

    def metrics(self) -> list[dict[str, Any]]:
        """The metrics of the block: queries with targets, or one decision."""
        custom = block(self._spec, "customProvider", self._notes)
        said = self._spec.get("metrics") or []
        if self.kind == "prometheus":
            if custom:
                self._notes.add("spec.customProvider", "read under metricProvider Custom only")
            return self._queries(said)
        if said:
            self._notes.add("spec.metrics", "not read under metricProvider Custom")
        return [self._decision(custom)]

    def _queries(self, said: Any) -> list[dict[str, Any]]:
        if not isinstance(said, list) or not said:
            raise self._notes.refuse("spec.metrics is empty")
        found: list[dict[str, Any]] = []
        for index, metric in enumerate(said):
            at = f"spec.metrics[{index}]"
            if not isinstance(metric, Mapping):
                raise self._notes.refuse(f"{at} is no map")
            query = str(metric.get("query") or "").strip()
            if not query:
                raise self._notes.refuse(f"{at}.query is missing")
            written = str(metric.get("name") or "")
            name = label(written, f"metric-{index + 1}", [each["name"] for each in found])
            if written and name != written:
                self._notes.add(f"{at}.name", f"carried as {name}")
            self._notes.others(metric, {"name", "query", "target"}, at)
            found.append(
                {
                    "name": name,
                    "prometheus": {"source": self.source, "query": query},
                    "targetPerReplica": target_text(
                        metric.get("target", ""), self._notes, f"{at}.target"
                    ),
                }
            )
        return found

    def _decision(self, custom: Mapping[str, Any]) -> dict[str, Any]:
        service = str(custom.get("serviceId") or "")
        if not service:
            raise self._notes.refuse("spec.customProvider.serviceId is missing")
        decision: dict[str, Any] = {"source": self.source, "serviceId": service}
        if namespace := str(custom.get("namespace") or ""):
            decision["namespace"] = namespace
        if (path := str(custom.get("path") or _PATH)) != _PATH:
            decision["path"] = path
        self._notes.others(custom, {"serviceId", "namespace", "path"}, "spec.customProvider")
        return {"name": "decision", "decision": decision}


def _interval(spec: Mapping[str, Any], notes: Notes) -> str:
    seconds = whole(spec, "syncPeriodSeconds", notes, "spec", SYNC_SECONDS)
    if seconds == 0:
        notes.add("spec.syncPeriodSeconds", f"0 would never decide again; {SYNC_SECONDS}s written")
    return duration_text((seconds or SYNC_SECONDS) * 1_000)


def _scale_down(spec: Mapping[str, Any], asked: _Asked, notes: Notes) -> dict[str, Any]:
    said = block(spec, "scaleDown", notes)
    at = "spec.scaleDown"
    window = whole(said, "stabilizationWindowSeconds", notes, at, 0)
    words = {"CacheAware": "CacheAware", "None": "None"}
    behavior = one_of(words, said, "behavior", "CacheAware", notes, at)
    found: dict[str, Any] = {
        "stabilizationWindow": duration_text(window * 1_000),
        "maxStep": whole(said, "maxStepReplicas", notes, at, 0),
        "behavior": behavior,
    }
    if query := str(said.get("deletionCostQuery") or "").strip():
        if asked.kind == "decision":
            notes.add(f"{at}.deletionCostQuery", "not read under metricProvider Custom")
        elif behavior == "None":
            notes.add(f"{at}.deletionCostQuery", "not read with behavior None")
        else:
            found["deletionCost"] = {"source": asked.source, "query": query}
    notes.others(said, _DOWN, at)
    return found

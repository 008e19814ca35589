"""From a KEDA ScaledObject to a scaling block; pure.

Triggers of type prometheus and cron are carried, every other one is named. Its value is that of
all replicas together unless the trigger says Value, as KEDA hands it to the HPA (semantics 1.8).
Called by import_scalers for `stoker import --translate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from stoker.cli.import_hpa import scale_down_of
from stoker.cli.import_notes import Notes, block
from stoker.cli.import_scaling import (
    MetricSources,
    Scaled,
    decimal_text,
    label,
    target_text,
    whole,
    workload,
)
from stoker.source.durations import duration_text

__all__ = ["translate_scaledobject"]

POLLING_SECONDS = 30
COOLDOWN_SECONDS = 300
MOST = 100
"""pollingInterval, cooldownPeriod and maxReplicaCount without a word (semantics 1.8, KEDA)."""
_DAY_MINUTES = 24 * 60
_SPEC = frozenset(
    {"scaleTargetRef", "pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount",
     "triggers", "advanced"}
)  # fmt: skip
_NAMED = {
    "fallback": "a failed read holds the count; it never sets one",
    "idleReplicaCount": "the count goes down to minReplicas; write minReplicas: 0 for none",
    "initialCooldownPeriod": "never to zero before the first replica was Ready",
}
_TRIGGER = frozenset({"type", "name", "metadata", "metricType", "authenticationRef"})
_ASKED = {
    "activationThreshold", "authModes", "customHeaders", "ignoreNullValues", "query",
    "serverAddress", "threshold",
}  # fmt: skip
_NOT_ASKED = {
    "metricName": "the name of the trigger is used",
    "namespace": "not sent with the query: write it as a label in the query",
    "queryParameters": "not sent with the query",
    "timeout": "the controller has one deadline for all reads",
    "unsafeSsl": "certificates are always checked",
}
_PAUSES = ("autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas")


def translate_scaledobject(live: Mapping[str, Any], sources: MetricSources) -> Scaled:
    """The scaling block of one ScaledObject.

    Raises Stalled `source-not-carried` where none of its triggers can be translated, or where a
    formula over them says the count.
    """
    notes = Notes(live)
    spec = block(live, "spec", notes)
    said = {"apiVersion": "apps/v1", "kind": "Deployment", **block(spec, "scaleTargetRef", notes)}
    said.pop("envSourceContainerName", None)
    target = workload(said, live, notes, "spec.scaleTargetRef")
    low = whole(spec, "minReplicaCount", notes, "spec", 0)
    high = whole(spec, "maxReplicaCount", notes, "spec", MOST)
    triggers = _Triggers(sources, notes, high)
    for index, trigger in enumerate(spec.get("triggers") or ()):
        triggers.add(trigger, f"spec.triggers[{index}]")
    if not triggers.metrics:
        told = "; ".join(notes.lines) or "it has none"
        raise notes.refuse(f"none of its triggers can be translated: {told}")
    scaling: dict[str, Any] = {
        "minReplicas": low,
        "maxReplicas": high,
        "interval": _seconds(spec, "pollingInterval", notes, POLLING_SECONDS),
        "algorithm": "Ratio",
        "metrics": triggers.metrics,
        "scaleDown": _advanced(block(spec, "advanced", notes), notes),
    }
    if low == 0:
        idle = _seconds(spec, "cooldownPeriod", notes, COOLDOWN_SECONDS)
        scaling["scaleToZero"] = {"policy": "AfterIdle", "idle": idle, "wake": triggers.wake}
    if triggers.scheduled:
        scaling["scheduled"] = triggers.scheduled
    for name, why in _NAMED.items():
        if name in spec:
            notes.add(f"spec.{name}", why)
    notes.others(spec, _SPEC | set(_NAMED), "spec")
    annotations = block(live["metadata"], "annotations", notes)
    for name in _PAUSES:
        if name in annotations:
            notes.add(f"metadata.annotations[{name}]", "write suspend: true to hold the count")
    return Scaled(
        scaler=notes.object,
        name=label(str(live["metadata"]["name"]), "scaler"),
        target=target,
        scaling=scaling,
        sources=tuple(triggers.sources),
        left=tuple(notes.lines),
    )


class _Triggers:
    """What triggers become: metrics, wake sources and scheduled bounds."""

    def __init__(self, sources: MetricSources, notes: Notes, most: int) -> None:
        self._known = sources
        self._notes = notes
        self._most = most
        self.metrics: list[dict[str, Any]] = []
        self.wake: list[dict[str, Any]] = []
        self.scheduled: list[dict[str, Any]] = []
        self.sources: list[str] = []

    def add(self, trigger: Any, at: str) -> None:
        """One trigger, or why it is in no file."""
        kind = str(trigger.get("type") or "") if isinstance(trigger, Mapping) else ""
        if kind == "prometheus":
            self._prometheus(trigger, at)
        elif kind == "cron":
            self._cron(trigger, at)
        else:
            why = f"type {kind or '(none)'}: ask what it measures through Prometheus"
            self._notes.add(at, why)

    def _prometheus(self, trigger: Mapping[str, Any], at: str) -> None:
        notes, said = self._notes, block(trigger, "metadata", self._notes)
        query = str(said.get("query") or "").strip()
        if not query:
            raise notes.refuse(f"{at}.metadata.query is missing")
        target = target_text(said.get("threshold", ""), notes, f"{at}.metadata.threshold")
        source = self._source(trigger, said, at)
        taken = [each["name"] for each in self.metrics]
        name = label(str(trigger.get("name") or ""), f"metric-{len(self.metrics) + 1}", taken)
        metric: dict[str, Any] = {
            "name": name,
            "prometheus": {"source": source, "query": query},
            "targetPerReplica": target,
        }
        if trigger.get("metricType", "AverageValue") == "AverageValue":
            metric["value"] = "Total"
        self.metrics.append(metric)
        wake = {"name": name, "prometheus": {"source": source, "query": _above(said, query)}}
        self.wake.append({**wake, "hold": "0s"})
        if "ignoreNullValues" in said:
            notes.add(f"{at}.metadata.ignoreNullValues", "an empty answer is not known: it holds")
        for key, why in _NOT_ASKED.items():
            if key in said:
                notes.add(f"{at}.metadata.{key}", why)
        notes.others(said, _ASKED | set(_NOT_ASKED), f"{at}.metadata")
        notes.others(trigger, _TRIGGER, at)

    def _source(self, trigger: Mapping[str, Any], said: Mapping[str, Any], at: str) -> str:
        headers: dict[str, str] = {}
        for pair in str(said.get("customHeaders") or "").split(","):
            key, equals, value = pair.partition("=")
            if equals:
                headers[key.strip()] = value.strip()
        reference = block(trigger, "authenticationRef", self._notes)
        if reference:
            headers["Authorization"] = f"{reference.get('kind', '')}/{reference.get('name', '')}"
        address = str(said.get("serverAddress") or "")
        where = f"{at}.metadata.serverAddress"
        source = self._known.named("prometheus", address, headers, self._notes, where)
        if headers:
            told = ", ".join(sorted(headers))
            why = f"values never go to Git: Secret {source}-headers with {told}"
            self._notes.add(f"{at}.authenticationRef" if reference else f"{at}.metadata", why)
        self.sources.append(source)
        return source

    def _cron(self, trigger: Mapping[str, Any], at: str) -> None:
        said = block(trigger, "metadata", self._notes)
        start, end = str(said.get("start") or ""), str(said.get("end") or "")
        wanted = str(said.get("desiredReplicas") or "")
        minutes = _minutes_between(start, end)
        if minutes is None or not wanted.isdecimal():
            why = "its times are no two of one day; write spec.scaling.scheduled by hand"
            self._notes.add(at, why)
            return
        taken = [each["name"] for each in self.scheduled]
        entry: dict[str, Any] = {
            "name": label(str(trigger.get("name") or ""), f"cron-{len(taken) + 1}", taken),
            "schedule": start,
            "duration": duration_text(minutes * 60_000),
            "timeZone": str(said.get("timezone") or "UTC"),
            "minReplicas": min(int(wanted), self._most),
        }
        self.scheduled.append(entry)
        if entry["minReplicas"]:
            self.wake.append({"name": f"at-{entry['name']}"[:63], "scheduled": entry["name"]})
        self._notes.others(said, {"start", "end", "timezone", "desiredReplicas"}, f"{at}.metadata")


def _above(said: Mapping[str, Any], query: str) -> str:
    """What wakes: 1 while the value is above the activation threshold, which is 0 by itself."""
    least = decimal_text(str(said.get("activationThreshold") or "0"))
    return f"({query}) > bool {least}" if least and Decimal(least) > 0 else query


def _minutes_between(start: str, end: str) -> int | None:
    """From one daily time to the next other one; None where the days of both differ."""
    first, last = start.split(), end.split()
    fields = 5
    if len(first) != fields or len(last) != fields or first[2:] != last[2:]:
        return None
    if not all(text.isdecimal() for text in (*first[:2], *last[:2])):
        return None
    begin, stop = (int(each[1]) * 60 + int(each[0]) for each in (first, last))
    overnight = stop <= begin
    if overnight and first[2:] != ["*", "*", "*"]:
        return None
    return (stop - begin) % _DAY_MINUTES or _DAY_MINUTES


def _seconds(spec: Mapping[str, Any], name: str, notes: Notes, usual: int) -> str:
    seconds = whole(spec, name, notes, "spec", usual)
    return duration_text(seconds * 1_000)


def _advanced(said: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    at = "spec.advanced"
    if said.get("scalingModifiers"):
        raise notes.refuse(f"{at}.scalingModifiers: a formula over triggers has no counterpart")
    if "restoreToOriginalReplicaCount" in said:
        why = "a count stays as it is when the policy goes"
        notes.add(f"{at}.restoreToOriginalReplicaCount", why)
    inner = block(said, "horizontalPodAutoscalerConfig", notes)
    here = f"{at}.horizontalPodAutoscalerConfig"
    if "name" in inner:
        notes.add(f"{here}.name", "no HPA is made")
    notes.others(inner, {"behavior", "name"}, here)
    known = {"horizontalPodAutoscalerConfig", "restoreToOriginalReplicaCount", "scalingModifiers"}
    notes.others(said, known, at)
    return scale_down_of(block(inner, "behavior", notes), notes, f"{here}.behavior")

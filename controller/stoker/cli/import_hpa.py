"""From a HorizontalPodAutoscaler to a scaling block, as far as its rules can be told apart; pure.

An HPA names its metrics, not the queries behind them: those stand in the rules of a metrics
adapter. So only metrics of vLLM itself are carried, and every other is named with what to write.
Called by import_scalers for `stoker import --translate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from stoker.cli.import_notes import Notes, block
from stoker.cli.import_scaling import MetricSources, Scaled, decimal_text, label, whole, workload
from stoker.objects.quantity import parse_quantity
from stoker.source.durations import duration_text

__all__ = ["scale_down_of", "translate_hpa"]

INTERVAL = "15s"
"""How often the HPA controller decides (semantics 1.8)."""
WINDOW_SECONDS = 300
"""Its window of scale-down without a word (semantics 1.8)."""
_VLLM = ("vllm:", "vllm_")
"""How metrics of the engine are called, by the engine and by adapters that allow no colon."""
_KNOWN = frozenset({"scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"})
_HINTS = {
    "Resource": "how busy a processor is says nothing of an engine's load",
    "ContainerResource": "how busy a processor is says nothing of an engine's load",
}
_EXTERNAL = ("External", "Object")


def translate_hpa(live: Mapping[str, Any], sources: MetricSources) -> Scaled:
    """The scaling block of one HPA.

    Raises Stalled `source-not-carried` where none of its metrics can be translated, or where a
    count would fall that the HPA keeps.
    """
    del sources  # its queries are not in it
    notes = Notes(live)
    spec = block(live, "spec", notes)
    target = workload(block(spec, "scaleTargetRef", notes), live, notes, "spec.scaleTargetRef")
    high = whole(spec, "maxReplicas", notes, "spec")
    low = whole(spec, "minReplicas", notes, "spec", 1)
    if low == 0:
        low = 1
        notes.add("spec.minReplicas", "written as 1: it does not say what wakes from 0")
    metrics = _metrics(spec.get("metrics") or [], notes)
    if not metrics:
        why = "; ".join(notes.lines) or "it names no metrics but the default, which is cpu"
        raise notes.refuse(f"none of its metrics can be translated: {why}")
    scaling: dict[str, Any] = {
        "minReplicas": low,
        "maxReplicas": high,
        "interval": INTERVAL,
        "algorithm": "Ratio",
        "metrics": metrics,
        "scaleDown": scale_down_of(block(spec, "behavior", notes), notes, "spec.behavior"),
    }
    notes.add("spec.metrics", "carried without the HPA's tolerance of 10%")
    notes.others(spec, _KNOWN, "spec")
    return Scaled(
        scaler=notes.object,
        name=label(str(live["metadata"]["name"]), "scaler"),
        target=target,
        scaling=scaling,
        left=tuple(notes.lines),
    )


def scale_down_of(behavior: Mapping[str, Any], notes: Notes, at: str) -> dict[str, Any]:
    """What the behavior of an HPA says of falling counts; what it says of rising ones is named."""
    if behavior.get("scaleUp"):
        notes.add(f"{at}.scaleUp", "a count rises at once, as far as it is needed")
    down = block(behavior, "scaleDown", notes)
    here = f"{at}.scaleDown"
    if down.get("selectPolicy") == "Disabled":
        raise notes.refuse(f"{here}.selectPolicy is Disabled, and here every count may fall")
    seconds = whole(down, "stabilizationWindowSeconds", notes, here, WINDOW_SECONDS)
    found: dict[str, Any] = {"stabilizationWindow": duration_text(seconds * 1_000)}
    if "tolerance" in down:
        notes.add(f"{here}.tolerance", "a count follows its target without one")
    policies = [each for each in down.get("policies") or () if isinstance(each, Mapping)]
    steps = [each for each in policies if each.get("type") == "Pods"]
    if len(policies) == 1 and steps:
        found["maxStep"] = whole(steps[0], "value", notes, f"{here}.policies[0]")
        period = whole(steps[0], "periodSeconds", notes, f"{here}.policies[0]", 15)
        notes.add(f"{here}.policies", f"carried as maxStep an interval, not once in {period}s")
    elif policies and not _is_default(policies):
        notes.add(f"{here}.policies", "only one policy of type Pods has a counterpart, maxStep")
    notes.others(behavior, {"scaleUp", "scaleDown"}, at)
    known = {"selectPolicy", "stabilizationWindowSeconds", "tolerance", "policies"}
    notes.others(down, known, here)
    return found


def _is_default(policies: list[Mapping[str, Any]]) -> bool:
    """All of them at once: what the server writes where nobody says anything."""
    return [(p.get("type"), p.get("value")) for p in policies] == [("Percent", 100)]


def _metrics(said: Any, notes: Notes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for index, metric in enumerate(said if isinstance(said, list) else []):
        at = f"spec.metrics[{index}]"
        kind = str(metric.get("type") or "") if isinstance(metric, Mapping) else ""
        if kind == "Pods":
            made = _of_pods(block(metric, "pods", notes), notes, at, found)
            found += [made] if made else []
        elif kind in _EXTERNAL:
            notes.add(at, _written_by_hand(kind, block(metric, kind.lower(), notes)))
        else:
            notes.add(at, _HINTS.get(kind, f"no metric of type {kind or '(none)'} is known here"))
    return found


def _of_pods(
    pods: Mapping[str, Any], notes: Notes, at: str, before: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """An average over the pods, which is what Ratio asks for; None for what engines do not show."""
    metric = block(pods, "metric", notes)
    name = str(metric.get("name") or "")
    value = _decimal(block(pods, "target", notes).get("averageValue"))
    if not name.startswith(_VLLM) or metric.get("selector") or not value:
        notes.add(at, _written_by_hand("Pods", pods))
        return None
    taken = [each["name"] for each in before]
    plain = name.removeprefix("vllm:").removeprefix("vllm_")
    return {
        "name": label(plain, "metric", taken),
        "scrape": {"metric": f"vllm:{plain}", "aggregate": "avg"},
        "targetPerReplica": value,
    }


def _written_by_hand(kind: str, said: Mapping[str, Any]) -> str:
    """What a person must write who knows the query behind a metric."""
    metric, target = said.get("metric"), said.get("target")
    name = metric.get("name") if isinstance(metric, Mapping) else None
    why = f"{kind} {name or '(no name)'}: its query is in the rules of the metrics adapter"
    if not isinstance(target, Mapping):
        return why
    average, value = _decimal(target.get("averageValue")), _decimal(target.get("value"))
    if average and kind != "Pods":
        return f'{why}; write it with targetPerReplica "{average}" and value: Total'
    found = average or value
    return f'{why}; write it with targetPerReplica "{found}"' if found else why


def _decimal(quantity: Any) -> str:
    """A Kubernetes quantity above zero as a plain decimal; empty for any other."""
    try:
        number: Decimal = parse_quantity(quantity)
    except ValueError:
        return ""
    return decimal_text(str(number)) if number > 0 else ""

"""Policies as they are typed for `stoker simulate`: `hpa-average:in-flight=20`.

In: words, the trace, the ground. Out: policies. A word is a name, for some a signal after a
colon, and a knob after an equals sign; each part but the name may be left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stoker.cli.session import usage
from stoker.model.scaling import Scaling, ScrapeQuery
from stoker.sim.baseline_kpa import AibrixKpa
from stoker.sim.baseline_metric import Fixed, HpaAverageValue, HpaValue, Keda, LlmScaler
from stoker.sim.baseline_past import Signal
from stoker.sim.baseline_wva import WvaSaturation, WvaTokens
from stoker.sim.clairvoyant import clairvoyant
from stoker.sim.fleet_ground import FleetGround
from stoker.sim.own_policy import StokerPolicy
from stoker.sim.policy import Policy
from stoker.sim.traffic import Request

__all__ = ["POLICIES", "policy_of"]

_WITH_SIGNAL: dict[str, tuple[Callable[[float, Signal], Policy], float, Signal]] = {
    "hpa-value": (HpaValue, 5.0, Signal.WAITING),
    "hpa-average": (HpaAverageValue, 5.0, Signal.WAITING),
    "keda": (Keda, 5.0, Signal.WAITING),
    "llmscaler": (LlmScaler, 5.0, Signal.WAITING),
    "kpa": (AibrixKpa, 20.0, Signal.IN_FLIGHT),
}
"""Name to its class, the knob and the signal where none is typed."""
_PLAIN = {"fixed": 4.0, "wva-v1": 0.10, "wva-v2": 0.85, "clairvoyant": 0.8, "stoker": 20.0}
"""Name to the knob where none is typed: a count, the spare KV, a share, a share, headroom in %."""
POLICIES = tuple(sorted({*_WITH_SIGNAL, *_PLAIN}))
MAX_COUNT = 10_000


@dataclass(frozen=True, slots=True)
class _Typed:
    name: str
    signal: Signal | None
    knob: float | None


def policy_of(text: str, requests: Sequence[Request], ground: FleetGround) -> Policy:
    """The policy of a word; raises Stalled (usage) where it is none."""
    typed = _parsed(text)
    if typed.name in _WITH_SIGNAL:
        make, knob, signal = _WITH_SIGNAL[typed.name]
        return make(typed.knob or knob, typed.signal or signal)
    if typed.signal is not None:
        raise usage(f"--policy {text!r}: {typed.name} looks at no signal of one's choice")
    knob = _PLAIN[typed.name] if typed.knob is None else typed.knob
    match typed.name:
        case "fixed":
            if knob != int(knob) or knob > MAX_COUNT:
                raise usage(f"--policy {text!r}: a count is a whole number up to {MAX_COUNT}")
            return Fixed(int(knob))
        case "wva-v1":
            return WvaSaturation(knob)
        case "wva-v2":
            if knob <= 0.15:
                raise usage(f"--policy {text!r}: the share is above 0.15")
            return WvaTokens(knob)
        case "clairvoyant":
            if knob > 1:
                raise usage(f"--policy {text!r}: nobody is more than busy; the share is at most 1")
            return clairvoyant(requests, ground.engine, ground.cold_start_s, knob)
        case _:
            return _stoker(knob, typed.knob, ground)


def _stoker(headroom: float, typed: float | None, ground: FleetGround) -> StokerPolicy:
    scaling = Scaling(
        min_replicas=ground.min_replicas,
        max_replicas=ground.max_replicas,
        slo=ground.slo,
        load=ScrapeQuery("gateway"),
        headroom_percent=round(headroom),
    )
    price = ground.price * ground.gpus or None
    label = "" if typed is None else f"{typed:g}%"
    return StokerPolicy(scaling, label, round(ground.cold_start_s * 1000), price)


def _parsed(text: str) -> _Typed:
    head, equals, tail = text.partition("=")
    name, colon, word = head.partition(":")
    if name not in POLICIES:
        raise usage(f"--policy {text!r}: no policy {name!r}", f"there are: {', '.join(POLICIES)}")
    signals = [str(signal) for signal in Signal]
    if colon and word not in signals:
        raise usage(f"--policy {text!r}: no signal {word!r}", f"there are: {', '.join(signals)}")
    if not equals:
        return _Typed(name, Signal(word) if colon else None, None)
    try:
        knob = float(tail)
    except ValueError:
        knob = math.nan
    least = 0.0 if name == "stoker" else math.ulp(0.0)
    if not least <= knob <= 1e9:
        raise usage(f"--policy {text!r}: {tail[:40]!r} is not a number above 0")
    return _Typed(name, Signal(word) if colon else None, knob)
